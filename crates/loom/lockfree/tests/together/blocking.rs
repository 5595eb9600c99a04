//! Models of `Blocking`. A thread that would sleep for ever is reported as a deadlock.
//!
//! Each model, and the fault that it would find:
//!
//! - `a_push_wakes_bounded`: a popper sleeps beside a value.
//! - `a_close_wakes_bounded`: a popper sleeps beside a closed queue.
//! - `a_push_meets_a_close_bounded`: a value is in, although the popper has an error that none will
//!   come.
//! - `a_try_meets_a_push_and_a_close_bounded`: the same, with a popper that has only seen the queue
//!   closed by another thread.
//! - `a_refused_push_meets_a_close_bounded`: a popper sleeps beside a closed queue, because a push
//!   that left with nothing done did not wake it.
//! - `two_pushes_wake_two_bounded`: one of two sleepers is forgotten.
//! - `room_wakes_bounded`: a pusher sleeps beside room.
//! - `a_close_wakes_a_pusher_bounded`: a pusher sleeps beside a closed queue.
//! - `giving_up_swallows_nothing_bounded`: a thread that gives up takes the other's notification
//!   along.
//! - `the_last_of_two_senders_closes_bounded`: each of two senders leaves closing to the other.
//! - `a_send_beside_the_last_receiver_is_dropped_bounded`: a message stays without a receiver.
//!
//! The queue is the smallest there is: a count of values. That a popper which panics wakes another
//! is tested with real threads, because loom's table of parked threads does not bear a panic.

use std::sync::mpsc::{RecvError, SendError, TryRecvError};
use std::time::Duration;

use stanchion_lockfree_loom::{Blocking, ConcurrentQueue, Full, Progress, channel_with_queue};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::{beside, explore};

use Ordering::{AcqRel, Acquire, Relaxed};

/// A queue of values that are all alike: a count of them.
struct Count {
    /// The number of values. Written by every thread.
    values: AtomicU32,
    /// The most values that fit in, if there is a bound.
    bound: Option<u32>,
}

impl Count {
    fn of(values: u32, bound: Option<u32>) -> Self {
        Self { values: AtomicU32::new(values), bound }
    }
}

impl ConcurrentQueue for Count {
    type Item = ();

    const PROGRESS: Progress = Progress::LockFree;

    fn try_push(&self, (): ()) -> Result<(), Full<()>> {
        let more = |values| (Some(values) != self.bound).then_some(values + 1);
        self.values.fetch_update(AcqRel, Relaxed, more).map_or(Err(Full(())), |_| Ok(()))
    }

    fn pop(&self) -> Option<()> {
        let less = |values: u32| values.checked_sub(1);
        self.values.fetch_update(AcqRel, Acquire, less).ok().map(|_| ())
    }

    fn is_empty(&self) -> bool {
        self.values.load(Acquire) == 0
    }

    fn capacity(&self) -> Option<usize> {
        self.bound.map(|bound| bound as usize)
    }
}

fn queue(values: u32, bound: Option<u32>) -> Arc<Blocking<Count>> {
    Arc::new(Blocking::new(Count::of(values, bound)))
}

fn model() -> Model {
    Model::new().objects(64).preemptions(3)
}

#[test]
fn a_push_wakes_bounded() {
    explore("blocking::a_push_wakes_bounded", model(), || {
        let queue = queue(0, None);
        let pusher = beside(&queue, |queue| queue.try_push(()));
        assert_eq!(queue.pop(), Ok(()));
        pusher.join().unwrap().unwrap();
        assert_eq!(queue.waiting(), 0);
    });
}

#[test]
fn a_close_wakes_bounded() {
    explore("blocking::a_close_wakes_bounded", model(), || {
        let queue = queue(0, None);
        let closer = beside(&queue, Blocking::close);
        assert_eq!(queue.pop(), Err(RecvError));
        assert!(closer.join().unwrap());
    });
}

/// The value is written beside the queue: a popper that finds it is informed, too.
#[test]
fn a_push_meets_a_close_bounded() {
    explore("blocking::a_push_meets_a_close_bounded", model(), || {
        let queue = queue(0, None);
        let pusher = beside(&queue, |queue| queue.try_push(()).is_ok());
        queue.close();
        let popped = queue.pop().is_ok();
        if popped {
            assert_eq!(queue.pop(), Err(RecvError));
        }
        assert_eq!(pusher.join().unwrap(), popped);
        assert_eq!(queue.try_pop(), Err(TryRecvError::Disconnected));
    });
}

/// The popper has passed no fence of its own when it looks whether a push is on its way.
#[test]
fn a_try_meets_a_push_and_a_close_bounded() {
    let model = model().preemptions(2);
    explore("blocking::a_try_meets_a_push_and_a_close_bounded", model, || {
        let queue = queue(0, None);
        let pusher = beside(&queue, |queue| queue.try_push(()).is_ok());
        let closer = beside(&queue, Blocking::close);
        let popped = queue.try_pop();
        let pushed = pusher.join().unwrap();
        assert!(!(pushed && popped == Err(TryRecvError::Disconnected)));
        closer.join().unwrap();
    });
}

/// The push finds the queue full, unless the popper has taken the value before.
#[test]
fn a_refused_push_meets_a_close_bounded() {
    explore("blocking::a_refused_push_meets_a_close_bounded", model(), || {
        let queue = queue(1, Some(1));
        let pusher = beside(&queue, |queue| queue.try_push(()).is_ok());
        queue.close();
        assert_eq!(queue.pop(), Ok(()));
        let popped = queue.pop().is_ok();
        assert_eq!(pusher.join().unwrap(), popped);
    });
}

#[test]
fn two_pushes_wake_two_bounded() {
    explore("blocking::two_pushes_wake_two_bounded", model().preemptions(1).choices(1), || {
        let queue = queue(0, None);
        let poppers = [(); 2].map(|()| beside(&queue, Blocking::pop));
        (0..2).for_each(|_| queue.try_push(()).unwrap());
        poppers.into_iter().for_each(|popper| assert_eq!(popper.join().unwrap(), Ok(())));
    });
}

#[test]
fn room_wakes_bounded() {
    explore("blocking::room_wakes_bounded", model(), || {
        let queue = queue(1, Some(1));
        let popper = beside(&queue, Blocking::try_pop);
        assert_eq!(queue.push(()), Ok(()));
        assert_eq!(popper.join().unwrap(), Ok(()));
        assert_eq!(queue.try_pop(), Ok(()));
    });
}

#[test]
fn a_close_wakes_a_pusher_bounded() {
    explore("blocking::a_close_wakes_a_pusher_bounded", model(), || {
        let queue = queue(1, Some(1));
        let closer = beside(&queue, Blocking::close);
        assert_eq!(queue.push(()), Err(SendError(())));
        closer.join().unwrap();
    });
}

#[test]
fn giving_up_swallows_nothing_bounded() {
    let model = model().preemptions(1).choices(1);
    explore("blocking::giving_up_swallows_nothing_bounded", model, || {
        let queue = queue(0, None);
        let impatient = beside(&queue, |queue| {
            if queue.pop_timeout(Duration::from_millis(1)).is_ok() {
                // It got the other thread's value: here is another.
                queue.try_push(()).unwrap();
            }
        });
        let patient = beside(&queue, |queue| {
            assert_eq!(queue.pop(), Ok(()));
            // A deadline that does not pass in this execution never does.
            queue.try_push(()).unwrap();
        });
        queue.try_push(()).unwrap();
        impatient.join().unwrap();
        patient.join().unwrap();
    });
}

#[test]
fn the_last_of_two_senders_closes_bounded() {
    let model = model().preemptions(2);
    explore("blocking::the_last_of_two_senders_closes_bounded", model, || {
        let (sender, receiver) = channel_with_queue(Count::of(0, None));
        let other = sender.clone();
        let other = thread::spawn(move || {
            other.try_send(()).unwrap();
            drop(other);
        });
        drop(sender);
        assert_eq!(receiver.recv(), Ok(()));
        assert_eq!(receiver.recv(), Err(RecvError));
        other.join().unwrap();
    });
}

#[test]
fn a_send_beside_the_last_receiver_is_dropped_bounded() {
    explore("blocking::a_send_beside_the_last_receiver_is_dropped_bounded", model(), || {
        let (sender, receiver) = channel_with_queue(Count::of(0, None));
        let receiver = thread::spawn(move || drop(receiver));
        let _ = sender.try_send(());
        receiver.join().unwrap();
        assert!(sender.is_empty());
    });
}
