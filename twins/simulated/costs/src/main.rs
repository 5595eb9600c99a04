//! What each public operation costs on the simulated machine, in transfers, read-modify-writes and nanoseconds, at 1, 2, 8 and 64 processors.
//!
//! The numbers are the same on every run and on every computer, so a change that adds one cache miss to a hot path changes the table, which is
//! committed (`twins/simulated/costs.txt`) and compared by `cargo xtask costs`.

mod measure;
mod operation;
mod operations;

use clap::Parser;
use stanchion_simulator::Arena;
use std::process::ExitCode;

/// Addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// Print what each operation costs on the simulated machine; `cargo xtask costs` compares it with what was accepted
#[derive(Parser)]
#[command(name = "costs")]
struct Arguments {
    /// Only operations whose names contain this
    filter: Option<String>,
}

fn main() -> ExitCode {
    let filter = Arguments::parse().filter.unwrap_or_default();
    let mut operations = operations::all();
    operations.retain(|operation| operation.name.contains(&filter));
    if operations.is_empty() {
        eprintln!(
            "costs: no operation's name contains `{filter}`; without a filter all are listed"
        );
        return ExitCode::FAILURE;
    }
    println!("{}", measure::heading());
    for operation in &operations {
        for processors in measure::PROCESSORS {
            match measure::measure(operation, processors) {
                Ok(cost) => println!("{}", measure::row(operation.name, processors, cost)),
                Err(failure) => {
                    eprintln!("costs: {} with {processors} processors: {failure}", operation.name);
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
