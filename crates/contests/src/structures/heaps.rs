//! Priority queues.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use lock_api::RawMutex;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::heap::sequential::SequentialHeap;
use stanchion_lockfree::heap::{
    CopiedHeap, HerlihyHeap, LockedArrayHeap, LockedHeap, LockedSequentialHeap, MultiQueue,
};

use super::Family;
use super::window::Structure;

/// Returns all priority queues.
pub(crate) fn family() -> Family {
    Family::new("heaps")
        .ours::<LockedHeap<u64, (), Barging>>("LockedHeap<Barging>")
        .ours::<LockedHeap<u64, ()>>("LockedHeap")
        .ours::<LockedHeap<u64, (), stanchion_spin::TestAndSet>>("LockedHeap<TestAndSet>")
        .ours::<LockedArrayHeap<u64, (), Barging>>("LockedArrayHeap<Barging>")
        .ours::<LockedArrayHeap<u64, ()>>("LockedArrayHeap")
        .ours::<MultiQueue<u64, ()>>("MultiQueue")
        .ours::<HerlihyHeap<u64, ()>>("HerlihyHeap")
        .ours::<CopiedHeap<u64, ()>>("CopiedHeap")
        .peer::<parking_lot::Mutex<BinaryHeap<Reverse<u64>>>>("parking_lot Mutex<BinaryHeap>")
}

/// Makes keys that do not count up from numbers that do.
pub(crate) fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<S, L> Structure for LockedSequentialHeap<S, L>
where
    L: RawMutex + Send + Sync,
    S: SequentialHeap<Key = u64, Value = ()> + Send,
{
    fn make() -> Self {
        Self::with_capacity_and_lock(1024, L::INIT)
    }

    fn first(&self, number: u64) {
        self.push(key(number), ());
    }

    fn second(&self) {
        black_box(self.pop_min());
    }
}

impl Structure for MultiQueue<u64, ()> {
    fn make() -> Self {
        Self::new()
    }

    fn first(&self, number: u64) {
        self.push(key(number), ());
    }

    fn second(&self) {
        black_box(self.pop_min());
    }
}

impl Structure for HerlihyHeap<u64, ()> {
    fn make() -> Self {
        Self::with_capacity(1024)
    }

    fn first(&self, number: u64) {
        self.push(key(number), ());
    }

    fn second(&self) {
        black_box(self.pop_min());
    }
}

impl Structure for CopiedHeap<u64, ()> {
    fn make() -> Self {
        Self::new()
    }

    fn first(&self, number: u64) {
        self.push(key(number), ());
    }

    fn second(&self) {
        black_box(self.pop_min());
    }
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
