//! On the simulated machine a model is a body that is run a few times: on one, two and four processors, with time slices of different lengths.
//!
//! Why so: a run takes the one order of events that its machine's times make, and other times make other orders. So it is a sample of the
//! interleavings, as on the real machine, but the same sample every time, and a run that stands still is reported with who waits for what.

use core::fmt;
use std::sync::Arc;

use stanchion_simulator::{Machine, Simulation, Time, machines};

/// How a test body is to be checked. The bounds are loom's; here the body runs, with [`RUNS`](Self::RUNS) seeds.
#[derive(Clone, Debug, Default)]
pub struct Model(());

/// What a check has looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Executions of the body.
    pub executions: usize,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} executions", self.executions)
    }
}

impl Model {
    /// How often a body is run.
    pub const RUNS: usize = 8;

    /// An unbounded model.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// At most `_count` preemptions in an execution (loom only).
    #[must_use]
    pub fn preemptions(self, _count: usize) -> Self {
        self
    }

    /// At most `_count` branches in an execution; one more is a failure (loom only).
    #[must_use]
    pub fn branches(self, _count: usize) -> Self {
        self
    }

    /// Up to `_count` [choices](crate::choice) of each thread are explored both ways (loom only).
    #[must_use]
    pub fn choices(self, _count: usize) -> Self {
        self
    }

    /// Up to `_count` spurious failures of `compare_exchange_weak` (loom only).
    #[must_use]
    pub fn weak_failures(self, _count: usize) -> Self {
        self
    }

    /// Room for `_count` objects made by a `const fn new` (loom only).
    #[must_use]
    pub fn objects(self, _count: usize) -> Self {
        self
    }

    /// Runs `body` on one, two and four processors of a machine of today, with seeds and time slices of their own.
    ///
    /// # Panics
    ///
    /// When a run fails, with what the simulator says of it: `body` panicked, all threads wait, or one spins for ever.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) -> Explored {
        let body = Arc::new(body);
        for seed in 0..Self::RUNS as u64 {
            let machine = Self::machine(seed);
            let body = Arc::clone(&body);
            if let Err(failure) = Simulation::new(machine).seed(seed).run(move || body()) {
                panic!("seed {seed}: {failure}");
            }
        }
        Explored { executions: Self::RUNS }
    }

    /// Slices end every few microseconds, each time elsewhere in the body; threads begin at once, or one after the other.
    fn machine(seed: u64) -> Machine {
        let mut machine = machines::modern([2, 1, 4][seed as usize % 3]);
        machine.scheduling.quantum = Time::nanos(3_000 + 1_001 * seed);
        machine.scheduling.spawn = Time::nanos(150 * seed);
        machine
    }
}
