//! The `stanchion` command.
//!
//! - `study` runs the papers' experiments on this machine and writes a report.
//! - `report` writes that report again from the results.
//! - `compare` says what is safe on several computers.
//! - `machine` says what this machine is.
//! - `calibrate` says how far simulated locks are from real ones.
//! - `record` records the waits of a program, or observes a process that runs.
//! - `stalls` says where the threads of a recorded program wait now.
//! - `advise` says which mutex suits a program, from its recorded waits.
//! - `patch` writes recorded locks for programs over `lock_api`.
//!
//! Exit codes: 0 done; 1 something failed while running; 2 the command line or a file named on it
//! is wrong; 130 interrupted, with what was finished written.

mod advise;
mod args;
mod calibrate;
mod error;
mod orders;
mod patch;
mod paths;
mod profile;
mod record;
mod report;
mod study;
mod survey;
mod times;
mod watch;

use std::process::ExitCode;

/// The allocator of the program. A simulated program gets its memory where its run says, so that
/// addresses are the same on every computer. All other memory is the system's.
#[global_allocator]
static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;

use clap::Parser;

fn main() -> ExitCode {
    if stanchion_regret::random::serve_run() {
        return ExitCode::SUCCESS;
    }
    let args = args::Args::parse();
    let done = match args.command {
        args::Command::Study(options) => study::run(&options).map(|()| 0),
        args::Command::Report(options) => report::run(&options).map(|()| 0),
        args::Command::Compare(options) => study::compare(&options).map(|()| 0),
        args::Command::Machine(options) => survey::run(&options).map(|()| 0),
        args::Command::Calibrate(options) => calibrate::run(&options).map(|()| 0),
        args::Command::Advise(options) => advise::run(&options).map(|()| 0),
        args::Command::Record(options) => match options.pid {
            Some(process) => watch::run(process, &options).map(|()| 0).map_err(error::Error::from),
            None => record::run(&options).map_err(error::Error::from),
        },
        args::Command::Stalls(options) => {
            record::stalls::run(&options).map(|()| 0).map_err(error::Error::from)
        }
        args::Command::Patch(options) => patch::run(&options).map_err(error::Error::from),
        args::Command::Hog { processor } => return stanchion_regret::hogs::run(processor),
        args::Command::StandIn { name, amount } => {
            return stanchion_paper_klmo91::stand_in::run(&name, amount);
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            stanchion_study::output::Output::Stderr.line(format_args!("stanchion: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
