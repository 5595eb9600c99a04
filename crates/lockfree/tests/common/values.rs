//! Values that know whether they have been dropped, and a ledger in which all of them stand.
//!
//! Included by tests. A test uses some of it only.
#![allow(dead_code)]

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

/// The panic of a value that breaks.
pub(crate) const BREAKS: &str = "this value breaks when it is dropped";

/// A record of the drops of the values that were made from it.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The number of drops of each value, by its number. Counted by the value's drop.
    drops: Box<[AtomicU32]>,
    /// The number of values that were made.
    made: AtomicUsize,
}

impl Ledger {
    /// For so many values at most.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let drops = (0..most).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { drops, made: AtomicUsize::new(0) })
    }

    /// Another value.
    pub(crate) fn value(self: &Arc<Self>, key: u64) -> Value {
        self.value_that(key, false)
    }

    /// Makes another value. Its drop panics if `breaks`.
    pub(crate) fn value_that(self: &Arc<Self>, key: u64, breaks: bool) -> Value {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        assert!(number < self.drops.len(), "the ledger has {} lines", self.drops.len());
        Value { ledger: Arc::clone(self), number, key, breaks, itself: Box::new(number) }
    }

    pub(crate) fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Returns how many values have been dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.drops.iter().filter(|drops| drops.load(Ordering::Relaxed) > 0).count()
    }

    /// Fails unless each value has been dropped exactly once.
    pub(crate) fn assert_settled(&self, structure: &str) {
        for (number, drops) in self.drops[..self.made()].iter().enumerate() {
            let drops = drops.load(Ordering::Relaxed);
            assert_eq!(drops, 1, "{structure}: value {number} of {} dropped so often", self.made());
        }
    }
}

/// A value of a [`Ledger`].
#[derive(Debug)]
pub(crate) struct Value {
    /// The ledger that counts the drop.
    ledger: Arc<Ledger>,
    /// The number of this value in the ledger.
    number: usize,
    /// The key, for heaps.
    key: u64,
    /// Set if the drop panics.
    breaks: bool,
    /// Its number again, in memory of its own: a copy that was never meant to be one is freed
    /// twice.
    itself: Box<usize>,
}

impl Value {
    pub(crate) fn number(&self) -> usize {
        assert_eq!(*self.itself, self.number, "a value that was read half, or after its end");
        self.number
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let before = self.ledger.drops[self.number()].fetch_add(1, Ordering::Relaxed);
        assert_eq!(before, 0, "value {} is dropped again", self.number);
        // Two panics at a time would end the process.
        if self.breaks && !std::thread::panicking() {
            std::panic::panic_any(BREAKS);
        }
    }
}
