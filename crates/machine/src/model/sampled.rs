//! A model on the machines that run a body instead of exploring it: bounds of an exploration mean nothing to them.

use core::fmt;

use crate::backend::model;

/// How a test body is to be checked. The bounds are loom's; on the other machines only the body runs, [`RUNS`](Self::RUNS) times.
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
    pub const RUNS: usize = model::RUNS;

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

    /// What is done [apart](crate::apart) is explored like all else (loom only).
    #[must_use]
    pub fn apart(self) -> Self {
        self
    }

    /// Runs `body`.
    ///
    /// # Panics
    ///
    /// When `body` does; on the simulated machine also when all its threads wait, or one spins for ever.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) -> Explored {
        model::run(body);
        Explored { executions: Self::RUNS }
    }
}
