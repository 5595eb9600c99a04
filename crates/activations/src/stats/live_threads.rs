//! How many threads a runtime has, and when it has ended.
//!
//! Why not one count: every beginning and every end would write a line that all processors share. So each worker counts those that it has created and
//! those that have ended on it, and who wants to know adds up.
//!
//! # Invariants
//!
//! 1. A [`ThreadCounts`] is written by its worker only.
//! 2. A thread is counted as created before it can end. So if the ends that were counted up to one moment are as many as the beginnings up to a later
//!    one, all had ended in between; and no more begin once the runtime is closing and all have ended, because only threads spawn then.
//! 3. Who ends the runtime says so before it asks who waits for that; who waits says so before it looks. Both under a lock, so one sees the other.
//!
//! # Orderings
//!
//! What a thread had created is counted before its end: the ends are stored with Release, loaded with Acquire, and loaded first. What was created from
//! outside is counted before `close`, a Release, and `is_done`'s look at that is an Acquire. That of two workers which both see an end one sees the other's
//! takes a fence, which they have when they go to sleep (`parked.rs`).

use machine::atomic::{AtomicBool, AtomicU64, Fresh, Ordering};
use machine::clock::Deadline;
use stanchion_competitive::Mutex;

use crate::api::park;
use crate::thread::header::{self as thread, Thread};

/// What a worker has counted.
pub(crate) struct ThreadCounts {
    created: AtomicU64,
    ended: AtomicU64,
}

impl ThreadCounts {
    pub(crate) fn new() -> Self {
        Self { created: AtomicU64::fresh(0), ended: AtomicU64::fresh(0) }
    }

    /// A thread has been created. By the worker.
    pub(crate) fn creation(&self) {
        // Relaxed: of the thread's own threads, its end says more. The thread is handed on with more than that.
        self.created.store(self.created.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// A thread has ended. By the worker.
    pub(crate) fn end(&self) {
        // Release: pairs with the Acquire of `ended`.
        self.ended.store(self.ended.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    fn ended(&self) -> u64 {
        // Acquire: pairs with the Release of `end`: what the threads had created is counted.
        self.ended.load(Ordering::Acquire)
    }

    fn created(&self) -> u64 {
        // Relaxed: read after the ends.
        self.created.load(Ordering::Relaxed)
    }
}

/// What a runtime has counted, beside its workers.
pub(crate) struct LiveThreads {
    /// Threads that were spawned by none of its workers.
    outside: AtomicU64,
    closing: AtomicBool,
    over: AtomicBool,
    /// Who waits for the end.
    closer: Mutex<Option<Thread>>,
}

impl LiveThreads {
    pub(crate) fn new() -> Self {
        Self {
            outside: AtomicU64::fresh(0),
            closing: AtomicBool::fresh(false),
            over: AtomicBool::fresh(false),
            closer: Mutex::new(None),
        }
    }

    /// A thread has been created by none of the workers.
    pub(crate) fn creation_outside(&self) {
        // Relaxed: the thread is handed on with more than that.
        self.outside.fetch_add(1, Ordering::Relaxed);
    }

    /// How many threads have ended, and, read after that, how many have been created (Invariant 2).
    pub(crate) fn ended_and_created<'c>(
        &self,
        counts: impl Iterator<Item = &'c ThreadCounts> + Clone,
    ) -> (u64, u64) {
        let ended = counts.clone().map(ThreadCounts::ended).sum();
        // Relaxed: after the Acquire of those, or of `closing`.
        let outside = self.outside.load(Ordering::Relaxed);
        (ended, outside + counts.map(ThreadCounts::created).sum::<u64>())
    }

    /// No more threads will come from outside.
    pub(crate) fn close(&self) {
        // Release: pairs with the Acquire of `is_done`.
        self.closing.store(true, Ordering::Release);
    }

    /// Whether it is closing, and has no thread any more.
    pub(crate) fn is_done<'c>(&self, counts: impl Iterator<Item = &'c ThreadCounts> + Clone) -> bool {
        // Acquire: pairs with the Release of `close`, before which the last thread was spawned from outside.
        if !self.closing.load(Ordering::Acquire) {
            return false;
        }
        let (ended, created) = self.ended_and_created(counts);
        ended == created
    }

    /// All has ended: says so, and calls who waits for that.
    pub(crate) fn end(&self) {
        // Relaxed: see Invariant 3.
        self.over.store(true, Ordering::Relaxed);
        let closer = self.closer.lock().take();
        closer.inspect(Thread::notify);
    }

    /// Whether all has ended.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: it only says that there is nothing more to do.
        self.over.load(Ordering::Relaxed)
    }

    /// Waits until all has ended. By one thread.
    pub(crate) fn wait_for_end(&self) {
        *self.closer.lock() = Some(thread::current());
        park::wait_until(Deadline::NEVER, || self.is_over());
    }
}
