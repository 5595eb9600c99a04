//! A counter under a lock: the other counters are measured against it.
//!
//! Why at all: the 1998 paper asks what a lock costs when its holder is preempted, and a counter
//! has the shortest critical section there is.
//!
//! Source: Michael and Scott 1998, section 4.4.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

use lock_api::{Mutex, RawMutex};
use stanchion_competitive::RawPolicyMutex;

use super::{Counter, FetchAdd};
use crate::Progress;

/// A counter under a lock `L`, any [`lock_api::RawMutex`].
///
/// | | |
/// | --- | --- |
/// | progress | blocking: a thread that stops with the lock stops the others |
/// | an addition | an acquisition and a release |
/// | size | that of the lock, and 8 bytes |
///
/// ```
/// use stanchion_lockfree::{Counter, LockedCounter};
///
/// let counter = LockedCounter::new(1);
/// counter.add(2);
/// assert_eq!(counter.get(), 3);
/// ```
///
/// Under a lock that serves in order:
///
/// ```
/// use stanchion_lockfree::{Counter, LockedCounter};
///
/// let counter = LockedCounter::with_lock(0, stanchion_spin::Mcs::new());
/// counter.increment();
/// assert_eq!(counter.get(), 1);
/// ```
pub struct LockedCounter<L = RawPolicyMutex> {
    /// The count, under its lock.
    count: Mutex<L, u64>,
}

impl LockedCounter {
    /// Returns a counter that starts at `count`, under the default lock.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self::with_lock(count, RawMutex::INIT)
    }
}

impl<L: RawMutex> LockedCounter<L> {
    /// Returns a counter that starts at `count`, under `lock`. That lock must be free.
    #[must_use]
    pub const fn with_lock(count: u64, lock: L) -> Self {
        Self { count: Mutex::from_raw(lock, count) }
    }
}

impl<L: RawMutex> Counter for LockedCounter<L> {
    const PROGRESS: Progress = Progress::Blocking;

    #[inline]
    fn add(&self, amount: u64) {
        self.fetch_add(amount);
    }

    #[inline]
    fn get(&self) -> u64 {
        *self.count.lock()
    }
}

impl<L: RawMutex> FetchAdd for LockedCounter<L> {
    #[inline]
    fn fetch_add(&self, amount: u64) -> u64 {
        let mut count = self.count.lock();
        let before = *count;
        *count = before.wrapping_add(amount);
        before
    }
}

// Nothing panics under the lock.
impl<L> UnwindSafe for LockedCounter<L> {}
impl<L> RefUnwindSafe for LockedCounter<L> {}

impl<L: RawMutex> Default for LockedCounter<L> {
    fn default() -> Self {
        Self::with_lock(0, L::INIT)
    }
}

impl<L: RawMutex> fmt::Debug for LockedCounter<L> {
    /// Does not wait for the lock: a counter that is locked shows no count.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_tuple("LockedCounter");
        match self.count.try_lock() {
            Some(count) => shown.field(&*count).finish(),
            None => shown.finish_non_exhaustive(),
        }
    }
}
