//! Priority queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use crate::contest::{Family, Structure};

/// All priority queues.
pub(crate) fn family() -> Family {
    Family::new("heaps")
        .peer::<parking_lot::Mutex<BinaryHeap<Reverse<u64>>>>("parking_lot Mutex<BinaryHeap>")
}

/// Numbers that count up, as keys that do not.
pub(crate) fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Structure for parking_lot::Mutex<BinaryHeap<Reverse<u64>>> {
    fn make() -> Self {
        Self::new(BinaryHeap::with_capacity(1024))
    }

    fn first(&self, number: u64) {
        self.lock().push(Reverse(key(number)));
    }

    fn second(&self) {
        black_box(self.lock().pop());
    }
}
