//! Measures one operation on a number of processors: the cost of a round when all threads do
//! nothing else.
//!
//! On one processor there are two runs, one with twice as many rounds. The difference is exactly
//! the cost of the rounds. On more processors, a longer run interleaves differently from a shorter
//! one. So the cost of one whole run is divided by its rounds, and includes the threads' first
//! misses. Each thread's time runs from when all threads are there until it has done its rounds.

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Spin, WaitPolicy, wait_until};
use stanchion_machine::{clock, thread, topology};
use stanchion_simulator::{Failure, Machine, Simulation, Time, machines};

use crate::operation::{Operation, Round, Rounds};
use crate::pools::PoolOperation;

/// The numbers of processors at which each operation is measured.
pub(crate) const PROCESSORS: [usize; 4] = [1, 2, 8, 64];

/// The average cost of one round.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    /// The time that its thread sees.
    pub(crate) nanos: f64,
    /// Cache misses.
    misses: f64,
    /// Lines that came from another processor's cache.
    transfers: f64,
    /// Atomic read-modify-writes.
    exchanges: f64,
    /// Instructions between the accesses.
    instructions: f64,
    /// Interrupts of other processors.
    interrupts: f64,
}

/// Rounds of each thread in the shorter run.
pub(crate) const ROUNDS: u64 = 100;

/// Measures `operation` in `simulation`, with as many threads as its machine has processors. Each
/// does twice as many rounds as `rounds`.
pub(crate) fn measure(
    operation: &Operation,
    simulation: &Simulation,
    rounds: u64,
) -> Result<Cost, Failure> {
    let processors = simulation.machine().processors;
    cost(processors, rounds, |rounds| {
        let set_up = operation.set_up;
        run(simulation, move || rounds_of(set_up(processors), processors, rounds))
    })
}

/// Measures an operation of a pool in `simulation`.
pub(crate) fn measure_pool(
    operation: &Arc<PoolOperation>,
    simulation: &Simulation,
    rounds: u64,
) -> Result<Cost, Failure> {
    let processors = simulation.machine().processors;
    cost(processors, rounds, |rounds| {
        let operation = operation.clone();
        run(simulation, move || operation.run(processors, rounds))
    })
}

/// The rounds before those of which instructions are counted.
const WARM: usize = 20;
/// The rounds of which instructions are counted.
const COUNTED: usize = 4;

/// Calls `counted` with each of the first rounds of an operation, on one processor.
pub(crate) fn count(set_up: impl FnOnce() -> Vec<Round> + Send + 'static, counted: fn(&Round)) {
    let run = Simulation::new(machines::modern(1)).run(move || {
        for round in &set_up() {
            (0..WARM).for_each(|_| round());
            (0..COUNTED).for_each(|_| counted(round));
        }
    });
    run.expect("no operation fails");
}

fn cost(
    processors: usize,
    rounds: u64,
    run: impl Fn(u64) -> Result<Total, Failure>,
) -> Result<Cost, Failure> {
    let long = run(2 * rounds)?;
    if processors > 1 {
        return Ok(long.each(long.rounds));
    }
    let short = run(rounds)?;
    // The longer run may have one miss fewer.
    Ok(Total {
        nanos: long.nanos.saturating_sub(short.nanos),
        misses: long.misses.saturating_sub(short.misses),
        transfers: long.transfers.saturating_sub(short.transfers),
        exchanges: long.exchanges.saturating_sub(short.exchanges),
        instructions: long.instructions.saturating_sub(short.instructions),
        interrupts: long.interrupts.saturating_sub(short.interrupts),
        rounds: long.rounds - short.rounds,
    }
    .each(rounds))
}

/// The cost of all rounds of a run.
struct Total {
    /// The sum of the threads' times. Their rounds run side by side.
    nanos: u64,
    /// Cache misses of all threads.
    misses: u64,
    /// Lines that came from another processor's cache.
    transfers: u64,
    /// Atomic read-modify-writes of all threads.
    exchanges: u64,
    /// Instructions of all threads between their accesses, in hundredths.
    instructions: u64,
    /// Interrupts of all threads.
    interrupts: u64,
    /// The number of rounds of all threads.
    rounds: u64,
}

impl Total {
    fn each(&self, rounds: u64) -> Cost {
        let each = |count| count as f64 / rounds as f64;
        Cost {
            nanos: each(self.nanos),
            misses: each(self.misses),
            transfers: each(self.transfers),
            exchanges: each(self.exchanges),
            instructions: each(self.instructions) / 100.0,
            interrupts: each(self.interrupts),
        }
    }
}

/// Returns a run on the machine, on which making a thread takes no time, so that only the operation
/// is counted. Each time that the code measures is wrong by the factor `mismeasured`.
pub(crate) fn simulation(mut machine: Machine, mismeasured: f64) -> Simulation {
    machine.scheduling.spawn = Time::ZERO;
    Simulation::new(machine).mismeasured(mismeasured)
}

/// Runs `rounds`, and counts the accesses of all threads.
fn run(
    simulation: &Simulation,
    rounds: impl FnOnce() -> Rounds + Send + 'static,
) -> Result<Total, Failure> {
    let run = simulation.run(rounds)?;
    let accesses = run.statistics.accesses;
    Ok(Total {
        nanos: run.result.nanos,
        misses: accesses.misses,
        transfers: accesses.transfers,
        exchanges: accesses.exchanges,
        instructions: run.statistics.instructions,
        interrupts: run.statistics.interrupts,
        rounds: run.result.count,
    })
}

/// Starts a thread for each of `operations`, which does `rounds` rounds.
fn rounds_of(operations: Vec<Round>, processors: usize, rounds: u64) -> Rounds {
    let all_there = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = operations
        .into_iter()
        .enumerate()
        .map(|(number, round)| {
            let all_there = all_there.clone();
            thread::spawn(move || {
                let _pinned = topology::pin(number);
                // Relaxed: the counter only lets the threads begin together.
                all_there.fetch_add(1, Ordering::Relaxed);
                let all = processors as u32;
                wait_until(
                    &*all_there,
                    Ordering::Relaxed,
                    |there| there == all,
                    &mut Spin::start(),
                );
                let begin = clock::now();
                for _ in 0..rounds {
                    round();
                }
                clock::now().nanos_since(begin)
            })
        })
        .collect();
    let took = threads.into_iter().map(|thread| thread.join().expect("no operation panics"));
    Rounds { nanos: took.sum(), count: rounds * processors as u64 }
}

/// Returns the names of the columns.
pub(crate) fn heading() -> String {
    format!(
        "{:<44} {:>10} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10}",
        "# operation",
        "processors",
        "ns",
        "misses",
        "transfers",
        "exchanges",
        "instructions",
        "interrupts"
    )
}

/// Returns a line of the table.
pub(crate) fn row(name: &str, processors: usize, cost: Cost) -> String {
    let Cost { nanos, misses, transfers, exchanges, instructions, interrupts } = cost;
    format!(
        "{name:<44} {processors:>10} {nanos:>12.2} {misses:>10.3} {transfers:>10.3} {exchanges:>10.3} {instructions:>13.2} {interrupts:>10.3}"
    )
}
