//! `cargo xtask torture` and `busted`: the `torture` command, built in release and run.

use crate::failure::{Failure, Result};
use crate::shell;

/// The options of the command line.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which locks, `pool`, `barrier` or `gang`; all if none is named
    #[arg(value_name = "LOCK")]
    locks: Vec<String>,
    /// Seconds for each lock
    #[arg(long, value_name = "N", default_value = "10")]
    seconds: String,
    /// Threads of the crowd; four a processor if not given
    #[arg(long, value_name = "T")]
    threads: Option<String>,
    /// Where the randomness starts
    #[arg(long)]
    seed: Option<String>,
    /// Name the locks and end
    #[arg(long)]
    list: bool,
}

/// Returns the `torture` command. It is not built in release, so that CI compiles its dependencies
/// once; the root's manifest optimises the package itself.
fn command() -> std::process::Command {
    shell::cargo(["run", "--quiet", "--package", "torture", "--bin", "torture", "--"])
}

/// Tortures locks.
pub(crate) fn torture(options: &Options) -> Result {
    let mut command = command();
    command.args(&options.locks).args(["--seconds", &options.seconds]);
    command.args(options.threads.iter().flat_map(|threads| ["--threads", threads]));
    command.args(options.seed.iter().flat_map(|seed| ["--seed", seed]));
    command.args(options.list.then_some("--list"));
    shell::run(&mut command)
}

/// Each right lock, as long as CI can afford.
pub(crate) fn brief() -> Result {
    // A busy host may take both processors away for seconds; a lost wake-up is for ever.
    shell::run(command().args(["--seconds", "2", "--stuck-after", "60"]))
}

/// The broken locks, and the word by which the fault of each must be reported.
const BUSTED: &[(&str, &str)] =
    &[("busted", "exclusion"), ("busted-wake", "progress"), ("busted-fair", "starvation")];

/// The number of tries in which a broken lock must be caught.
const TRIES: usize = 3;

/// Tortures the broken locks; one that passes is a failure.
pub(crate) fn busted() -> Result {
    shell::run(&mut shell::cargo([
        "build",
        "--quiet",
        "--package",
        "torture",
        "--bin",
        "torture",
    ]))?;
    for (lock, fault) in BUSTED {
        let mut command = command();
        command.args([lock, "--seconds", "2", "--stuck-after", "1"]);
        let line = shell::line(&command);
        let mut caught = false;
        for _ in 0..TRIES {
            let (status, seen) = shell::run_seen(&mut command)?;
            caught |= !status.success() && seen.contains(&format!("FAULT: {fault}:"));
            if caught {
                break;
            }
        }
        if !caught {
            return Err(Failure::verdict(format!(
                "`{line}` did not report `FAULT: {fault}` on a lock broken for that: the harness has gone blind"
            )));
        }
        println!("caught: {lock}");
    }
    Ok(())
}
