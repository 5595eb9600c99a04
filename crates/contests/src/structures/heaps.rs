//! Priority queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use stanchion_lockfree::PriorityQueue;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::heap::{LockedArrayHeap, LockedHeap};

use super::Family;
use super::window::Structure;

/// Returns all priority queues.
pub(crate) fn family() -> Family {
    let family = stanchion_lockfree::__structures!(heap: ours [Family::new("heaps")], ());
    stanchion_lockfree::__structures!(other_heap: ours [family], ())
        .ours::<Ours<LockedHeap<u64, (), Barging>>>("LockedHeap<Barging>")
        .ours::<Ours<LockedHeap<u64, (), stanchion_spin::TestAndSet>>>("LockedHeap<TestAndSet>")
        .ours::<Ours<LockedArrayHeap<u64, (), Barging>>>("LockedArrayHeap<Barging>")
        .peer::<parking_lot::Mutex<BinaryHeap<Reverse<u64>>>>("parking_lot Mutex<BinaryHeap>")
}

/// Makes keys that do not count up from numbers that do.
pub(crate) fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A heap of this workspace.
struct Ours<H>(H);

impl<H: PriorityQueue<Key = u64, Value = ()> + Default + Sync> Structure for Ours<H> {
    fn make(_: usize) -> Self {
        Self(H::default())
    }

    fn first(&self, number: u64) -> bool {
        self.0.push(key(number), ());
        true
    }

    fn second(&self) -> bool {
        black_box(self.0.pop_min()).is_some()
    }
}

impl Structure for parking_lot::Mutex<BinaryHeap<Reverse<u64>>> {
    fn make(_: usize) -> Self {
        Self::new(BinaryHeap::new())
    }

    fn first(&self, number: u64) -> bool {
        self.lock().push(Reverse(key(number)));
        true
    }

    fn second(&self) -> bool {
        black_box(self.lock().pop()).is_some()
    }
}
