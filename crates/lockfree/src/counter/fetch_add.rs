//! Fetch-and-add: the processor's own counter.
//!
//! Why anything else: an architecture may not have the instruction, and on every one the line of
//! the counter still has to come to each thread in turn. For the first see
//! [`CompareExchangeCounter`](super::CompareExchangeCounter), for the second
//! [`ShardedCounter`](super::ShardedCounter).
//!
//! # Orderings
//!
//! All are Relaxed: the additions to one word are in one order anyhow, and a counter orders nothing
//! else.
//!
//! Source: Michael and Scott 1998, section 4.4.

use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::{Counter, FetchAdd, one_word};
use crate::Progress;

/// A counter by fetch-and-add.
///
/// | | |
/// | --- | --- |
/// | progress | wait-free; lock-free where fetch-and-add is itself a loop, as on ARM before 8.1 |
/// | an addition | one locked instruction, one transfer of the line if another thread had it |
/// | size | 8 bytes; give it a line of its own if neighbours are written |
///
/// ```
/// use stanchion_lockfree::{Counter, FetchAddCounter};
///
/// static HITS: FetchAddCounter = FetchAddCounter::new(0);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..100).for_each(|_| HITS.increment()));
///     }
/// });
/// assert_eq!(HITS.get(), 400);
/// ```
pub struct FetchAddCounter {
    /// The count. Written by every thread that adds.
    count: AtomicU64,
}

impl FetchAddCounter {
    /// Returns a counter that starts at `count`.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { count: AtomicU64::new(count) }
    }
}

impl Counter for FetchAddCounter {
    const PROGRESS: Progress = Progress::WaitFree;

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

impl FetchAdd for FetchAddCounter {
    #[inline]
    fn fetch_add(&self, amount: u64) -> u64 {
        // Relaxed: a number, nothing else.
        self.count.fetch_add(amount, Ordering::Relaxed)
    }
}

one_word!(FetchAddCounter);
