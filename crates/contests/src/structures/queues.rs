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
    PrakashLeeJohnsonQueue, SegmentedQueue, TwoLockQueue,
};

use super::window::Structure;
use super::{Family, ROOM};

/// Returns the bounded queues, and a mutex around a sequential queue.
pub(crate) fn bounded() -> Family {
    Family::new("bounded queues")
        .ours::<LockedRing<u64>>("LockedRing")
        .ours::<LockedRing<u64, RawPolicyMutex>>("LockedRing<RawPolicyMutex>")
        .ours::<NikolaevQueue<u64>>("NikolaevQueue")
        .ours::<Ring<stanchion_competitive::Mutex<VecDeque<u64>>>>("Mutex<VecDeque>")
        .peer::<crossbeam_queue::ArrayQueue<u64>>("crossbeam ArrayQueue")
        .peer::<Bounded>("concurrent-queue, bounded")
        .peer::<Ring<parking_lot::Mutex<VecDeque<u64>>>>("parking_lot Mutex<VecDeque>")
}

/// Returns the queues that grow.
pub(crate) fn unbounded() -> Family {
    Family::new("unbounded queues")
        .ours::<SegmentedQueue<u64>>("SegmentedQueue")
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

/// Consumes the result of a pop, and returns whether there was a value.
fn found(value: Option<u64>) -> bool {
    black_box(value).is_some()
}

/// Implements the interface for a queue of this workspace, with the expression that makes it.
macro_rules! ours {
    ($($queue:ty => |$room:pat_param| $make:expr;)+) => {$(
        impl Structure for $queue {
            fn make($room: usize) -> Self {
                $make
            }

            fn first(&self, number: u64) -> bool {
                black_box(self.try_push(number)).is_ok()
            }

            fn second(&self) -> bool {
                found(self.pop())
            }
        }
    )+};
}

ours! {
    LockedRing<u64> => |room| Self::with_capacity(room);
    LockedRing<u64, RawPolicyMutex> =>
        |room| Self::with_capacity_and_locks(room, RawPolicyMutex::new(), RawPolicyMutex::new());
    NikolaevQueue<u64> => |room| Self::with_capacity(room);
    SegmentedQueue<u64> => |_| Self::new();
    LockedQueue<u64, Barging> => |_| Self::with_capacity_and_lock(ROOM, Barging::with_policy());
    LockedQueue<u64, RawPolicyMutex> => |_| Self::with_capacity(ROOM);
    FaaArrayQueue<u64> => |_| Self::new();
    TwoLockQueue<u64> => |_| Self::new();
    MichaelScottQueue<u64, Counted> => |_| Self::with_capacity_and_memory(ROOM, Counted);
    MichaelScottQueue<u64, Hazard> => |_| Self::new();
    PrakashLeeJohnsonQueue<u64, Counted> => |_| Self::with_capacity_and_memory(ROOM, Counted);
}

/// Implements the interface for a queue of others, or for a type around one: how to make it, the
/// result of a push, and that of a pop.
macro_rules! peers {
    ($($queue:ty => |$room:pat_param| $make:expr, $push:expr, $pop:expr;)+) => {$(
        impl Structure for $queue {
            fn make($room: usize) -> Self {
                $make
            }

            fn first(&self, number: u64) -> bool {
                $push(self, number)
            }

            fn second(&self) -> bool {
                found($pop(self))
            }
        }
    )+};
}

struct Bounded(concurrent_queue::ConcurrentQueue<u64>);

struct Unbounded(concurrent_queue::ConcurrentQueue<u64>);

peers! {
    Bounded => |room| Self(concurrent_queue::ConcurrentQueue::bounded(room)),
        |queue: &Self, number| black_box(queue.0.push(number)).is_ok(),
        |queue: &Self| queue.0.pop().ok();
    Unbounded => |_| Self(concurrent_queue::ConcurrentQueue::unbounded()),
        |queue: &Self, number| black_box(queue.0.push(number)).is_ok(),
        |queue: &Self| queue.0.pop().ok();
    crossbeam_queue::ArrayQueue<u64> => |room| Self::new(room),
        |queue: &Self, number| black_box(queue.push(number)).is_ok(),
        Self::pop;
    crossbeam_queue::SegQueue<u64> => |_| Self::new(),
        |queue: &Self, number| { queue.push(number); true },
        Self::pop;
    scc::Queue<u64> => |_| Self::default(),
        |queue: &Self, number| { queue.push(number); true },
        |queue: &Self| queue.pop().map(|entry| **entry);
}

/// A mutex around a sequential queue with a bound.
struct Ring<M> {
    /// The values in the queue.
    values: M,
    /// The most values in the queue.
    room: usize,
}

/// Mutexes around a sequential queue, without a bound and with one.
macro_rules! locked {
    ($($mutex:ty),+) => {$(
        impl Structure for $mutex {
            fn make(_: usize) -> Self {
                Self::new(VecDeque::with_capacity(ROOM))
            }

            fn first(&self, number: u64) -> bool {
                self.lock().push_back(number);
                true
            }

            fn second(&self) -> bool {
                found(self.lock().pop_front())
            }
        }

        impl Structure for Ring<$mutex> {
            fn make(room: usize) -> Self {
                Self { values: <$mutex>::new(VecDeque::with_capacity(room)), room }
            }

            fn first(&self, number: u64) -> bool {
                let mut values = self.values.lock();
                let has_room = values.len() < self.room;
                if has_room {
                    values.push_back(number);
                }
                has_room
            }

            fn second(&self) -> bool {
                found(self.values.lock().pop_front())
            }
        }
    )+};
}

locked!(parking_lot::Mutex<VecDeque<u64>>, stanchion_competitive::Mutex<VecDeque<u64>>);
