//! Counters: a pair is two additions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stanchion_lockfree::{Counter, LockedCounter};

use super::Family;
use super::window::Structure;

/// Returns all counters.
pub(crate) fn family() -> Family {
    let family = stanchion_lockfree::__structures!(counter: ours [Family::new("counters")]);
    stanchion_lockfree::__structures!(other_counter: ours [family])
        .ours::<Ours<LockedCounter<stanchion_spin::TestAndSet>>>("LockedCounter<TestAndSet>")
        .peer::<AtomicU64>("std AtomicU64")
        .peer::<parking_lot::Mutex<u64>>("parking_lot Mutex<u64>")
}

/// A counter of this workspace.
struct Ours<C>(C);

impl<C: Counter + Default + Sync> Structure for Ours<C> {
    fn make(_: usize) -> Self {
        Self(C::default())
    }

    fn first(&self, _number: u64) -> bool {
        self.0.increment();
        true
    }

    fn second(&self) -> bool {
        self.0.increment();
        true
    }
}

impl Structure for AtomicU64 {
    fn make(_: usize) -> Self {
        Self::new(0)
    }

    fn first(&self, _number: u64) -> bool {
        self.fetch_add(1, Relaxed);
        true
    }

    fn second(&self) -> bool {
        self.fetch_add(1, Relaxed);
        true
    }
}

impl Structure for parking_lot::Mutex<u64> {
    fn make(_: usize) -> Self {
        Self::new(0)
    }

    fn first(&self, _number: u64) -> bool {
        *self.lock() += 1;
        true
    }

    fn second(&self) -> bool {
        *self.lock() += 1;
        true
    }
}
