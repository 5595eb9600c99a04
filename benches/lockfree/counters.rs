//! Counters: a pair is two additions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::contest::{Family, Structure};

/// All counters.
pub(crate) fn family() -> Family {
    Family::new("counters")
        .peer::<AtomicU64>("std AtomicU64")
        .peer::<parking_lot::Mutex<u64>>("parking_lot Mutex<u64>")
}

impl Structure for AtomicU64 {
    fn make() -> Self {
        Self::new(0)
    }

    fn first(&self, _number: u64) {
        self.fetch_add(1, Relaxed);
    }

    fn second(&self) {
        self.fetch_add(1, Relaxed);
    }
}

impl Structure for parking_lot::Mutex<u64> {
    fn make() -> Self {
        Self::new(0)
    }

    fn first(&self, _number: u64) {
        *self.lock() += 1;
    }

    fn second(&self) {
        *self.lock() += 1;
    }
}
