//! How a worker waits for what another one runs.
//!
//! # Waiting for what another runs
//!
//! | [`Wait`] | what the worker does meanwhile | its stack | holding a lock meanwhile |
//! | --- | --- | --- | --- |
//! | `Any` | any ready task, to a depth of [`MAX_NESTED_TASKS`] | at most so many tasks above each other, but see below | may deadlock with a task that wants it |
//! | `Leapfrog` | what the thief has ready: most often part of what is waited for | seldom deeper than the program run by one thread | may deadlock, if the thief has other tasks too |
//! | `Isolated` | tasks of the scope that it waits for | does not grow | safe, but for what a [`broadcast`](crate::ThreadPool::broadcast) runs |
//! | `Park` | the same, and a spare thread takes its seat | does not grow | as above |
//!
//! All of them run what a broadcast has for the worker: it waits for each, perhaps in a task that
//! is waited for here.
//!
//! # Why this does not deadlock
//!
//! A worker that waits for a fork or a scope waits for tasks that began after what is uppermost on
//! its stack, or that it would run itself: the tasks of a scope whose waiter runs no others lie in
//! a list ([`helps`](Worker::helps) is asked when the scope begins). So along a row of workers of
//! which each waits for the next, what is uppermost began later and later, and the row ends with
//! one that does not wait.
//!
//! A handle of a future may be waited for by anybody, before its task has begun, and another pool's
//! tasks may come back to this one. A worker that runs nothing might then wait for what it alone
//! would run. So under `Any` it runs tasks meanwhile, also beyond [`MAX_NESTED_TASKS`]. Why not sleep
//! and lend its seat to a spare there: the spares are counted, not whom they serve, so the one that
//! is left may itself wait for this worker's fork.
//!
//! A spare whose turn is over may still have a fork of the worker that took its seat back. If it
//! blocks there, it stands in for itself. So a worker that sleeps for a fork lends its seat if the
//! pool has started spares.
//!
//! **The bound that remains:** under `Any` forks and scopes add at most `MAX_NESTED_TASKS` tasks to a
//! stack; waits for futures, broadcasts and other pools as many as wait so above each other. Under
//! the others a worker lends its seat while it waits for another pool, and sleeps if there is no
//! spare: pools that call each other to and fro need as many spares as there are calls inside each
//! other. While it waits for a future it sleeps (`Park` lends its seat): a pool all of whose
//! workers do polls nothing any more. A task that waits for a future whose poll lies below it on
//! the same stack waits for ever.

use machine::bomb::AbortOnUnwind;

use super::config::{MAX_NESTED_TASKS, Wait};
use super::core::SpareLease;
use super::worker::Worker;
use crate::sync::latch::Latch;

/// What a wait ends the process with that would unwind.
pub(crate) const UNWOUND: &str =
    "a wait in a thread pool unwound: others may still use what lies on its stack";

/// What a worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A fork, which the worker runs that the latch names.
    Fork,
    /// The tasks of a scope, which lie in the list of this worker's seat, at this level.
    Scope(usize),
    /// What may not have begun, or have been begun by whoever.
    Anywhere,
}

impl Worker {
    /// Waits until the latch is set, as the pool's [`Wait`] says.
    ///
    /// Ends the process rather than unwind: what the latch is for may still run, on what lies on
    /// this stack.
    pub(crate) fn wait_for(&self, latch: &Latch, awaited: Awaited) {
        let bomb = AbortOnUnwind::armed(UNWOUND);
        self.wait_here_for(latch, awaited);
        bomb.defuse();
    }

    fn wait_here_for(&self, latch: &Latch, awaited: Awaited) {
        match (self.pool().wait(), awaited) {
            (Wait::Any, _) if self.runs_any_task() => self.run_any_until(latch),
            // Somebody must run what is ready: what is waited for may be one of those tasks, or
            // wait for one.
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

    /// Lends its seat while it waits for a fork, if the pool has started spare threads. The thief
    /// may be a spare that is one too many by now. When that one blocks, it stands in for itself,
    /// and no worker is left that runs anything.
    fn lease_beside_spares(&self) -> Option<SpareLease<'_>> {
        self.pool().has_started_spares().then(|| SpareLease::take(self.core()))
    }

    /// Whether it runs any task while it waits here and now.
    pub(crate) fn runs_any_task(&self) -> bool {
        self.pool().wait() == Wait::Any && self.nested.get() < MAX_NESTED_TASKS
    }

    /// Waits for a latch that another pool's workers set. Their tasks may come back to this pool:
    /// if this worker runs nothing meanwhile, it lends its seat.
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

    /// Runs whatever is ready until the latch is set.
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

    /// Runs a task at `level` of its list, if there is one that nobody has begun.
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
                pool.spin_until(|| latch.is_set() || called());
                pool.sleep.sleep_until_named(self.index(), || latch.watch() && !called());
            }
        }
    }
}

impl Awaited {
    fn level(self) -> Option<usize> {
        match self {
            Self::Scope(level) => Some(level),
            Self::Fork | Self::Anywhere => None,
        }
    }
}
