//! The registry as its workers see it: [`Core`] hides the type of the strategy.

use core::fmt;
use std::sync::Arc;

use crate::metrics::Metrics;
use crate::strategy::WorkerSlot;
use crate::strategy::blocks::Task;
use crate::workers::{PoolState, StolenFork, Worker};

/// The position of a new task among the ready tasks of its worker slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// The strategy chooses the position.
    Usual,
    /// Behind all that is ready.
    Last,
}

/// Something that a worker has found to run.
#[derive(Debug)]
pub(crate) enum Work {
    /// A task that was ready.
    Task(Task),
    /// A fork of another worker.
    Fork(StolenFork),
}

/// A registry without the type of its strategy.
pub(crate) trait Core: Send + Sync {
    /// Returns the state that does not depend on the strategy.
    fn pool(&self) -> &PoolState;

    /// Creates a task and wakes the workers that its strategy names.
    fn create(
        &self,
        slot: Option<&WorkerSlot>,
        position: QueuePosition,
        fill: &mut dyn FnMut(&Task),
    );

    /// Takes ready work: a task, else a fork.
    fn find_work(&self, worker: &Worker) -> Option<Work>;

    /// Takes ready work that need not be taken from another worker: a task, else a fork.
    fn find_local_work(&self, worker: &Worker) -> Option<Work>;

    /// Takes work that another worker has ready: a fork, else a task.
    fn find_work_of(&self, worker: &Worker, victim: usize) -> Option<Work>;

    /// Gives back the block of a task that has finished.
    fn release_block(&self, slot: &WorkerSlot, finished: Task);

    /// Searches for the worker, which has found nothing, and puts it to sleep, until there is work,
    /// or `stop` says that the worker need not go on, or it has calls. `watch` is asked before each
    /// sleep whether the worker may sleep. A thread that makes `stop` true wakes the worker then.
    fn search(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work>;

    /// Has a spare thread take part until [`return_spare`](Self::return_spare), as soon as there is
    /// one. Returns whether there was one at once.
    fn lend_spare(&self) -> bool;

    /// Ends one lease: the thread for which a spare was leased works again.
    fn return_spare(&self);

    /// Returns what the pool has done.
    fn metrics(&self) -> Metrics;

    /// Returns another owner of the registry; `None` while the registry is being dropped.
    fn to_arc(&self) -> Option<Arc<dyn Core>>;
}

/// A lease of a spare thread, which takes part while this is alive.
pub(crate) struct SpareLease<'c> {
    core: &'c dyn Core,
    /// True if a spare took part as soon as the lease began.
    at_once: bool,
}

impl<'c> SpareLease<'c> {
    /// Leases a spare, which begins as soon as there is one.
    pub(crate) fn take(core: &'c dyn Core) -> Self {
        Self { core, at_once: core.lend_spare() }
    }
}

impl Drop for SpareLease<'_> {
    fn drop(&mut self) {
        self.core.return_spare();
    }
}

impl fmt::Debug for SpareLease<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareLease").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}
