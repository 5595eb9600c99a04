//! A counter over load-linked and store-conditional: the one that the 1998 paper measured on the
//! Challenge. Its processors have these two and no other atomic instruction.
//!
//! Why not 64 bits: a [`LinkedCell`] has 64 bits in all, and half of them count stores. A wider
//! count would have to lie in a block of its own that the cell names, with a block in reserve for
//! each thread. For a counter that would be all cost, because a
//! [`CompareExchangeCounter`](super::CompareExchangeCounter) of 64 bits needs no tag. So this
//! counter tells how wide it is.
//!
//! # Orderings
//!
//! Those of [`LinkedCell`], which are more than a counter needs.
//!
//! Source: Michael and Scott 1998, section 4.4.

use stanchion_spin::Backoff;

use super::{Counter, FetchAdd, one_word};
use crate::{LinkedCell, Progress};

/// A counter of 32 bits by load-linked and store-conditional, with backoff.
///
/// | | |
/// | --- | --- |
/// | progress | lock-free: an addition fails only because another succeeded |
/// | an addition | alone, a load and a locked instruction; contended, growing pauses |
/// | wraps around | at 2^32: amounts are added modulo that |
/// | size | 8 bytes |
///
/// ```
/// use stanchion_lockfree::{Counter, FetchAdd, LinkedCounter};
///
/// let counter = LinkedCounter::new(u32::MAX);
/// assert_eq!(counter.fetch_add(2), u64::from(u32::MAX));
/// assert_eq!(counter.get(), 1);
/// assert_eq!(LinkedCounter::BITS, 32);
/// ```
pub struct LinkedCounter {
    /// The count. Written by every thread that adds.
    count: LinkedCell,
}

impl LinkedCounter {
    /// Returns a counter that starts at `count`.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self { count: LinkedCell::new(count) }
    }
}

impl Counter for LinkedCounter {
    const PROGRESS: Progress = Progress::LockFree;
    const BITS: u32 = u32::BITS;

    #[inline]
    fn add(&self, amount: u64) {
        self.fetch_add(amount);
    }

    #[inline]
    fn get(&self) -> u64 {
        u64::from(self.count.load())
    }
}

impl FetchAdd for LinkedCounter {
    #[inline]
    fn fetch_add(&self, amount: u64) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            let link = self.count.load_linked();
            // Modulo 2^32, as the type's docs say.
            if link.store_conditional(link.value().wrapping_add(amount as u32)) {
                return u64::from(link.value());
            }
            backoff.spin();
        }
    }
}

one_word!(LinkedCounter);
