//! Models of the rings, and of the queue of segments.
//!
//! | model | asks |
//! | --- | --- |
//! | `…_in_and_out` | does a value arrive as it was sent, once |
//! | `…_never_seems_empty` | does a pusher find a value, if no thread pops more than it pushed |
//! | `…_never_seems_full` | does a popper find room, if no thread pushes more than it popped |
//! | `…_is_not_empty` | does `is_empty` see what is always there |
//! | `…_one_look_of_two` | two threads push to a ring each, look at the other's: does one see it |
//! | `…_flag_or_…` | does a call in vain see a change after which its thread's flag was not seen |
//!
//! The models of 3 preemptions are named `…_bounded`: without a bound `nikolaev_never_seems_empty`
//! was seen to have more than 77,000 executions, `nikolaev_never_seems_full` 37,000,
//! `nikolaev_passed_turn` 57,000, `nikolaev_threshold` 41,000, `segments_never_seem_empty` 57,000.
//! Two calls of each thread meet there, and each call of a ring tries again until the threshold is
//! used up.
//!
//! Each queue has its own constructor for models, with a short threshold or a used segment. So this
//! file names the queues instead of expanding the table (`crates/lockfree/src/table.rs`).
//!
//! Values lie in checked cells, so that a queue which hands a slot over without synchronizing
//! fails. Every model prints `model NAME: N executions`.

use stanchion_lockfree_loom::ConcurrentQueue;
use stanchion_lockfree_loom::queue::{FaaArrayQueue, LockedRing, NikolaevQueue};
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering};
use stanchion_machine::sync::Arc;
use stanchion_machine::{Model, thread};
use stanchion_models::explore;

/// A value that says when it is dropped twice or not at all: loom reports an `Arc` that leaks.
type Value = Arc<u32>;

fn value(number: u32) -> Value {
    Arc::new(number)
}

/// Returns the numbers of the values, from all threads.
fn numbers(values: impl IntoIterator<Item = Option<Value>>) -> Vec<u32> {
    values.into_iter().flatten().map(|value| *value).collect()
}

/// One thread pushes, the other pops. Something was in it before, so that a pop does not give up at
/// its door.
fn in_and_out<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queue: Q) {
    assert!(queue.try_push(value(0)).is_ok());
    assert_eq!(numbers([queue.pop()]), [0]);
    let queue = Arc::new(queue);
    let pusher = {
        let queue = queue.clone();
        thread::spawn(move || assert!(queue.try_push(value(1)).is_ok(), "there was room"))
    };
    let mut popped = numbers([queue.pop()]);
    pusher.join().unwrap();
    popped.extend(numbers([queue.pop()]));
    assert_eq!(popped, [1]);
    assert!(queue.pop().is_none());
}

/// Each of two threads pushes one and pops one.
fn never_seems_empty<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queue: Q) {
    let queue = Arc::new(queue);
    let both = |queue: &Q, number| {
        assert!(queue.try_push(value(number)).is_ok(), "there was room for both");
        *queue.pop().expect("something was in it")
    };
    let other = {
        let queue = queue.clone();
        thread::spawn(move || both(&queue, 1))
    };
    let mine = both(&queue, 2);
    let other = other.join().unwrap();
    assert_eq!(mine + other, 3);
    assert!(queue.is_empty());
}

/// The queue is full. A thread that gets a value puts it back.
fn never_seems_full<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queue: Q) {
    assert!(queue.try_push(value(7)).is_ok());
    assert!(queue.try_push(value(8)).is_err());
    let queue = Arc::new(queue);
    let round = |queue: &Q| {
        if let Some(value) = queue.pop() {
            assert!(queue.try_push(value).is_ok(), "its place was free");
        }
    };
    let other = {
        let queue = queue.clone();
        thread::spawn(move || round(&queue))
    };
    round(&queue);
    other.join().unwrap();
    assert_eq!(numbers([queue.pop(), queue.pop()]), [7]);
}

/// Something is always in it: one thread pushes before it pops, the other looks.
fn is_not_empty<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queue: Q) {
    assert!(queue.try_push(value(1)).is_ok());
    let queue = Arc::new(queue);
    let other = {
        let queue = queue.clone();
        thread::spawn(move || {
            assert!(queue.try_push(value(2)).is_ok());
            assert_eq!(numbers([queue.pop()]), [1]);
        })
    };
    assert!(!queue.is_empty());
    other.join().unwrap();
    assert_eq!(numbers([queue.pop(), queue.pop()]), [2]);
}

/// Each of two threads pushes to one queue and looks at the other: one of them finds a value.
fn one_look_of_two<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queues: [Q; 2]) {
    let queues = Arc::new(queues);
    let look = |mine: &Q, other: &Q| {
        assert!(mine.try_push(value(1)).is_ok(), "there was room");
        other.is_empty()
    };
    let other = {
        let queues = queues.clone();
        thread::spawn(move || look(&queues[1], &queues[0]))
    };
    let first_was_alone = look(&queues[0], &queues[1]);
    let second_was_alone = other.join().unwrap();
    assert!(!(first_was_alone && second_was_alone), "both found the other's queue empty");
}

/// One thread raises a flag, then asks in vain; the other makes the `change` that the first asks
/// for, and looks at the flag. One of the two sees what the other has done.
fn flag_or_change<Q: Send + Sync + 'static>(queue: Q, ask: fn(&Q) -> bool, change: fn(&Q)) {
    let shared = Arc::new((queue, AtomicBool::fresh(false)));
    let asking = {
        let shared = shared.clone();
        thread::spawn(move || {
            shared.1.store(true, Ordering::Release);
            ask(&shared.0)
        })
    };
    change(&shared.0);
    let saw_flag = shared.1.load(Ordering::Acquire);
    assert!(asking.join().unwrap() || saw_flag, "a sleeper would not be woken");
}

/// Two push, one pops.
fn three_threads<Q: ConcurrentQueue<Item = Value> + Send + Sync + 'static>(queue: Q) {
    let queue = Arc::new(queue);
    let pushers = [1, 2].map(|number| {
        let queue = queue.clone();
        thread::spawn(move || assert!(queue.try_push(value(number)).is_ok(), "room for both"))
    });
    let mut popped = numbers([queue.pop()]);
    for pusher in pushers {
        pusher.join().unwrap();
    }
    popped.extend(numbers([queue.pop(), queue.pop()]));
    popped.sort_unstable();
    assert_eq!(popped, [1, 2]);
}

/// With a threshold for what `takers` can use up in these few turns: with the four million of
/// `with_capacity` a taker and a putter could chase each other for as many turns.
fn nikolaev(capacity: usize, takers: u64) -> NikolaevQueue<Value> {
    NikolaevQueue::starting_at(capacity, 0, Some(takers))
}

#[test]
fn nikolaev_in_and_out() {
    // As low a threshold as one taker can need here: it is used up while the other thread pushes.
    explore("nikolaev_in_and_out", Model::new(), || in_and_out(nikolaev(1, 1)));
}

#[test]
fn nikolaev_never_seems_empty_bounded() {
    explore("nikolaev_never_seems_empty_bounded", Model::new().preemptions(3), || {
        never_seems_empty(nikolaev(2, 2))
    });
}

#[test]
fn nikolaev_never_seems_full_bounded() {
    explore("nikolaev_never_seems_full_bounded", Model::new().preemptions(3), || {
        never_seems_full(nikolaev(1, 2))
    });
}

#[test]
fn nikolaev_is_not_empty() {
    explore("nikolaev_is_not_empty", Model::new(), || is_not_empty(nikolaev(2, 1)));
}

#[test]
fn nikolaev_three_threads_bounded() {
    let model = Model::new().preemptions(3);
    explore("nikolaev_three_threads_bounded", model, || three_threads(nikolaev(2, 2)));
}

fn ring(capacity: usize) -> LockedRing<Value> {
    LockedRing::with_capacity(capacity)
}

fn put(ring: &LockedRing<Value>, number: u32) {
    assert!(ring.try_push(value(number)).is_ok(), "there was room");
}

#[test]
fn ring_in_and_out() {
    explore("ring_in_and_out", Model::new(), || in_and_out(ring(1)));
}

#[test]
fn ring_never_seems_empty() {
    explore("ring_never_seems_empty", Model::new(), || never_seems_empty(ring(2)));
}

#[test]
fn ring_never_seems_full() {
    explore("ring_never_seems_full", Model::new(), || never_seems_full(ring(1)));
}

#[test]
fn ring_is_not_empty() {
    explore("ring_is_not_empty", Model::new(), || is_not_empty(ring(2)));
}

#[test]
fn ring_one_look_of_two() {
    explore("ring_one_look_of_two", Model::new(), || one_look_of_two([ring(1), ring(1)]));
}

#[test]
fn ring_flag_or_value() {
    explore("ring_flag_or_value", Model::new(), || {
        flag_or_change(ring(1), |ring| ring.pop().is_some(), |ring| put(ring, 1));
    });
}

#[test]
fn ring_flag_or_room() {
    explore("ring_flag_or_room", Model::new(), || {
        let full = ring(1);
        put(&full, 1);
        let pops = |ring: &LockedRing<Value>| assert!(ring.pop().is_some());
        flag_or_change(full, |ring| ring.try_push(value(2)).is_ok(), pops);
    });
}

/// One thread finds the ring full before the other empties it and finds nothing. Each wants the
/// lock that the other holds.
#[test]
fn ring_full_and_empty_bounded() {
    explore("ring_full_and_empty_bounded", Model::new().preemptions(3), || {
        let ring = Arc::new(ring(1));
        put(&ring, 1);
        let popper = {
            let ring = ring.clone();
            thread::spawn(move || numbers([ring.pop(), ring.pop()]))
        };
        let pushed = ring.try_push(value(2)).is_ok();
        let mut popped = popper.join().unwrap();
        popped.extend(numbers([ring.pop()]));
        assert_eq!(popped, if pushed { &[1, 2][..] } else { &[1] });
    });
}

/// Both want both locks: one to make room by itself, one to count.
#[test]
fn ring_forced_and_counted_bounded() {
    explore("ring_forced_and_counted_bounded", Model::new().preemptions(4), || {
        let ring = Arc::new(ring(1));
        put(&ring, 1);
        let popper = {
            let ring = ring.clone();
            thread::spawn(move || {
                assert_eq!(ring.len(), 1, "it is full all the time");
                numbers([ring.pop()])
            })
        };
        let forced = numbers([ring.force_push(value(2))]);
        let popped = popper.join().unwrap();
        let rest = numbers([ring.pop()]);
        assert_eq!(popped.len(), 1);
        assert_eq!([forced, popped, rest].concat(), [1, 2]);
    });
}

#[test]
fn ring_three_threads_bounded() {
    let model = Model::new().preemptions(3);
    explore("ring_three_threads_bounded", model, || three_threads(ring(2)));
}

/// A segment has two cells here; so many have been used.
fn segments(used: u32) -> FaaArrayQueue<Value> {
    let queue = FaaArrayQueue::new();
    for number in 0..used {
        queue.push(value(number));
        assert_eq!(numbers([queue.pop()]), [number]);
    }
    queue
}

#[test]
fn segments_in_and_out() {
    explore("segments_in_and_out", Model::new(), || in_and_out(segments(0)));
    explore("segments_in_and_out_at_the_end", Model::new(), || in_and_out(segments(1)));
}

#[test]
fn segments_never_seem_empty_bounded() {
    for (used, preemptions) in [(0, 3), (1, 3), (2, 2)] {
        let name = format!("segments_never_seem_empty_{used}_used_bounded");
        explore(&name, Model::new().preemptions(preemptions), move || {
            never_seems_empty(segments(used))
        });
    }
}

#[test]
fn segments_are_not_empty() {
    for used in 0..=1 {
        let name = format!("segments_are_not_empty_{used}_used");
        explore(&name, Model::new(), move || is_not_empty(segments(used)));
    }
}

#[test]
fn segments_three_threads_bounded() {
    let model = Model::new().preemptions(3);
    explore("segments_three_threads_bounded", model, || three_threads(segments(1)));
}

/// Two pops in vain use the threshold up, and move the tail, before the push takes its turn: it
/// must see that.
#[test]
fn nikolaev_threshold_bounded() {
    explore("nikolaev_threshold_bounded", Model::new().preemptions(3), || {
        let queue = nikolaev(1, 1);
        assert!(queue.try_push(value(0)).is_ok());
        assert_eq!(numbers([queue.pop()]), [0]);
        let queue = Arc::new(queue);
        let pusher = {
            let queue = queue.clone();
            thread::spawn(move || assert!(queue.try_push(value(1)).is_ok(), "there was room"))
        };
        let mut popped = numbers([queue.pop(), queue.pop()]);
        pusher.join().unwrap();
        popped.extend(numbers([queue.pop()]));
        assert_eq!(popped, [1]);
    });
}

/// One thread comes a round later to the slot that the other is about to empty, and marks it
/// unsafe: the next push must see that its turn has been passed.
#[test]
fn nikolaev_passed_turn_bounded() {
    explore("nikolaev_passed_turn_bounded", Model::new().preemptions(3), || {
        let queue = nikolaev(1, 3);
        assert!(queue.try_push(value(7)).is_ok());
        let queue = Arc::new(queue);
        let other = {
            let queue = queue.clone();
            thread::spawn(move || {
                if let Some(value) = queue.pop() {
                    assert!(queue.try_push(value).is_ok(), "its place was free");
                }
            })
        };
        let mut popped = numbers([queue.pop(), queue.pop()]);
        other.join().unwrap();
        popped.extend(numbers([queue.pop()]));
        assert_eq!(popped, [7]);
    });
}
