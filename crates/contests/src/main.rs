//! Runs contests by name.

use std::process::ExitCode;

use clap::Parser;
use stanchion_contests::{CONTESTS, Effort, Options, find};

/// Runs contests between locks, structures, pools and threads, of Stanchion and of its peers
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[arg(required_unless_present = "list", value_name = "NAME")]
    /// The contests to run
    names: Vec<String>,
    #[arg(long)]
    /// Lists all contests
    list: bool,
    #[arg(long, value_name = "TEXT")]
    /// Runs only the contestants with TEXT in their `cell/contestant`; several are or'ed
    only: Vec<String>,
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    /// The number of rounds; without it, each contest's own
    rounds: Option<u32>,
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..))]
    /// The share of the usual time or operations of each run, in per cent
    scale: Option<u32>,
    #[arg(long)]
    /// Runs one round with a fifth of the time or operations
    quick: bool,
}

impl Arguments {
    fn options(&self) -> Options {
        let mut options = if self.quick { Options::quick() } else { Options::default() };
        options.only.clone_from(&self.only);
        options.rounds = self.rounds.map(|rounds| rounds as usize).or(options.rounds);
        if let Some(percent) = self.scale {
            options.effort = Effort(f64::from(percent) / 100.0);
        }
        options
    }
}

fn main() -> ExitCode {
    if stanchion_contests::serve_run() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    if arguments.list {
        for contest in &CONTESTS {
            println!("{:<12} {}", contest.name, contest.about);
        }
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = arguments.names.iter().find(|name| find(name).is_none()) {
        eprintln!("{unknown}: no such contest; --list lists them");
        return ExitCode::from(2);
    }
    let options = arguments.options();
    let mut code = ExitCode::SUCCESS;
    for contest in arguments.names.iter().filter_map(|name| find(name)) {
        let report = contest.run(&options, &mut |line| eprintln!("{line}"));
        if report.is_empty() {
            eprintln!("{}: no cell contains {}", contest.name, options.only.join(" or "));
            code = ExitCode::from(2);
        }
        print!("{report}");
    }
    code
}
