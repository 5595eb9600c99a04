//! The part of a worker that only the worker itself touches, and its way in and out of the
//! scheduler. The part that other threads touch is in `processors/worker_record.rs`.
//!
//! # Invariants
//!
//! 1. A [`Worker`] lies on its kernel thread's stack, and `context.rs` points to it while it does.
//! 2. While a thread runs, `current` points to the thread's handle, and `suspender` to the means
//!    by which its fiber is left. In the scheduler loop both are null. From a thread's last
//!    exchange (`thread/completion.rs`) to `thread_ended`, which follows at once, no code looks at
//!    `current`.

use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use std::sync::Arc;

use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::Pinned;

use super::steal_throttle::StealThrottle;
use super::turns::{BoundThreads, CurrentTurn, TurnCounts};
use crate::processors::slot::SlotContents;
use crate::processors::worker_record::WorkerRecord;
use crate::queues::prioritized::LocalQueue;
use crate::runtime::state::RuntimeState;
use crate::thread::fiber::Suspender;
use crate::thread::handle::Thread;
use crate::thread::header::ThreadFiber;
use crate::thread::id::ThreadId;

/// The part of a worker that only the worker itself touches.
pub(crate) struct Worker {
    pub(crate) runtime: Arc<RuntimeState>,
    /// The worker's record in the runtime. A turn asks for it ten times.
    record: NonNull<WorkerRecord>,
    /// The worker's number.
    pub(super) index: usize,
    /// Set while the worker is in the scheduler and owns its slot.
    pub(super) has_slot: Cell<bool>,
    /// The thread that runs (Invariant 2).
    pub(super) current: Cell<*const Thread>,
    /// The means to leave the fiber of the thread that runs (Invariant 2).
    pub(super) suspender: Cell<*const Suspender<Thread>>,
    /// Ready threads that only this worker can run.
    pub(super) local_queue: RefCell<LocalQueue>,
    /// Free fibers that the worker keeps for itself.
    pub(super) free_fibers: RefCell<Vec<ThreadFiber>>,
    /// The number of times that the worker has looked for a thread.
    pub(super) looks: Cell<u32>,
    /// The turns since the last one of a new thread.
    pub(super) turn_counts: TurnCounts,
    /// The slot that the worker observes next.
    pub(super) next_observed: Cell<usize>,
    /// Whether steals have been paying.
    pub(super) steal_throttle: StealThrottle,
    /// The number of threads that are bound to the worker.
    pub(super) bound_threads: BoundThreads,
    /// The turn of the thread that runs.
    pub(super) turn: CurrentTurn,
    /// Set when the worker was woken and has not run a thread since.
    pub(super) was_woken: Cell<bool>,
    /// Set when the worker may have been the timekeeper (`queues/timers.rs`) when it last slept.
    pub(super) may_be_timekeeper: Cell<bool>,
    /// The machine's processor that the worker is pinned to, if it is.
    pub(super) pinned: RefCell<Option<(usize, Pinned)>>,
    /// The thread that panics, and the time until which it may keep others waiting
    /// (`panicking.rs`).
    pub(super) panic_limit: Cell<Option<(ThreadId, Deadline)>>,
    /// The threads that have left their stacks here while they panicked, and have not continued.
    pub(super) panicking: Cell<usize>,
}

impl Worker {
    pub(super) fn new(runtime: Arc<RuntimeState>, index: usize) -> Self {
        let record = NonNull::from(runtime.workers.record(index));
        Self {
            runtime,
            record,
            index,
            has_slot: Cell::new(true),
            current: Cell::new(core::ptr::null()),
            suspender: Cell::new(core::ptr::null()),
            local_queue: RefCell::default(),
            free_fibers: RefCell::default(),
            looks: Cell::new(0),
            turn_counts: TurnCounts::new(),
            next_observed: Cell::new(0),
            steal_throttle: StealThrottle::new(),
            bound_threads: BoundThreads::default(),
            turn: CurrentTurn::new(),
            was_woken: Cell::new(false),
            may_be_timekeeper: Cell::new(false),
            pinned: RefCell::default(),
            panic_limit: Cell::new(None),
            panicking: Cell::new(0),
        }
    }

    pub(crate) fn record(&self) -> &WorkerRecord {
        // SAFETY: `runtime` is never replaced, and `Workers` keeps the boxed slice of records that
        // it was made with. Only shared references to a record exist.
        unsafe { self.record.as_ref() }
    }

    /// Returns the thread that runs; null in the scheduler loop.
    pub(crate) fn current(&self) -> *const Thread {
        self.current.get()
    }

    /// Calls `body` with the thread that runs, if one does.
    pub(crate) fn with_current<R>(&self, body: impl FnOnce(&Thread) -> R) -> Option<R> {
        // SAFETY: Invariant 2.
        unsafe { self.current.get().as_ref() }.map(body)
    }

    /// Returns the means by which the current thread is about to leave its fiber; null in the
    /// scheduler loop.
    pub(super) fn suspender_to_leave(&self) -> *const Suspender<Thread> {
        // The standard library counts panics by kernel thread.
        self.with_current(|thread| {
            thread.header().note_leaving(self.index, stanchion_machine::thread::panicking);
        });
        self.suspender.get()
    }

    /// Goes into the scheduler. Returns whether the worker owns its slot.
    pub(super) fn enter(&self) -> bool {
        let record = self.record();
        let has_slot = self.has_slot.get() || record.ownership().enter(record.slot());
        self.has_slot.set(has_slot);
        has_slot
    }

    /// Goes out of the scheduler, still owning the slot.
    pub(super) fn leave(&self) {
        let record = self.record();
        self.has_slot.set(false);
        record.set_local_ready(self.local_queue.borrow().len());
        record.ownership().leave(record.slot());
    }

    /// Calls `body` with the contents of the slot, or with `None` if the worker owns it no more.
    pub(super) fn with_slot<R>(&self, body: impl FnOnce(Option<&mut SlotContents>) -> R) -> R {
        let was_inside = self.has_slot.get();
        if !self.enter() {
            return body(None);
        }
        let slot = self.runtime.processors.slot(self.record().slot());
        // SAFETY: the worker owns the slot, and is in the scheduler.
        let result = unsafe { slot.with(|contents| body(Some(contents))) };
        if !was_inside {
            self.leave();
        }
        result
    }

    /// Moves the threads from the mailbox to the local queue.
    pub(super) fn read_mailbox(&self) {
        let mut local_queue = self.local_queue.borrow_mut();
        self.record().mailbox.take(|thread| local_queue.push_back(thread));
    }
}
