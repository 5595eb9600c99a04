//! `torture [LOCK]… --seconds N`: see the library. Exit code 1 if a lock is at fault, 2 if the command makes no sense.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use torture::contest::Fault;
use torture::locks::{Entry, LOCKS, named};
use torture::phase::{Phase, Torture};

/// Tortures locks with real threads, random stalls and too few processors.
#[derive(Parser)]
struct Arguments {
    /// Which locks; all that are not broken on purpose if none is named
    #[arg(value_name = "LOCK", value_parser = lock)]
    locks: Vec<&'static Entry>,
    /// Seconds for each lock
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = positive)]
    seconds: f64,
    /// Threads of the crowd; four a processor if not given
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Seconds without an acquisition after which a lock counts as stuck
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = positive)]
    stuck_after: f64,
    /// Where the randomness starts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Name the locks and end
    #[arg(long)]
    list: bool,
}

fn lock(name: &str) -> Result<&'static Entry, String> {
    let names = || LOCKS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    named(name).ok_or_else(|| format!("no such lock; there are: {}", names()))
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number of seconds, above 0 and at most a million".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let torture = Torture {
        time: Duration::from_secs_f64(arguments.seconds),
        threads: arguments.threads.map(usize::from),
        stuck_after: Duration::from_secs_f64(arguments.stuck_after),
        seed: arguments.seed,
    };
    let all = || LOCKS.iter().filter(|entry| !entry.busted || arguments.list).collect();
    let locks = if arguments.locks.is_empty() { all() } else { arguments.locks };
    // A closed pipe ends the run quietly; what was asked for was the text.
    let Ok(faults) = run(&locks, &torture, arguments.list) else { return ExitCode::SUCCESS };
    // Threads that wait for ever may be left behind: `main` returning ends them.
    if faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(locks: &[&Entry], torture: &Torture, list: bool) -> io::Result<usize> {
    let mut out = io::stdout().lock();
    let mut faults = 0;
    for entry in locks {
        if list {
            writeln!(out, "{}", entry.name)?;
            continue;
        }
        for phase in Phase::ALL {
            write!(
                out,
                "{:22} {phase:14} {:>4} threads  ",
                entry.name,
                phase.plan(torture).threads
            )?;
            out.flush()?;
            match phase.run((entry.free)(), torture) {
                Ok(figures) => writeln!(out, "{figures}")?,
                Err(fault) => {
                    faults += 1;
                    writeln!(out, "FAULT: {}: {fault}", kind(&fault))?;
                    // Its threads may still be at it; another phase beside them would measure nothing.
                    break;
                }
            }
        }
    }
    Ok(faults)
}

/// One word for the fault, for those who search the output.
fn kind(fault: &Fault) -> &'static str {
    match fault {
        Fault::TwoHolders { .. } => "exclusion",
        Fault::NoProgress(_) => "progress",
        Fault::Starved { .. } => "starvation",
        Fault::Panicked(_) => "panic",
    }
}
