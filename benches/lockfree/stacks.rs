//! Stacks.

use std::hint::black_box;

use crate::contest::{Family, Structure};

/// All stacks.
pub(crate) fn family() -> Family {
    Family::new("stacks")
        .peer::<scc::Stack<u64>>("scc Stack")
        .peer::<parking_lot::Mutex<Vec<u64>>>("parking_lot Mutex<Vec>")
}

impl Structure for scc::Stack<u64> {
    fn make() -> Self {
        Self::default()
    }

    fn first(&self, number: u64) {
        self.push(number);
    }

    fn second(&self) {
        black_box(self.pop().map(|entry| **entry));
    }
}

impl Structure for parking_lot::Mutex<Vec<u64>> {
    fn make() -> Self {
        Self::new(Vec::with_capacity(1024))
    }

    fn first(&self, number: u64) {
        self.lock().push(number);
    }

    fn second(&self) {
        black_box(self.lock().pop());
    }
}
