//! Waiting: what a worker does while it waits for what another worker runs.
//!
//! | [`Wait`] | the worker meanwhile runs | its stack | a lock held meanwhile |
//! | --- | --- | --- | --- |
//! | `Any` | any ready task | bounded, see below | may deadlock with a task that takes it |
//! | `Leapfrog` | what the thief has ready | seldom grows | may deadlock |
//! | `Isolated` | tasks of the awaited scope | does not grow | safe, see below |
//! | `Park` | the same, and a spare takes part | does not grow | safe, see below |
//!
//! - Under `Any`, at most [`MAX_NESTED_TASKS`] tasks lie above each other.
//! - Under `Leapfrog`, the thief's tasks are most often part of what is waited for. The stack is
//!   seldom deeper than that of the program run by one thread. A lock may deadlock if the thief has
//!   other tasks too.
//! - Under `Isolated` and `Park`, a lock is safe unless a
//!   [`broadcast`](crate::ThreadPool::broadcast) takes it.
//!
//! Under all of them the worker makes the calls of broadcasts: a broadcast waits for each worker,
//! perhaps in a task that is waited for here.
//!
//! # Why this does not deadlock
//!
//! A worker that waits for a fork or a scope waits for tasks that began after the uppermost task on
//! its stack, or that it would run itself. If the waiter of a scope runs no other tasks, the
//! scope's tasks lie in a list ([`runs_any_task`](Worker::runs_any_task) is asked when the scope
//! begins). Consider a row of workers of which each waits for the next. Their uppermost tasks began
//! later and later. So the row ends with a worker that does not wait.
//!
//! Any thread may wait for the handle of a future before its task has begun. Another pool's tasks
//! may come back to this pool. A worker that runs nothing might then wait for what it alone would
//! run. So under `Any` it runs tasks meanwhile, even beyond [`MAX_NESTED_TASKS`]. Why not sleep and
//! lease a spare there: leases count spares, not the workers they replace. So the spare that is
//! left may itself wait for this worker's fork.
//!
//! A spare that is not needed any more may still have a fork of the worker that it replaced. If it
//! blocks there, it replaces itself. So a worker that sleeps for a fork leases a spare if the pool
//! has started spares.
//!
//! # The bound that remains
//!
//! - Under `Any`, forks and scopes add at most `MAX_NESTED_TASKS` tasks to a stack. Waits for
//!   futures, broadcasts and other pools add as many as there are such waits above each other.
//! - Under the others, a worker leases a spare while it waits for another pool, and sleeps if there
//!   is none. Pools that call each other to and fro need as many spares as there are calls inside
//!   each other.
//! - Under the others, a worker sleeps while it waits for a future (`Park` leases a spare). If all
//!   workers of a pool do so, it polls nothing any more.
//! - A task that waits for a future that is polled below it on the same stack waits for ever.

use stanchion_machine::bomb::AbortOnUnwind;

use crate::sync::Latch;
use crate::workers::{MAX_NESTED_TASKS, SpareLease, Wait, Worker};

/// The message of the abort when a wait would unwind.
pub(crate) const UNWOUND: &str =
    "a wait in a thread pool unwound: others may still use what lies on its stack";

/// The thing that a worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A fork. The worker that the latch names runs it.
    Fork,
    /// The tasks of a scope, which lie in the list of this worker's slot, at this level.
    Scope(usize),
    /// A task that may not have begun, or that any worker may have begun.
    Anywhere,
}

impl Worker {
    /// Waits until the latch is set, as the pool's [`Wait`] says.
    ///
    /// Ends the process rather than unwind: a task may still run that uses this stack and sets the
    /// latch.
    pub(crate) fn wait_for(&self, latch: &Latch, awaited: Awaited) {
        let bomb = AbortOnUnwind::armed(UNWOUND);
        self.wait_here_for(latch, awaited);
        bomb.defuse();
    }

    /// Waits in the way that the pool's [`Wait`] and the awaited thing ask for.
    fn wait_here_for(&self, latch: &Latch, awaited: Awaited) {
        match (self.pool().wait(), awaited) {
            (Wait::Any, _) if self.runs_any_task() => self.run_any_until(latch),
            // Some worker must run what is ready: the awaited task may be ready, or wait for a
            // ready one.
            (Wait::Any, Awaited::Anywhere) => self.run_any_until(latch),
            (Wait::Leapfrog, Awaited::Fork) => {
                let _lease = self.lease_beside_spares();
                self.sleep_until(latch, None, |worker| {
                    let thief = latch.thief();
                    let work = thief.and_then(|thief| worker.core().find_work_of(worker, thief));
                    let found = work.is_some();
                    if let Some(work) = work {
                        worker.run_work(work);
                    }
                    found
                });
            }
            (Wait::Isolated, Awaited::Fork) => {
                let _lease = self.lease_beside_spares();
                self.sleep_until(latch, None, |_| false);
            }
            (Wait::Any | Wait::Leapfrog | Wait::Isolated, _) => {
                self.sleep_until(latch, awaited.level(), |_| false);
            }
            (Wait::Park, _) => {
                let level = awaited.level();
                while self.run_scope_task(level) {}
                if !latch.is_set() {
                    let _lease = SpareLease::take(self.core());
                    self.sleep_until(latch, level, |_| false);
                }
            }
        }
    }

    /// Leases a spare while it waits for a fork, if the pool has started spare threads. The thief
    /// may be a spare that is surplus by now. When it blocks, it replaces itself, and no worker is
    /// left that runs anything.
    fn lease_beside_spares(&self) -> Option<SpareLease<'_>> {
        self.pool().has_started_spares().then(|| SpareLease::take(self.core()))
    }

    /// Returns whether the worker runs any task while it waits here and now.
    pub(crate) fn runs_any_task(&self) -> bool {
        self.pool().wait() == Wait::Any && self.nested.get() < MAX_NESTED_TASKS
    }

    /// Waits for a latch that another pool's workers set. Their tasks may come back to this pool.
    /// So if this worker runs nothing meanwhile, it leases a spare.
    pub(crate) fn wait_for_another_pool(&self, latch: &Latch) {
        if self.pool().wait() == Wait::Any {
            self.wait_for(latch, Awaited::Anywhere);
        } else if !latch.is_set() {
            let bomb = AbortOnUnwind::armed(UNWOUND);
            let lent = SpareLease::take(self.core());
            self.sleep_until(latch, None, |_| false);
            drop(lent);
            bomb.defuse();
        }
    }

    /// Runs ready work until the latch is set.
    fn run_any_until(&self, latch: &Latch) {
        let nested = self.nested.get();
        self.nested.set(nested + 1);
        while !latch.is_set() {
            self.pool().run_calls(self);
            let work = self.core().find_work(self);
            match work.or_else(|| self.core().search(self, &|| latch.is_set(), &|| latch.watch())) {
                Some(work) => self.run_work(work),
                None => continue,
            }
        }
        self.nested.set(nested);
    }

    /// Runs a task at `level` of its list, if there is one that no thread has begun.
    fn run_scope_task(&self, level: Option<usize>) -> bool {
        let task = level.and_then(|level| self.scope_tasks().take(level));
        let found = task.is_some();
        if let Some(task) = task {
            task(self);
        }
        found
    }

    /// Runs only its tasks at `level` of its list, and what `steal` runs, until the latch is set.
    fn sleep_until(&self, latch: &Latch, level: Option<usize>, steal: impl Fn(&Self) -> bool) {
        let (pool, scope_tasks) = (self.pool(), self.scope_tasks());
        let called =
            || pool.has_calls(self) || level.is_some_and(|level| scope_tasks.has_task(level));
        while !latch.is_set() {
            pool.run_calls(self);
            if !self.run_scope_task(level) && !steal(self) {
                let _excused = pool.excuse(self);
                self.spin_until(|| latch.is_set() || called());
                pool.sleep.sleep_until_named(self.index(), || latch.watch() && !called());
            }
        }
    }
}

impl Awaited {
    /// Returns the level of a scope.
    fn level(self) -> Option<usize> {
        match self {
            Self::Scope(level) => Some(level),
            Self::Fork | Self::Anywhere => None,
        }
    }
}
