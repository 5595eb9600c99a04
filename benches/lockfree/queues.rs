//! Queues, bounded and not.

use std::collections::VecDeque;
use std::hint::black_box;

use crate::contest::{Family, Structure};

/// The room of a bounded queue.
const ROOM: usize = 1024;

/// Those with a bound, and a mutex around a sequential queue.
pub(crate) fn bounded() -> Family {
    Family::new("bounded queues")
        .ours::<stanchion_competitive::Mutex<VecDeque<u64>>>("Mutex<VecDeque>")
        .ours::<stanchion_spin::TestAndSetMutex<VecDeque<u64>>>("TestAndSetMutex<VecDeque>")
        .peer::<crossbeam_queue::ArrayQueue<u64>>("crossbeam ArrayQueue")
        .peer::<Bounded>("concurrent-queue, bounded")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// Those that grow.
pub(crate) fn unbounded() -> Family {
    Family::new("unbounded queues")
        .peer::<crossbeam_queue::SegQueue<u64>>("crossbeam SegQueue")
        .peer::<Unbounded>("concurrent-queue, unbounded")
        .peer::<scc::Queue<u64>>("scc Queue")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// A pop that a bench waits for nobody with: it may find nothing.
fn found(value: Option<u64>) {
    black_box(value);
}

struct Bounded(concurrent_queue::ConcurrentQueue<u64>);

impl Structure for Bounded {
    fn make() -> Self {
        Self(concurrent_queue::ConcurrentQueue::bounded(ROOM))
    }

    fn first(&self, number: u64) {
        _ = black_box(self.0.push(number));
    }

    fn second(&self) {
        found(self.0.pop().ok());
    }
}

struct Unbounded(concurrent_queue::ConcurrentQueue<u64>);

impl Structure for Unbounded {
    fn make() -> Self {
        Self(concurrent_queue::ConcurrentQueue::unbounded())
    }

    fn first(&self, number: u64) {
        _ = black_box(self.0.push(number));
    }

    fn second(&self) {
        found(self.0.pop().ok());
    }
}

impl Structure for crossbeam_queue::ArrayQueue<u64> {
    fn make() -> Self {
        Self::new(ROOM)
    }

    fn first(&self, number: u64) {
        _ = black_box(self.push(number));
    }

    fn second(&self) {
        found(self.pop());
    }
}

impl Structure for crossbeam_queue::SegQueue<u64> {
    fn make() -> Self {
        Self::new()
    }

    fn first(&self, number: u64) {
        self.push(number);
    }

    fn second(&self) {
        found(self.pop());
    }
}

impl Structure for scc::Queue<u64> {
    fn make() -> Self {
        Self::default()
    }

    fn first(&self, number: u64) {
        self.push(number);
    }

    fn second(&self) {
        found(self.pop().map(|entry| **entry));
    }
}

/// A mutex around a sequential queue.
macro_rules! locked {
    ($($mutex:ty),+) => {$(
        impl Structure for $mutex {
            fn make() -> Self {
                Self::new(VecDeque::with_capacity(ROOM))
            }

            fn first(&self, number: u64) {
                self.lock().push_back(number);
            }

            fn second(&self) {
                found(self.lock().pop_front());
            }
        }
    )+};
}

locked!(
    parking_lot::Mutex<VecDeque<u64>>,
    stanchion_competitive::Mutex<VecDeque<u64>>,
    stanchion_spin::TestAndSetMutex<VecDeque<u64>>
);
