//! On the simulated machine a model is a body that is run a few times: on one, two and four
//! processors, with time slices of different lengths.
//!
//! Why several machines: a run takes only the order of events that its machine's times produce, and
//! other times produce other orders. So this is a sample of the interleavings, as on the real
//! machine, but the same sample every time. If a run stands still, the report says which thread
//! waits for what.

use std::sync::Arc;

use stanchion_simulator::{Machine, Simulation, Time, machines};

/// The number of times that a body is run. Each run has its own seed and its own machine.
pub(crate) const RUNS: usize = 8;

/// Runs `body`, and panics with the simulator's report if a run fails.
pub(crate) fn run(body: impl Fn() + 'static) {
    let body = Arc::new(body);
    for seed in 0..RUNS as u64 {
        let body = Arc::clone(&body);
        if let Err(failure) = Simulation::new(machine(seed)).seed(seed).run(move || body()) {
            panic!("seed {seed}: {failure}");
        }
    }
}

/// Returns the machine of a run. Its slices end every few microseconds, for each seed at another
/// point of the body. Its threads begin at once, or one after the other.
fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern([2, 1, 4][seed as usize % 3]);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_001 * seed);
    machine.scheduling.spawn = Time::nanos(150 * seed);
    machine
}
