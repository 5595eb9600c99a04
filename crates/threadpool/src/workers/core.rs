//! A registry as its workers see it, whatever its strategy.

use core::fmt;
use std::sync::Arc;

use super::pool_state::Common;
use super::worker::{Stolen, Worker};
use crate::metrics::Metrics;
use crate::strategy::Place;
use crate::strategy::blocks::control_block::Task;

/// Where among the ready tasks of its place a new one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
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
    Fork(Stolen),
}

/// A registry to whoever does not know its strategy.
pub(crate) trait Core: Send + Sync {
    fn common(&self) -> &Common;

    /// Creates a task, and tells whoever should know.
    fn create(&self, place: Option<&Place>, order: Order, fill: &mut dyn FnMut(&Task));

    /// Takes what is ready: a task, else a fork.
    fn next(&self, worker: &Worker) -> Option<Work>;

    /// Takes what is ready and need not be taken from another worker: a task, else a fork.
    fn next_here(&self, worker: &Worker) -> Option<Work>;

    /// Takes what another worker has ready: a fork, else a task.
    fn next_of(&self, worker: &Worker, victim: usize) -> Option<Work>;

    fn release(&self, place: &Place, finished: Task);

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
    fn lend(&self) -> bool;

    /// A thread for which a spare was to be lent works again.
    fn take_back(&self);

    fn metrics(&self) -> Metrics;

    /// Another owner of the same; none while it is being dropped.
    fn arc(&self) -> Option<Arc<dyn Core>>;
}

/// A spare thread takes part while this is alive.
pub(crate) struct Lent<'c> {
    core: &'c dyn Core,
    at_once: bool,
}

impl<'c> Lent<'c> {
    /// Lends one, as soon as there is one to be had.
    pub(crate) fn to(core: &'c dyn Core) -> Self {
        Self { core, at_once: core.lend() }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.core.take_back();
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("at_once", &self.at_once).finish_non_exhaustive()
    }
}
