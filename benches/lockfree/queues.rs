//! Queues, bounded and not.

use std::collections::VecDeque;
use std::hint::black_box;

use stanchion_lockfree::memory::Counted;
use stanchion_lockfree::queue::{
    LockedQueue, MichaelScottQueue, NikolaevQueue, PrakashLeeJohnsonQueue, TwoLockQueue,
};

use crate::contest::{Family, Structure};

/// The room of a bounded queue.
const ROOM: usize = 1024;

/// Those with a bound, and a mutex around a sequential queue.
pub(crate) fn bounded() -> Family {
    Family::new("bounded queues")
        .ours::<NikolaevQueue<u64>>("NikolaevQueue")
        .ours::<stanchion_competitive::Mutex<VecDeque<u64>>>("Mutex<VecDeque>")
        .ours::<stanchion_spin::TestAndSetMutex<VecDeque<u64>>>("TestAndSetMutex<VecDeque>")
        .peer::<crossbeam_queue::ArrayQueue<u64>>("crossbeam ArrayQueue")
        .peer::<Bounded>("concurrent-queue, bounded")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// Those that grow.
pub(crate) fn unbounded() -> Family {
    Family::new("unbounded queues")
        .ours::<MichaelScottQueue<u64>>("MichaelScottQueue")
        .ours::<MichaelScottQueue<u64, Counted>>("MichaelScottQueue<Counted>")
        .ours::<PrakashLeeJohnsonQueue<u64, Counted>>("PrakashLeeJohnsonQueue<Counted>")
        .ours::<TwoLockQueue<u64>>("TwoLockQueue")
        .ours::<TwoLockQueue<u64, stanchion_spin::TestAndSet>>("TwoLockQueue<TestAndSet>")
        .ours::<LockedQueue<u64>>("LockedQueue")
        .ours::<LockedQueue<u64, stanchion_spin::TestAndSet>>("LockedQueue<TestAndSet>")
        .peer::<crossbeam_queue::SegQueue<u64>>("crossbeam SegQueue")
        .peer::<Unbounded>("concurrent-queue, unbounded")
        .peer::<scc::Queue<u64>>("scc Queue")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// A pop that a bench waits for nobody with: it may find nothing.
fn found(value: Option<u64>) {
    black_box(value);
}

impl Structure for NikolaevQueue<u64> {
    fn make() -> Self {
        Self::with_capacity(ROOM)
    }

    fn first(&self, number: u64) {
        _ = black_box(self.try_push(number));
    }

    fn second(&self) {
        found(self.pop());
    }
}

/// A queue of this crate without a bound.
macro_rules! unbounded {
    ($($queue:ty),+ $(,)?) => {$(
        impl Structure for $queue {
            fn make() -> Self {
                Self::with_capacity(ROOM)
            }

            fn first(&self, number: u64) {
                self.push(number);
            }

            fn second(&self) {
                found(self.pop());
            }
        }
    )+};
}

unbounded!(
    MichaelScottQueue<u64>,
    MichaelScottQueue<u64, Counted>,
    PrakashLeeJohnsonQueue<u64, Counted>,
    TwoLockQueue<u64>,
    TwoLockQueue<u64, stanchion_spin::TestAndSet>,
    LockedQueue<u64>,
    LockedQueue<u64, stanchion_spin::TestAndSet>,
);

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
