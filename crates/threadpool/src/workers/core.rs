//! A registry as its workers see it, whatever its strategy.

use core::fmt;
use std::sync::Arc;

use super::pool_state::PoolState;
use super::worker::{StolenFork, Worker};
use crate::metrics::Metrics;
use crate::strategy::WorkerSlot;
use crate::strategy::blocks::control_block::Task;

/// Where among the ready tasks of its place a new one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// Wherever the strategy puts it.
    Usual,
    /// Behind what is ready.
    Last,
}

/// What a worker finds to run.
#[derive(Debug)]
pub(crate) enum Work {
    /// A task that was ready.
    Task(Task),
    /// A fork of another worker.
    Fork(StolenFork),
}

/// A registry to whoever does not know its strategy.
pub(crate) trait Core: Send + Sync {
    fn pool(&self) -> &PoolState;

    /// Creates a task, and tells whoever should know.
    fn create(
        &self,
        slot: Option<&WorkerSlot>,
        position: QueuePosition,
        fill: &mut dyn FnMut(&Task),
    );

    /// Takes what is ready: a task, else a fork.
    fn find_work(&self, worker: &Worker) -> Option<Work>;

    /// Takes what is ready and need not be taken from another worker: a task, else a fork.
    fn find_local_work(&self, worker: &Worker) -> Option<Work>;

    /// Takes what another worker has ready: a fork, else a task.
    fn find_work_of(&self, worker: &Worker, victim: usize) -> Option<Work>;

    fn release_block(&self, slot: &WorkerSlot, finished: Task);

    /// The worker has found nothing: searches and sleeps until there is a task, or `stop` says that
    /// the worker need not go on, or it has orders. `watch` is asked before it sleeps: whether it
    /// may, and whoever makes `stop` true will tell it.
    fn search(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work>;

    /// Has a spare thread take part until [`take_back`](Self::take_back), as soon as there is one
    /// to be had. Says whether there was at once.
    fn lend_spare(&self) -> bool;

    /// A thread for which a spare was to be lent works again.
    fn return_spare(&self);

    fn metrics(&self) -> Metrics;

    /// Another owner of the same; none while it is being dropped.
    fn to_arc(&self) -> Option<Arc<dyn Core>>;
}

/// A spare thread takes part while this is alive.
pub(crate) struct SpareLease<'c> {
    core: &'c dyn Core,
    at_once: bool,
}

impl<'c> SpareLease<'c> {
    /// Lends one, as soon as there is one to be had.
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
        f.debug_struct("Lent").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}
