//! On the simulated machine a model is a body that is run a few times: on one, two and four processors, with time slices of different lengths.
//!
//! Why so: a run takes the one order of events that its machine's times make, and other times make other orders. So it is a sample of the
//! interleavings, as on the real machine, but the same sample every time, and a run that stands still is reported with who waits for what.

use std::sync::Arc;

use stanchion_simulator::{Machine, Simulation, Time, machines};

/// How often a body is run: with so many seeds, each with a machine of its own.
pub(crate) const RUNS: usize = 8;

/// Panics with what the simulator says of a run that fails.
pub(crate) fn run(body: impl Fn() + 'static) {
    let body = Arc::new(body);
    for seed in 0..RUNS as u64 {
        let body = Arc::clone(&body);
        if let Err(failure) = Simulation::new(machine(seed)).seed(seed).run(move || body()) {
            panic!("seed {seed}: {failure}");
        }
    }
}

/// Slices end every few microseconds, each time elsewhere in the body; threads begin at once, or one after the other.
fn machine(seed: u64) -> Machine {
    let mut machine = machines::modern([2, 1, 4][seed as usize % 3]);
    machine.scheduling.quantum = Time::nanos(3_000 + 1_001 * seed);
    machine.scheduling.spawn = Time::nanos(150 * seed);
    machine
}
