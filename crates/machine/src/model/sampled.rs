//! A model for the machines that run a body instead of exploring it. The bounds of an exploration
//! have no effect there.

use core::fmt;

use crate::backend::model;

/// A check of a test body. The bounds are loom's. On the other machines the body runs
/// [`RUNS`](Self::RUNS) times, and the bounds have no effect.
#[derive(Clone, Debug, Default)]
pub struct Model(());

/// The extent of a finished check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explored {
    /// The number of executions of the body.
    pub executions: usize,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} executions", self.executions)
    }
}

impl Model {
    /// The number of times that a body is run.
    pub const RUNS: usize = model::RUNS;

    /// Returns an unbounded model.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// Allows at most `_count` preemptions in an execution (loom only).
    #[must_use]
    pub fn preemptions(self, _count: usize) -> Self {
        self
    }

    /// Allows at most `_count` branches in an execution; one more is a failure (loom only).
    #[must_use]
    pub fn branches(self, _count: usize) -> Self {
        self
    }

    /// Explores up to `_count` [choices](crate::choice) of each thread both ways (loom only).
    #[must_use]
    pub fn choices(self, _count: usize) -> Self {
        self
    }

    /// Allows up to `_count` spurious failures of `compare_exchange_weak` (loom only).
    #[must_use]
    pub fn weak_failures(self, _count: usize) -> Self {
        self
    }

    /// Makes room for `_count` objects made by a `const fn new` (loom only).
    #[must_use]
    pub fn objects(self, _count: usize) -> Self {
        self
    }

    /// Explores the code inside [`apart`](crate::apart) like all other code (loom only).
    #[must_use]
    pub fn apart(self) -> Self {
        self
    }

    /// Runs `body`.
    ///
    /// # Panics
    ///
    /// Panics when `body` does. On the simulated machine it also panics when all its threads wait,
    /// or one spins for ever.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) -> Explored {
        model::run(body);
        Explored { executions: Self::RUNS }
    }
}
