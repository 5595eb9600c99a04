//! A shared word, as a backend would make it.

use stanchion_simulator::inside::{self, Kind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) struct Word(AtomicU64);

#[allow(dead_code)] // Each test binary uses some of it.
impl Word {
    pub(crate) fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    pub(crate) fn address(&self) -> *const () {
        core::ptr::from_ref(&self.0).cast()
    }

    /// Not an access.
    pub(crate) fn raw(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn load(&self) -> u64 {
        inside::access(self.address(), Kind::Read);
        self.0.load(Relaxed)
    }

    pub(crate) fn store(&self, value: u64) {
        inside::access(self.address(), Kind::Write);
        self.0.store(value, Relaxed);
    }

    pub(crate) fn add(&self, value: u64) -> u64 {
        inside::access(self.address(), Kind::Exchange);
        self.0.fetch_add(value, Relaxed)
    }

    pub(crate) fn swap(&self, value: u64) -> u64 {
        inside::access(self.address(), Kind::Exchange);
        self.0.swap(value, Relaxed)
    }

    pub(crate) fn compare_exchange(&self, expected: u64, value: u64) -> Result<u64, u64> {
        inside::access(self.address(), Kind::Exchange);
        self.0.compare_exchange(expected, value, Relaxed, Relaxed)
    }
}
