//! What belongs to one worker and is seen by others.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::presence::{self, Presence};
use stanchion_competitive::Mutex;

use super::core::Core;
use super::monitor::BlockObservation;
use super::pool_state::{Fate, PoolState};
use super::waiting_futures::WaitingFutures;
use super::worker::{Fork, Worker};
use crate::metrics::Counters;
use crate::queues::fifo::Fifo;
use crate::queues::fork_stack::ForkStack;
use crate::queues::scope_tasks::ScopeTasks;

/// What is meant for one worker only. It is called once: by that worker, or without one if the
/// seat's thread has ended and no other one comes.
pub(crate) type Call = CallOf<'static>;
/// Mail that borrows.
pub(crate) type CallOf<'a> = Box<dyn FnOnce(&PoolState, Option<&Worker>) + Send + 'a>;

/// A task of a scope whose waiter runs no others.
pub(crate) type ScopeTask = Box<dyn FnOnce(&Worker) + Send>;

/// A closure that no scope waits for.
pub(crate) type Detached = Box<dyn FnOnce(&Worker, Fate) + Send>;

pub(crate) const UNSEEN: usize = usize::MAX;

/// What belongs to one worker and is seen by others.
pub(crate) struct WorkerInfo {
    worker: CachePadded<Worker>,
    pub(crate) signals: AtomicU32,
    pub(super) mailbox: Mutex<VecDeque<Call>>,
    /// By what number the kernel's records of its thread are asked for, and one more; 0 for a seat
    /// without a thread, [`UNSEEN`] without records.
    pub(crate) presence: AtomicUsize,
    pub(crate) counters: Counters,
    /// Futures that began to wait here.
    pub(crate) waiting_futures: WaitingFutures,
    /// Tasks of its scopes, if it runs no others while it waits.
    pub(crate) scope_tasks: ScopeTasks<ScopeTask>,
    /// What its worker has created by `spawn_fifo`, outside of scopes.
    pub(super) fifo: Fifo<Detached>,
    /// Whether it has blocked in a task.
    pub(crate) observed: BlockObservation,
}

// SAFETY: `worker` is touched by the thread that has the seat alone, but for its forks, which
// threads may share; all else is atomic, or has its lock.
unsafe impl Sync for WorkerInfo {}
// SAFETY: as above; a worker that no thread has begins anew on the next one.
unsafe impl Send for WorkerInfo {}

impl WorkerInfo {
    pub(super) fn new(index: usize) -> Self {
        Self {
            worker: CachePadded::new(Worker::vacant(index)),
            signals: AtomicU32::fresh(0),
            mailbox: Mutex::new(VecDeque::new()),
            presence: AtomicUsize::fresh(0),
            counters: Counters::new(),
            waiting_futures: WaitingFutures::new(),
            scope_tasks: ScopeTasks::new(),
            fifo: Fifo::new(),
            observed: BlockObservation::new(),
        }
    }

    /// The forks of the seat's worker.
    #[inline]
    pub(crate) fn forks(&self) -> &ForkStack<Fork> {
        &self.worker.forks
    }

    /// The seat's worker, which has begun.
    ///
    /// # Safety
    ///
    /// The seat is the calling thread's.
    pub(crate) unsafe fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Begins the life of the seat's worker, in the pool of `core`.
    ///
    /// # Safety
    ///
    /// The seat is the caller's alone for as long as it uses the worker, and `core` lives longer.
    pub(crate) unsafe fn bind_worker(&self, core: *const dyn Core) -> &Worker {
        // SAFETY: the caller's promise.
        unsafe { self.worker.bind(core) };
        &self.worker
    }

    /// Whether its thread runs, or would if it had a processor. Yes, if nobody can tell.
    pub(super) fn can_run(&self) -> bool {
        // Relaxed: a hint.
        match self.presence.load(Ordering::Relaxed) {
            0 => false,
            UNSEEN => true,
            number => presence::of(number - 1) != Presence::Blocked,
        }
    }
}
