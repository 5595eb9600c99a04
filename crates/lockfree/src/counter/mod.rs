//! Counters.
//!
//! | | progress | an addition is | returns the old value |
//! | --- | --- | --- | --- |
//! | [`FetchAddCounter`] | wait-free | one instruction | yes |
//! | [`CompareExchangeCounter`] | lock-free | a load and a compare-exchange | yes |
//! | [`LinkedCounter`], of 32 bits | lock-free | load-linked and store-conditional | yes |
//! | [`LockedCounter`] | blocking | under a lock of your choice | yes |
//! | [`ShardedCounter`] | wait-free | a load and a store in a line of the thread's own | no |
//!
//! A lock-free addition begins again if another one came between.
//!
//! Take [`FetchAddCounter`]; or take [`ShardedCounter`] if many threads add and few ask. The others
//! are the rows of the 1998 paper's figure 4, and examples of how such things are made.

mod compare_exchange;
mod fetch_add;
mod linked;
mod locked;
mod sharded;

pub use compare_exchange::CompareExchangeCounter;
pub use fetch_add::FetchAddCounter;
pub use linked::LinkedCounter;
pub use locked::LockedCounter;
pub use sharded::ShardedCounter;

use crate::Progress;

/// A counter that threads share. It wraps around at 2^[`BITS`](Self::BITS).
///
/// A counter counts; it orders nothing else. A thread that needs to see what another thread did
/// before it counted must synchronize by other means.
///
/// ```
/// use stanchion_lockfree::Counter;
///
/// fn count_even<C: Counter>(counter: &C, numbers: &[u32]) {
///     numbers.iter().filter(|number| *number % 2 == 0).for_each(|_| counter.increment());
/// }
/// ```
pub trait Counter {
    /// Tells what a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// The number of bits of the count.
    const BITS: u32 = u64::BITS;

    /// Adds `amount`.
    fn add(&self, amount: u64);

    /// Adds one.
    fn increment(&self) {
        self.add(1);
    }

    /// Returns the sum of all additions so far: at least of each addition that happened before the
    /// call.
    ///
    /// Of the other additions, a counter in several parts may miss any: [`ShardedCounter`] tells
    /// which.
    fn get(&self) -> u64;
}

/// A counter that puts all additions into a single order: it can hand out numbers.
///
/// ```
/// use stanchion_lockfree::FetchAdd;
///
/// /// Returns the part that the calling thread is to work on next, of `parts`. Each is given to
/// /// one thread. Returns `None` when all are taken.
/// fn next_part<C: FetchAdd>(taken: &C, parts: u64) -> Option<u64> {
///     Some(taken.fetch_add(1)).filter(|part| *part < parts)
/// }
///
/// let taken = stanchion_lockfree::FetchAddCounter::new(0);
/// assert_eq!(next_part(&taken, 1), Some(0));
/// assert_eq!(next_part(&taken, 1), None);
/// ```
pub trait FetchAdd: Counter {
    /// Adds `amount`, and returns the sum of the additions before.
    fn fetch_add(&self, amount: u64) -> u64;
}

/// Implements the traits that the counters in one word have besides `Counter`.
macro_rules! one_word {
    ($name:ident) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&$crate::Counter::get(self)).finish()
            }
        }
    };
}
use one_word;
