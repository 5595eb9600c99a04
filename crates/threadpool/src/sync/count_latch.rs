//! A count of tasks that have not ended, and a latch that is set when all have.
//!
//! Scopes and broadcasts use it. It lies on the stack of the waiter. The task that takes the count
//! to zero sets the latch. Those two accesses are its last ones. Why not one word for both: a task
//! is counted by one locked instruction, and a watched latch needs an exchange.
//!
//! | `count` | the latch | |
//! | --- | --- | --- |
//! | above 0 | not set | so many have not ended; the waiter's own part may be one of them |
//! | 0, by a task | about to be set | the waiter waits for it |
//! | 0, by the waiter | never set | all tasks had ended before the waiter's part |
//!
//! # Invariants
//!
//! 1. A task that counts another one is counted itself, so the count cannot reach zero too soon.
//! 2. The waiter returns after the latch was set, or after its own part was the last to end.
//!
//! # Orderings
//!
//! `decrement` is AcqRel: each task releases what it did, the last one acquires all of that, and
//! hands it on with the latch. The waiter's own part publishes nothing. Its decrement is Acquire,
//! for the case that it is the last. An increment is Relaxed: it publishes nothing.

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::sync::Latch;

/// A count, and a latch that the last task sets.
pub struct CountLatch {
    /// Tasks that have not ended. Written by each of them, and by the waiter for its own part.
    count: AtomicUsize,
    /// Set by the task that takes the count to zero.
    latch: Latch,
}

impl CountLatch {
    /// Creates a latch for so many tasks that have not ended.
    #[inline]
    pub fn new(count: usize) -> Self {
        Self { count: AtomicUsize::fresh(count), latch: Latch::new() }
    }

    /// Returns the latch that the waiter waits for, unless its own part was the last.
    #[inline]
    pub fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Returns how many have not ended. A hint.
    pub fn count(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one more task. The caller is counted itself (Invariant 1).
    #[inline]
    pub fn increment(&self) {
        // Relaxed: nothing is published with it.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a task. If that was the last one, and the waiter sleeps or is about to,
    /// returns the latch: the caller must wake its waiter. The latch may be gone by then.
    ///
    /// # Safety
    ///
    /// Called once for each counted task, as its last access.
    #[inline]
    pub unsafe fn decrement(this: *const Self) -> Option<*const Latch> {
        // SAFETY: alive until the count is zero and the latch set, which is after this.
        let latch = unsafe { &raw const (*this).latch };
        // SAFETY: as above.
        let count = unsafe { &raw const (*this).count };
        // SAFETY: as above. AcqRel: the last task acquires what the others released, and hands it
        // to the waiter with the latch.
        let left = unsafe { (*count).fetch_sub(1, Ordering::AcqRel) } - 1;
        // SAFETY: the waiter waits for it, and only the last task sets it.
        (left == 0 && unsafe { Latch::set(latch) }).then_some(latch)
    }

    /// Counts the end of the waiter's own part. Returns whether it was the last. If not, the waiter
    /// must wait for the latch.
    #[must_use]
    pub fn decrement_own(&self) -> bool {
        // Acquire: if all tasks have ended, what they did is seen here. No task reads what the
        // waiter did.
        self.count.fetch_sub(1, Ordering::Acquire) == 1
    }
}
