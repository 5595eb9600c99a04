//! Explores a body: all interleavings, under every script of choices.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};
use std::vec;
use std::vec::Vec;

use super::world::{Asked, Limits, PoolSizes, Script, World, lock};

/// The bounds of an exploration. Unbounded by default.
///
/// Reaching a bound on branches or objects is a failure, never a silent end.
#[derive(Clone, Debug)]
pub struct Model {
    /// The most preemptions in an execution, if bounded.
    preemptions: Option<usize>,
    /// The most branches in an execution.
    branches: usize,
    /// The bounds that `World` checks.
    limits: Limits,
}

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

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// The number of times that the real machine runs a body. Loom runs it as often as necessary.
    pub const RUNS: usize = 1;

    /// Returns an unbounded model: all preemptions, 10,000 branches an execution, 16 objects of
    /// each kind made by a `const fn new`, two choices a thread.
    #[must_use]
    pub fn new() -> Self {
        let limits = Limits { objects: 16, choices: 2, weak_failures: 0, apart: false };
        Self { preemptions: None, branches: 10_000, limits }
    }

    /// Allows at most `count` preemptions in an execution. A bug may need one more, so state the
    /// bound in the model's name.
    #[must_use]
    pub fn preemptions(mut self, count: usize) -> Self {
        self.preemptions = Some(count);
        self
    }

    /// Allows at most `count` branches in an execution; one more is a failure.
    #[must_use]
    pub fn branches(mut self, count: usize) -> Self {
        self.branches = count;
        self
    }

    /// Explores up to `count` [choices](crate::choice) of each thread both ways.
    #[must_use]
    pub fn choices(mut self, count: usize) -> Self {
        self.limits.choices = count;
        self
    }

    /// Allows up to `count` spurious failures of `compare_exchange_weak` in an execution. They are
    /// choices too.
    #[must_use]
    pub fn weak_failures(mut self, count: usize) -> Self {
        self.limits.weak_failures = count;
        self
    }

    /// Makes room for `count` objects of each kind made by a `const fn new`.
    #[must_use]
    pub fn objects(mut self, count: usize) -> Self {
        self.limits.objects = count;
        self
    }

    /// Explores the code inside [`apart`](crate::apart) like all other code.
    #[must_use]
    pub fn apart(mut self) -> Self {
        self.limits.apart = true;
        self
    }

    /// Explores `body`.
    ///
    /// # Panics
    ///
    /// Panics on the first execution in which `body` panics, races, deadlocks, leaks or reaches a
    /// bound.
    pub fn check(self, body: impl Fn() + Send + Sync + 'static) -> Explored {
        let body = Arc::new(body);
        let sizes = Arc::new(Mutex::new(PoolSizes::learning(self.limits.objects)));
        let explore = || self.explore_in(&sizes, &body);
        let outcome = catch_unwind(AssertUnwindSafe(explore));
        if lock(&sizes).exceeded {
            let full = Arc::new(Mutex::new(PoolSizes::full(self.limits.objects)));
            return self.explore_in(&full, &body);
        }
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Explores `body` with pools of these sizes.
    fn explore_in(
        &self,
        sizes: &Arc<Mutex<PoolSizes>>,
        body: &Arc<impl Fn() + Send + Sync + 'static>,
    ) -> Explored {
        let mut explorer = loom::model::Builder::new();
        // Set here, not by the environment: a model means the same wherever it runs.
        explorer.preemption_bound = self.preemptions;
        explorer.max_branches = self.branches;
        explorer.max_permutations = None;
        explorer.max_duration = None;
        explorer.location = true;

        let executions = Arc::new(AtomicUsize::new(0));
        let mut scripts: Vec<Script> = vec![Script::new()];
        while let Some(script) = scripts.pop() {
            let asked = Asked::default();
            explorer.check({
                let (limits, script, asked) = (self.limits, script.clone(), Arc::clone(&asked));
                let (body, executions) = (Arc::clone(body), Arc::clone(&executions));
                let sizes = Arc::clone(sizes);
                move || {
                    // Relaxed: a count, read after the exploration.
                    executions.fetch_add(1, Ordering::Relaxed);
                    let first_frame = 0_u8;
                    let (script, asked) = (script.clone(), Arc::clone(&asked));
                    let first_frame = (&raw const first_frame).cast();
                    World::begin(limits, &sizes, script, asked, first_frame);
                    body();
                }
            });
            scripts.extend(continuations(&script, &asked));
        }
        Explored { executions: executions.load(Ordering::Relaxed) }
    }
}

/// Returns the scripts that decide one more of the choices that came up under `script`. In the
/// first, the first open choice goes the other way. In the next, that choice stays and the second
/// one goes the other way, and so on. So no combination is explored twice.
fn continuations(
    script: &Script,
    asked: &Mutex<std::collections::BTreeSet<(u64, usize)>>,
) -> Vec<Script> {
    let asked = lock(asked);
    let mut settled = script.clone();
    let mut next = Vec::new();
    for &position in asked.iter() {
        if !script.contains_key(&position) {
            let mut turned = settled.clone();
            turned.insert(position, true);
            next.push(turned);
            settled.insert(position, false);
        }
    }
    next
}
