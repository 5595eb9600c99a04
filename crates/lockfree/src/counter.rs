//! Counters.

use crate::Progress;

/// A counter that threads share. It wraps around at 2^64.
///
/// ```
/// use stanchion_lockfree::Counter;
///
/// fn count_even<C: Counter>(counter: &C, numbers: &[u32]) {
///     numbers.iter().filter(|number| *number % 2 == 0).for_each(|_| counter.increment());
/// }
/// ```
pub trait Counter {
    /// What a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// Adds `amount`.
    fn add(&self, amount: u64);

    /// Adds one.
    fn increment(&self) {
        self.add(1);
    }

    /// What has been added so far. While others add, a counter in several parts may miss additions that were made during the call.
    fn get(&self) -> u64;
}
