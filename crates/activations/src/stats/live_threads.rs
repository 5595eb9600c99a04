//! The live-thread count, which says when a runtime has ended.
//!
//! Why not one count: every creation and every end would write a line that all processors share. So
//! each worker counts the threads that it has created and those that have ended on it, and a reader
//! adds up.
//!
//! # Invariants
//!
//! 1. A [`ThreadCounts`] is written by its worker only.
//! 2. A thread is counted as created before it can end. So if the ends counted up to one moment are
//!    as many as the creations counted up to a later one, all threads had ended in between. No more
//!    are created once the runtime is closing and all have ended, because from then on only threads
//!    spawn.
//! 3. The worker that ends the runtime sets `is_over` before it takes the waiter. The waiter is set
//!    before its thread looks at `is_over`. Both happen under a lock, so one sees the other.
//!
//! # Orderings
//!
//! All creations by a thread are counted before its end: the ends are stored with Release, loaded
//! with Acquire, and loaded first. A creation from outside is counted before `close`, a Release,
//! and `is_done` looks at that with Acquire. Two workers may each count the last end. At least one
//! of them must see the other's count, so both issue a fence before they sleep
//! (`processors/parking.rs`).

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicBool, AtomicU64, Fresh, Ordering};

use crate::thread::handle::Thread;

/// The counts of one worker.
pub struct ThreadCounts {
    /// Threads that the worker has created. Written by the worker.
    created: AtomicU64,
    /// Threads that have ended on the worker. Written by the worker.
    ended: AtomicU64,
}

impl ThreadCounts {
    /// Returns counts of zero.
    pub fn new() -> Self {
        Self { created: AtomicU64::fresh(0), ended: AtomicU64::fresh(0) }
    }

    /// Counts a thread that is created. Called by the worker.
    pub fn count_creation(&self) {
        // Relaxed: the end of the creating thread publishes it. The new thread is handed on with a
        // Release.
        self.created.store(self.created.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a thread that has ended. Called by the worker.
    pub fn count_end(&self) {
        // Release: pairs with the Acquire of `ended`.
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn ended(&self) -> u64 {
        // Acquire: pairs with the Release of `count_end`: what the ended threads created is
        // counted.
        self.ended.load(Ordering::Acquire)
    }

    fn created(&self) -> u64 {
        // Relaxed: read after the ends.
        self.created.load(Ordering::Relaxed)
    }
}

/// The counts of a runtime that no worker keeps, and its end.
pub struct LiveThreads {
    /// Threads that were not created by a worker of the runtime. Written by the threads that spawn
    /// them.
    created_outside: AtomicU64,
    /// Set when no more threads come from outside, by the drop of the runtime.
    is_closing: AtomicBool,
    /// Set when all has ended, by the worker that finds so.
    is_over: AtomicBool,
    /// The thread that waits for the end. Set by that thread.
    waiter: Mutex<Option<Thread>>,
}

impl LiveThreads {
    /// Returns the count of a runtime without threads.
    pub fn new() -> Self {
        Self {
            created_outside: AtomicU64::fresh(0),
            is_closing: AtomicBool::fresh(false),
            is_over: AtomicBool::fresh(false),
            waiter: Mutex::new(None),
        }
    }

    /// Counts a thread that no worker of the runtime has created.
    pub fn count_creation_outside(&self) {
        // Relaxed: the thread is handed on with a Release.
        self.created_outside.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of threads that have ended and, read after that, of those that have been
    /// created (Invariant 2).
    pub fn ended_and_created<'c>(
        &self,
        counts: impl Iterator<Item = &'c ThreadCounts> + Clone,
    ) -> (u64, u64) {
        let ended = counts.clone().map(ThreadCounts::ended).sum();
        // Relaxed: after the Acquire of those, or of `is_closing`.
        let outside = self.created_outside.load(Ordering::Relaxed);
        (ended, outside + counts.map(ThreadCounts::created).sum::<u64>())
    }

    /// Says that no more threads come from outside.
    pub fn close(&self) {
        // Release: pairs with the Acquire of `is_done`.
        self.is_closing.store(true, Ordering::Release);
    }

    /// Returns whether the runtime is closing and has no thread any more.
    pub fn is_done<'c>(&self, counts: impl Iterator<Item = &'c ThreadCounts> + Clone) -> bool {
        // Acquire: pairs with the Release of `close`, before which the last thread was spawned from
        // outside.
        if !self.is_closing.load(Ordering::Acquire) {
            return false;
        }
        let (ended, created) = self.ended_and_created(counts);
        ended == created
    }

    /// Says that all has ended, and wakes the thread that waits for that.
    pub fn end(&self) {
        // Relaxed: see Invariant 3.
        self.is_over.store(true, Ordering::Relaxed);
        let waiter = self.waiter.lock().take();
        waiter.inspect(Thread::notify);
    }

    /// Returns whether all has ended.
    pub fn is_over(&self) -> bool {
        // Relaxed: it only says that there is nothing more to do.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Has `waiter` notified of the end. It looks at `is_over` after this (Invariant 3).
    pub(crate) fn set_waiter(&self, waiter: Thread) {
        *self.waiter.lock() = Some(waiter);
    }
}
