//! What belongs to one worker and is seen by others.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::presence::{self, Presence};
use stanchion_competitive::Mutex;

use super::core::Core;
use super::monitor::Suspicion;
use super::pool_state::{Common, Fate};
use super::waiting_futures::Held;
use super::worker::{Fork, Worker};
use crate::metrics::Counters;
use crate::queues::fifo::Fifo;
use crate::queues::fork_stack::Forks;
use crate::queues::scope_tasks::Listed;

/// What is meant for one worker only. It is called once: by that worker, or without one if the
/// seat's thread has ended and no other one comes.
pub(crate) type Mail = MailOf<'static>;
/// Mail that borrows.
pub(crate) type MailOf<'a> = Box<dyn FnOnce(&Common, Option<&Worker>) + Send + 'a>;

/// A task of a scope whose waiter runs no others.
pub(crate) type Own = Box<dyn FnOnce(&Worker) + Send>;

/// A closure that no scope waits for.
pub(crate) type Detached = Box<dyn FnOnce(&Worker, Fate) + Send>;

pub(crate) const UNSEEN: usize = usize::MAX;

/// What belongs to one worker and is seen by others.
pub(crate) struct Seat {
    worker: CachePadded<Worker>,
    pub(crate) orders: AtomicU32,
    pub(super) mail: Mutex<VecDeque<Mail>>,
    /// By what number the kernel's records of its thread are asked for, and one more; 0 for a seat
    /// without a thread, [`UNSEEN`] without records.
    pub(crate) presence: AtomicUsize,
    pub(crate) counters: Counters,
    /// Futures that began to wait here.
    pub(crate) futures: Held,
    /// Tasks of its scopes, if it runs no others while it waits.
    pub(crate) listed: Listed<Own>,
    /// What its worker has created by `spawn_fifo`, outside of scopes.
    pub(super) fifo: Fifo<Detached>,
    /// Whether it has blocked in a task.
    pub(crate) suspicion: Suspicion,
}

// SAFETY: `worker` is touched by the thread that has the seat alone, but for its forks, which
// threads may share; all else is atomic, or has its lock.
unsafe impl Sync for Seat {}
// SAFETY: as above; a worker that no thread has begins anew on the next one.
unsafe impl Send for Seat {}

impl Seat {
    pub(super) fn new(index: usize) -> Self {
        Self {
            worker: CachePadded::new(Worker::vacant(index)),
            orders: AtomicU32::fresh(0),
            mail: Mutex::new(VecDeque::new()),
            presence: AtomicUsize::fresh(0),
            counters: Counters::new(),
            futures: Held::new(),
            listed: Listed::new(),
            fifo: Fifo::new(),
            suspicion: Suspicion::new(),
        }
    }

    /// The forks of the seat's worker.
    #[inline]
    pub(crate) fn forks(&self) -> &Forks<Fork> {
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
    pub(crate) unsafe fn begin_worker(&self, core: *const dyn Core) -> &Worker {
        // SAFETY: the caller's promise.
        unsafe { self.worker.begin(core) };
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
