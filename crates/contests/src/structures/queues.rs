//! Queues, bounded and unbounded.
//!
//! They are not those of the table, because a queue with room from the start is another contestant
//! than a queue without.

use std::collections::VecDeque;
use std::hint::black_box;

use stanchion_competitive::RawPolicyMutex;
use stanchion_lockfree::ConcurrentQueue;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, MichaelScottQueue, NikolaevQueue,
    PrakashLeeJohnsonQueue, TwoLockQueue,
};

use super::Family;
use super::window::Structure;

/// The capacity of a bounded queue.
const ROOM: usize = 1024;

/// Returns the bounded queues, and a mutex around a sequential queue.
pub(crate) fn bounded() -> Family {
    Family::new("bounded queues")
        .ours::<LockedRing<u64>>("LockedRing")
        .ours::<LockedRing<u64, RawPolicyMutex>>("LockedRing<RawPolicyMutex>")
        .ours::<NikolaevQueue<u64>>("NikolaevQueue")
        .ours::<stanchion_competitive::Mutex<VecDeque<u64>>>("Mutex<VecDeque>")
        .peer::<crossbeam_queue::ArrayQueue<u64>>("crossbeam ArrayQueue")
        .peer::<Bounded>("concurrent-queue, bounded")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// Returns the queues that grow.
pub(crate) fn unbounded() -> Family {
    Family::new("unbounded queues")
        .ours::<LockedQueue<u64, Barging>>("LockedQueue<Barging>")
        .ours::<LockedQueue<u64, RawPolicyMutex>>("LockedQueue<RawPolicyMutex>")
        .ours::<FaaArrayQueue<u64>>("FaaArrayQueue")
        .ours::<TwoLockQueue<u64>>("TwoLockQueue")
        .ours::<MichaelScottQueue<u64, Counted>>("MichaelScottQueue<Counted>")
        .ours::<MichaelScottQueue<u64, Hazard>>("MichaelScottQueue<Hazard>")
        .ours::<PrakashLeeJohnsonQueue<u64, Counted>>("PrakashLeeJohnsonQueue<Counted>")
        .peer::<crossbeam_queue::SegQueue<u64>>("crossbeam SegQueue")
        .peer::<Unbounded>("concurrent-queue, unbounded")
        .peer::<scc::Queue<u64>>("scc Queue")
        .peer::<parking_lot::Mutex<VecDeque<u64>>>("parking_lot Mutex<VecDeque>")
}

/// Consumes the result of a pop. It may be `None`, because a pop does not wait for a push.
fn found(value: Option<u64>) {
    black_box(value);
}

/// Implements the interface for a queue of this workspace, with the expression that makes it.
macro_rules! ours {
    ($($queue:ty => $make:expr;)+) => {$(
        impl Structure for $queue {
            fn make() -> Self {
                $make
            }

            fn first(&self, number: u64) {
                _ = black_box(self.try_push(number));
            }

            fn second(&self) {
                found(self.pop());
            }
        }
    )+};
}

ours! {
    LockedRing<u64> => Self::with_capacity(ROOM);
    LockedRing<u64, RawPolicyMutex> =>
        Self::with_capacity_and_lock(ROOM, RawPolicyMutex::new());
    NikolaevQueue<u64> => Self::with_capacity(ROOM);
    LockedQueue<u64, Barging> => Self::with_capacity_and_lock(ROOM, Barging::with_policy());
    LockedQueue<u64, RawPolicyMutex> => Self::with_capacity(ROOM);
    FaaArrayQueue<u64> => Self::new();
    TwoLockQueue<u64> => Self::new();
    MichaelScottQueue<u64, Counted> => Self::with_capacity_and_memory(ROOM, Counted);
    MichaelScottQueue<u64, Hazard> => Self::new();
    PrakashLeeJohnsonQueue<u64, Counted> => Self::with_capacity_and_memory(ROOM, Counted);
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

locked!(parking_lot::Mutex<VecDeque<u64>>, stanchion_competitive::Mutex<VecDeque<u64>>);
