//! A count of what has not ended, and a latch for who waits until all has.
//!
//! What a scope and a broadcast have in common. It lies on the stack of who waits: whoever takes the count to zero sets the latch, and both are his
//! last accesses. Why not one word for both: a task is counted with one locked instruction, and a latch that is watched is exchanged.
//!
//! | `count` | the latch | |
//! | --- | --- | --- |
//! | above 0 | not set | so many have not ended; the owner's own part may be one of them |
//! | 0, by one of them | about to be set | the owner waits for it |
//! | 0, by the owner | never set | all had ended before him |
//!
//! # Invariants
//!
//! 1. Who counts another is counted himself, so what is counted cannot end too soon.
//! 2. The owner leaves after the latch was set, or after he was the last.
//!
//! # Orderings
//!
//! `decrement`, AcqRel: each releases what it did; the last acquires that, and hands it on with the latch. Who ends the owner's part has nothing to hand
//! on: Acquire, for the case that he is the last. One more is counted Relaxed: nothing is published by it.

use machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::sync::latch::Latch;

/// A count and a latch that is set when it is zero.
pub struct CountLatch {
    count: AtomicUsize,
    latch: Latch,
}

impl CountLatch {
    /// One of so many that have not ended.
    #[inline]
    pub fn new(count: usize) -> Self {
        Self { count: AtomicUsize::fresh(count), latch: Latch::new() }
    }

    /// What the owner waits for, unless he was the last.
    #[inline]
    pub fn latch(&self) -> &Latch {
        &self.latch
    }

    /// How many have not ended. A hint.
    pub fn count(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one more; the caller is counted himself (Invariant 1).
    #[inline]
    pub fn increment(&self) {
        // Relaxed: nothing is published with it.
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One that is not the owner's has ended. The latch that was set, if the owner must be told: he sleeps, or is about to. It may be gone.
    ///
    /// # Safety
    ///
    /// Once for each that was counted, as its last access.
    #[inline]
    pub unsafe fn decrement(this: *const Self) -> Option<*const Latch> {
        // SAFETY: alive until the count is zero and the latch set, which is after this.
        let latch = unsafe { &raw const (*this).latch };
        // SAFETY: as above.
        let count = unsafe { &raw const (*this).count };
        // SAFETY: as above. AcqRel: who comes last has what the others did, and hands it to the owner with the latch.
        let left = unsafe { (*count).fetch_sub(1, Ordering::AcqRel) } - 1;
        // SAFETY: the owner waits for it; set once, by the last.
        (left == 0 && unsafe { Latch::set(latch) }).then_some(latch)
    }

    /// The owner's own part has ended. Whether that was the last; else he must wait for the latch.
    #[must_use]
    pub fn decrement_own(&self) -> bool {
        // Acquire: if all others have ended, what they did is seen here. Nobody needs what the owner did.
        self.count.fetch_sub(1, Ordering::Acquire) == 1
    }
}
