//! Measures the cost of each public operation on the simulated machine: transfers,
//! read-modify-writes, interrupts and nanoseconds at 1, 2, 8 and 64 processors.
//!
//! The numbers are the same on every run and on every computer. So a change that adds one cache
//! miss to a hot path changes the table. The table is committed (`crates/simulated/costs.txt`), and
//! `cargo xtask costs` compares it.
//!
//! With `--instructions` it counts instead what each source file executes between its accesses, for
//! `cargo xtask instructions`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instructions;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "instructions_elsewhere.rs"]
mod instructions;
mod measure;
mod operation;
mod operations;
mod pools;
mod robust;

use clap::Parser;
use measure::{Cost, ROUNDS};
use stanchion_machine::sync::Arc;
use stanchion_simulator::{Arena, Failure, Simulation, machines};
use std::process::ExitCode;

/// The allocator of the simulator: addresses must not depend on this process.
#[global_allocator]
static ARENA: Arena = Arena;

/// Print the cost of each operation on the simulated machine, which `cargo xtask costs` compares
/// with the accepted costs
#[derive(Parser)]
#[command(name = "costs")]
struct Arguments {
    /// Print only the operations with this text in their names
    filter: Option<String>,
    #[arg(long)]
    /// Print instead, for each source file, its accesses and the instructions before them
    instructions: bool,
    #[arg(long, conflicts_with = "instructions")]
    /// Print the costs where the kernel has no `membarrier`: both sides of an asymmetric fence are
    /// fences
    symmetric_fences: bool,
    #[arg(long, value_name = "N", conflicts_with = "instructions")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=128))]
    /// Print the costs with this number of processors only. Above 64 the barriers are left out,
    /// which have at most 64 members
    processors: Option<u8>,
    #[arg(long, value_name = "N", conflicts_with = "instructions", default_value_t = ROUNDS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    /// Measure N operations of each thread, after as many others. What a program does once has a
    /// larger share of fewer operations
    rounds: u64,
    #[arg(long, conflicts_with_all = ["filter", "instructions", "symmetric_fences", "processors", "rounds"])]
    /// Print instead what the defaults cost where each time that the code measures of the machine
    /// is wrong, and fail if that is too much
    mismeasured: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = arguments.filter.unwrap_or_default();
    let mut operations = operations::all();
    operations.retain(|operation| operation.name.contains(&filter));
    let mut pools = pools::all();
    pools.retain(|operation| operation.name.contains(&filter));
    if operations.is_empty() && pools.is_empty() {
        eprintln!(
            "costs: no operation's name contains `{filter}`; without a filter all are listed"
        );
        return ExitCode::FAILURE;
    }
    if arguments.instructions {
        return match instructions::print(operations) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("costs: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    if arguments.mismeasured {
        return match robust::check(operations, pools) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("costs: {failure}");
                ExitCode::FAILURE
            }
        };
    }
    println!("{}", measure::heading());
    let numbers = match arguments.processors {
        Some(number) => vec![usize::from(number)],
        None => measure::PROCESSORS.to_vec(),
    };
    if numbers.iter().any(|&number| number > gang::barrier::MOST_MEMBERS) {
        operations.retain(|operation| !operation.name.starts_with("barrier::"));
    }
    let simulation = |number| {
        let machine = machines::modern(number);
        let machine = if arguments.symmetric_fences { machine.symmetric_fences() } else { machine };
        measure::simulation(machine, 1.0)
    };
    let simulations: Vec<Simulation> = numbers.into_iter().map(simulation).collect();
    let measured = operations
        .iter()
        .try_for_each(|operation| {
            rows(operation.name, &simulations, |on| {
                measure::measure(operation, on, arguments.rounds)
            })
        })
        .and_then(|()| {
            pools.into_iter().map(Arc::new).try_for_each(|operation| {
                rows(operation.name, &simulations, |on| {
                    measure::measure_pool(&operation, on, arguments.rounds)
                })
            })
        });
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("costs: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the rows of one operation.
fn rows(
    name: &str,
    simulations: &[Simulation],
    measure: impl Fn(&Simulation) -> Result<Cost, Failure>,
) -> Result<(), String> {
    for simulation in simulations {
        let processors = simulation.machine().processors;
        let cost = measure(simulation)
            .map_err(|failure| format!("{name} with {processors} processors: {failure}"))?;
        println!("{}", measure::row(name, processors, cost));
    }
    Ok(())
}
