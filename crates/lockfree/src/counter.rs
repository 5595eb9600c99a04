//! Counters.
//!
//! | | progress | an addition is | says what was there before |
//! | --- | --- | --- | --- |
//! | [`FetchAddCounter`] | wait-free | one instruction | yes |
//! | [`CompareExchangeCounter`] | lock-free | a load and a compare-exchange, again if another came between | yes |
//! | [`LinkedCounter`], of 32 bits | lock-free | load-linked and store-conditional, again if another came between | yes |
//! | [`LockedCounter`] | blocking | under a lock of your choice | yes |
//! | [`ShardedCounter`] | wait-free | a load and a store in a line of the thread's own | no |
//!
//! Take [`FetchAddCounter`]; or [`ShardedCounter`] where many threads add and few ask. The others
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
/// A counter counts; it orders nothing else. A thread that needs to see what another did before it
/// counted must synchronize by other means.
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

    /// How wide the count is.
    const BITS: u32 = u64::BITS;

    /// Adds `amount`.
    fn add(&self, amount: u64);

    /// Adds one.
    fn increment(&self) {
        self.add(1);
    }

    /// Returns what has been added so far: at least each addition that happened before the call.
    ///
    /// Of additions that did not, a counter in several parts may miss any:
    /// [`ShardedCounter`] says which.
    fn get(&self) -> u64;
}

/// A counter that gives each addition its place in a single order: it can hand out numbers.
///
/// ```
/// use stanchion_lockfree::FetchAdd;
///
/// /// Which of `parts` the calling thread is to work on next, each given to one thread; `None` when all are taken.
/// fn next_part<C: FetchAdd>(taken: &C, parts: u64) -> Option<u64> {
///     Some(taken.fetch_add(1)).filter(|part| *part < parts)
/// }
///
/// let taken = stanchion_lockfree::FetchAddCounter::new(0);
/// assert_eq!(next_part(&taken, 1), Some(0));
/// assert_eq!(next_part(&taken, 1), None);
/// ```
pub trait FetchAdd: Counter {
    /// Adds `amount`, and says what had been added before.
    fn fetch_add(&self, amount: u64) -> u64;
}

/// What the counters in one word have besides the trait.
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
