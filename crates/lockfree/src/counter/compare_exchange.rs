//! A counter by compare-exchange: load the count, and exchange it for the sum if no thread came
//! between.
//!
//! Why, where there is fetch-and-add: every lock-free structure with one word does this. The
//! counter shows it at its barest, and shows what contention costs such a loop. A failed exchange
//! has moved the line for nothing, so after a failure the thread stays away for a while
//! ([`Backoff`]).
//!
//! ABA is no danger here: a count that is the same again is the same count.
//!
//! # Orderings
//!
//! All are Relaxed: the additions to one word are in one order anyhow, and a counter orders nothing
//! else.
//!
//! Source: Michael and Scott 1998, section 4.4; the backoff is theirs as well.

use stanchion_machine::atomic::{AtomicU64, Ordering};
use stanchion_spin::Backoff;

use super::{Counter, FetchAdd, one_word};
use crate::Progress;

/// A counter by compare-exchange with backoff.
///
/// | | |
/// | --- | --- |
/// | progress | lock-free: an addition fails only because another succeeded |
/// | an addition | alone, a load and a locked instruction; contended, growing pauses |
/// | size | 8 bytes |
///
/// ```
/// use stanchion_lockfree::{CompareExchangeCounter, Counter, FetchAdd};
///
/// let counter = CompareExchangeCounter::new(40);
/// assert_eq!(counter.fetch_add(2), 40);
/// assert_eq!(counter.get(), 42);
/// ```
pub struct CompareExchangeCounter {
    /// The count. Written by every thread that adds.
    count: AtomicU64,
}

impl CompareExchangeCounter {
    /// Returns a counter that starts at `count`.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { count: AtomicU64::new(count) }
    }
}

impl Counter for CompareExchangeCounter {
    const PROGRESS: Progress = Progress::LockFree;

    #[inline]
    fn add(&self, amount: u64) {
        self.fetch_add(amount);
    }

    #[inline]
    fn get(&self) -> u64 {
        // Relaxed: a number, nothing else.
        self.count.load(Ordering::Relaxed)
    }
}

impl FetchAdd for CompareExchangeCounter {
    #[inline]
    fn fetch_add(&self, amount: u64) -> u64 {
        let mut backoff = Backoff::new();
        loop {
            let count = self.get();
            let sum = count.wrapping_add(amount);
            // Relaxed: a number, nothing else.
            let exchanged =
                self.count.compare_exchange(count, sum, Ordering::Relaxed, Ordering::Relaxed);
            if exchanged.is_ok() {
                return count;
            }
            backoff.spin();
        }
    }
}

one_word!(CompareExchangeCounter);
