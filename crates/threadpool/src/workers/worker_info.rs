//! The part of a worker that other threads see: its signals, its mailbox, its counters and its
//! queues.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Fresh};

use crate::metrics::Counters;
use crate::queues::{Fifo, ForkStack, ScopeTasks};
use crate::workers::{BlockObservation, Core, Fate, Fork, PoolState, WaitingFutures, Worker};

/// A call that is meant for one worker only. It is made once: by that worker, or without a worker
/// if the slot's thread has ended and no other one comes.
pub(crate) type Call = CallOf<'static>;
/// A call that borrows.
pub(crate) type CallOf<'a> = Box<dyn FnOnce(&PoolState, Option<&Worker>) + Send + 'a>;

/// A task of a scope, if the waiter runs no other tasks.
pub(crate) type ScopeTask = Box<dyn FnOnce(&Worker) + Send>;

/// A closure that no scope waits for.
pub(crate) type Detached = Box<dyn FnOnce(&Worker, Fate) + Send>;

/// The `presence` of a thread of which the pool sees no records.
pub(crate) const UNSEEN: usize = usize::MAX;

/// The part of a worker slot that other threads see.
pub(crate) struct WorkerInfo {
    /// The worker. Used by the slot's thread alone, except its forks.
    worker: CachePadded<Worker>,
    /// Signals to the worker (`signals.rs`). Written by all threads of the pool.
    pub(crate) signals: AtomicU32,
    /// Calls that only this worker makes. Broadcasts put them in.
    pub(super) mailbox: Mutex<VecDeque<Call>>,
    /// The number under which the kernel's records of its thread are asked for, plus one. 0 for a
    /// slot without a thread, [`UNSEEN`] without records. Written by the slot's thread.
    pub(crate) presence: AtomicUsize,
    /// Written by the worker only.
    pub(crate) counters: Counters,
    /// Futures that began to wait on this worker.
    pub(crate) waiting_futures: WaitingFutures,
    /// Tasks of its scopes, if it runs no other tasks while it waits.
    pub(crate) scope_tasks: ScopeTasks<ScopeTask>,
    /// The closures that its worker has created by `spawn_fifo`, outside of scopes.
    pub(super) fifo: Fifo<Detached>,
    /// The observation by other threads: whether it has blocked in a task.
    pub(crate) observed: BlockObservation,
}

// SAFETY: `worker` is touched by the slot's thread alone, except its forks, which threads may
// share. All else is atomic, or has its lock.
unsafe impl Sync for WorkerInfo {}
// SAFETY: as above. A worker that no thread uses is bound anew by the next one.
unsafe impl Send for WorkerInfo {}

impl WorkerInfo {
    /// Creates a slot without a thread.
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

    /// Returns the forks of the slot's worker.
    #[inline]
    pub(crate) fn forks(&self) -> &ForkStack<Fork> {
        &self.worker.forks
    }

    /// Returns the slot's worker, which has been bound.
    ///
    /// # Safety
    ///
    /// The slot is the calling thread's.
    pub(crate) unsafe fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Binds the slot's worker to the calling thread, in the pool of `core`.
    ///
    /// # Safety
    ///
    /// The slot is the caller's alone for as long as it uses the worker, and `core` lives longer.
    pub(crate) unsafe fn bind_worker(&self, core: *const dyn Core) -> &Worker {
        // SAFETY: the caller's promise.
        unsafe { self.worker.bind(core) };
        &self.worker
    }
}
