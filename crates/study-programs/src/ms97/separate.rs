//! The paper's counter under a lock, with the lock on a cache line of its own.
//!
//! Why not the crate's [`LockedCounter`](stanchion_lockfree::LockedCounter): there the count shares
//! the line of its lock, so that a holder has both at once. The paper says of its stacks that "a
//! lock-based implementation has the overhead of accessing lock variables as well" (section 4.2),
//! and of its counters that "the results are similar [...] but are even more pronounced" (section
//! 4.4). Counters that share the line of their lock are further rows of the figure.
//!
//! # Invariants
//!
//! 1. The count is touched only by the holder of the lock.

use lock_api::{Mutex, RawMutex};

use stanchion_lockfree::{Counter, Progress};
use stanchion_machine::cell::UnsafeCell;

use super::linked::Line;

/// A counter under a lock `L` that has another cache line.
pub struct SeparateCounter<L> {
    /// The lock that guards the count.
    lock: Line<Mutex<L, ()>>,
    /// The count. Only the lock's holder reads or writes it.
    count: Line<UnsafeCell<u64>>,
}

// SAFETY: the lock keeps threads apart (Invariant 1).
unsafe impl<L: Sync> Sync for SeparateCounter<L> {}

impl<L: RawMutex> Default for SeparateCounter<L> {
    fn default() -> Self {
        Self { lock: Line(Mutex::new(())), count: Line(UnsafeCell::new(0)) }
    }
}

impl<L: RawMutex> Counter for SeparateCounter<L> {
    const PROGRESS: Progress = Progress::Blocking;

    fn add(&self, amount: u64) {
        let _held = self.lock.lock();
        // SAFETY: the lock is held (Invariant 1).
        let before = self.count.with(|count| unsafe { *count });
        // SAFETY: as above.
        self.count.with_mut(|count| unsafe { *count = before.wrapping_add(amount) });
    }

    fn get(&self) -> u64 {
        let _held = self.lock.lock();
        // SAFETY: the lock is held (Invariant 1).
        self.count.with(|count| unsafe { *count })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Ordinary;
    use super::*;
    use stanchion_machine::sync::Arc;
    use stanchion_machine::{model, thread};

    #[test]
    fn a_separate_counter_misses_no_addition() {
        model(|| {
            let counter = Arc::new(SeparateCounter::<Ordinary>::default());
            let add = |counter: &SeparateCounter<Ordinary>| {
                (0..100).for_each(|amount| counter.add(amount));
            };
            let other = counter.clone();
            let thread = thread::spawn(move || add(&other));
            add(&counter);
            thread.join().unwrap();
            assert_eq!(counter.get(), 2 * 4_950);
        });
    }
}
