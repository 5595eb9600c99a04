//! Litmus tests of `LockedRing` and `SegmentedQueue`: calls that only look, or ask in vain, are in
//! one order with those that change the queue.
//!
//! No locked instruction stands between the calls of a thread, as one does where a history is
//! recorded. So a store of the first call may still wait in the processor's store buffer while the
//! second call reads. Unoptimized code is too slow for that, so these tests say most with
//! `cargo test --release -p stanchion-lockfree --test two_ends_litmus`. There a length that was
//! read without the locks failed twelve of them, in 9 to 53,000 of 100,000 rounds. The models
//! `ring_one_look_of_two` and `ring_flag_or_…` catch it in any case.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use stanchion_competitive::RawPolicyMutex;
use stanchion_lockfree::ConcurrentQueue;
use stanchion_lockfree::barging::BargingAtEnd;
use stanchion_lockfree::lock_api::RawMutex;
use stanchion_lockfree::queue::{LockedRing, SegmentedQueue};

/// Rounds of each test, unless `STANCHION_ROUNDS` gives another number.
const ROUNDS: usize = if cfg!(miri) { 20 } else { 100_000 };

fn rounds() -> usize {
    let Ok(asked) = std::env::var("STANCHION_ROUNDS") else { return ROUNDS };
    let number = asked.replace('_', "").parse();
    number.unwrap_or_else(|_| panic!("STANCHION_ROUNDS is {asked:?}: expected such as 10000000"))
}

/// Lets two threads pass together, again and again. Each arrival is one locked instruction, before
/// the calls that are tested and after them.
#[derive(Default)]
struct Gate(AtomicUsize);

impl Gate {
    fn pass(&self) {
        let arrivals = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let wanted = arrivals.next_multiple_of(2);
        let mut looks = 0_u32;
        while self.0.load(Ordering::SeqCst) < wanted {
            looks += 1;
            if looks > 1_000 {
                thread::yield_now();
            }
        }
    }
}

/// Lets one test run at a time: two threads meet only if both have a processor.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `calls` of both threads at once, again and again, and counts the rounds with two answers
/// that are `forbidden`. After each round every thread calls `restore`, at the same time as the
/// other.
///
/// The first thread starts a little earlier or later than the second, in each round by another
/// amount, so that in some rounds the stores of both are under way at once.
fn count<S: Sync, A: Copy + Send>(
    state: &S,
    calls: [&(dyn Fn(&S) -> A + Sync); 2],
    restore: impl Fn(&S, usize) + Sync,
    forbidden: impl Fn(A, A) -> bool,
) -> usize {
    let _alone = alone();
    let (gate, rounds) = (Gate::default(), rounds());
    let answers = |thread: usize| {
        let each = |round: usize| {
            gate.pass();
            for turn in 0..[round % 128, 64][thread] {
                black_box(turn);
            }
            let answer = calls[thread](state);
            gate.pass();
            restore(state, thread);
            answer
        };
        (0..rounds).map(each).collect::<Vec<A>>()
    };
    let [first, second] = thread::scope(|scope| {
        let first = scope.spawn(|| answers(0));
        let second = answers(1);
        [first.join().unwrap(), second]
    });
    first.into_iter().zip(second).filter(|&(one, two)| forbidden(one, two)).count()
}

/// A queue under test.
trait Queue: ConcurrentQueue<Item = u32> + Sync + Send {
    fn make() -> Self;
}

impl<L: RawMutex + Sync + Send> Queue for LockedRing<u32, L> {
    fn make() -> Self {
        Self::with_capacity_and_locks(4, L::INIT, L::INIT)
    }
}

impl<L: RawMutex + Sync + Send> Queue for SegmentedQueue<u32, L> {
    fn make() -> Self {
        Self::default()
    }
}

fn pair<Q: Queue>() -> [Q; 2] {
    [(); 2].map(|()| Q::make())
}

fn push<Q: Queue>(queue: &Q) {
    assert!(queue.try_push(1).is_ok(), "there is room for four");
}

/// Each of two threads pushes to one queue and looks at the other: one of them finds a value.
fn store_buffering<Q: Queue>(look: fn(&Q) -> bool) {
    let calls = |mine: usize| {
        move |queues: &[Q; 2]| {
            push(&queues[mine]);
            look(&queues[1 - mine])
        }
    };
    // The other thread pops, so that the next push must fetch the line of the slots.
    let restore = |queues: &[Q; 2], thread: usize| assert_eq!(queues[1 - thread].pop(), Some(1));
    let both = count(&pair::<Q>(), [&calls(0), &calls(1)], restore, |one, two| one && two);
    assert_eq!(both, 0, "rounds in which both threads found the other's queue empty");
}

/// Each of two threads pops from one queue and looks at the other: one of them finds it empty.
fn store_buffering_of_pops<Q: Queue>(look: fn(&Q) -> bool) {
    let calls = |mine: usize| {
        move |queues: &[Q; 2]| {
            assert_eq!(queues[mine].pop(), Some(1));
            look(&queues[1 - mine])
        }
    };
    let queues = pair::<Q>();
    queues.iter().for_each(push);
    let restore = |queues: &[Q; 2], thread: usize| push(&queues[1 - thread]);
    let both = count(&queues, [&calls(0), &calls(1)], restore, |one, two| !one && !two);
    assert_eq!(both, 0, "rounds in which both threads found a value in the other's queue");
}

/// One thread raises a flag and asks the queue in vain, the other makes the `change` that the first
/// asks for and reads the flag: the first finds the change, or the second the flag. `restore` makes
/// the queue as it was.
fn flag<Q: Queue>(queue: Q, asks_in_vain: fn(&Q) -> bool, change: fn(&Q), restore: fn(&Q)) {
    let sleeper = |(flag, queue): &(AtomicBool, Q)| {
        flag.store(true, Ordering::SeqCst);
        asks_in_vain(queue)
    };
    let waker = |(flag, queue): &(AtomicBool, Q)| {
        change(queue);
        !flag.load(Ordering::SeqCst)
    };
    let restore = |(flag, queue): &(AtomicBool, Q), thread| {
        if thread == 0 {
            flag.store(false, Ordering::SeqCst);
            restore(queue);
        }
    };
    let state = (AtomicBool::new(false), queue);
    let lost = count(&state, [&sleeper, &waker], restore, |sleeps, silent| sleeps && silent);
    assert_eq!(lost, 0, "rounds in which a wake-up would have been lost");
}

/// A thread that finds a queue empty, by `look` or by a pop, misses no push.
fn flag_before_empty<Q: Queue>(look: fn(&Q) -> bool) {
    flag(Q::make(), look, push, |queue| _ = queue.pop());
}

/// A thread that finds a ring full misses no pop.
fn flag_before_full<L: RawMutex + Sync + Send>() {
    let ring = LockedRing::with_capacity_and_locks(1, L::INIT, L::INIT);
    push(&ring);
    let pop = |ring: &LockedRing<u32, L>| assert!(ring.pop().is_some());
    flag(ring, |ring| ring.try_push(2).is_err(), pop, |ring| _ = ring.try_push(1));
}

/// One thread pushes to one queue, then to the other; a thread that finds the second value finds
/// the first too.
fn message_passing<Q: Queue>(look: fn(&Q) -> bool) {
    let sender = |[first, second]: &[Q; 2]| {
        push(first);
        push(second);
        false
    };
    let receiver = |[first, second]: &[Q; 2]| {
        let second_is_there = !look(second);
        second_is_there && look(first)
    };
    let restore = |queues: &[Q; 2], thread: usize| assert_eq!(queues[thread].pop(), Some(1));
    let backwards = count(&pair::<Q>(), [&sender, &receiver], restore, |_, backwards| backwards);
    assert_eq!(backwards, 0, "rounds in which the second value was there before the first");
}

/// Runs every shape for a queue and a way to find it empty.
macro_rules! shapes {
    ($($name:ident: $queue:ty, $look:expr;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn one_of_two_looks_after_a_push_finds_a_value() {
                store_buffering::<$queue>($look);
            }

            #[test]
            fn one_of_two_looks_after_a_pop_finds_nothing() {
                store_buffering_of_pops::<$queue>($look);
            }

            #[test]
            fn a_thread_that_looks_before_it_sleeps_misses_no_push() {
                flag_before_empty::<$queue>($look);
            }

            #[test]
            fn values_are_seen_in_the_order_of_their_pushes() {
                message_passing::<$queue>($look);
            }
        }
    )+};
}

shapes! {
    is_empty: LockedRing<u32>, LockedRing::is_empty;
    len: LockedRing<u32>, |ring| matches!(ring.len(), 0);
    is_empty_with_a_mutex: LockedRing<u32, RawPolicyMutex>, LockedRing::is_empty;
    len_with_a_mutex: LockedRing<u32, RawPolicyMutex>, |ring| matches!(ring.len(), 0);
    segmented_is_empty: SegmentedQueue<u32>, SegmentedQueue::is_empty;
    segmented_len: SegmentedQueue<u32>, |queue| matches!(queue.len(), 0);
}

#[test]
fn a_thread_that_pops_in_vain_before_it_sleeps_misses_no_push() {
    flag_before_empty::<LockedRing<u32>>(|ring| ring.pop().is_none());
    flag_before_empty::<LockedRing<u32, RawPolicyMutex>>(|ring| ring.pop().is_none());
    flag_before_empty::<SegmentedQueue<u32>>(|queue| queue.pop().is_none());
}

#[test]
fn a_thread_that_pushes_in_vain_before_it_sleeps_misses_no_pop() {
    flag_before_full::<BargingAtEnd>();
    flag_before_full::<RawPolicyMutex>();
}
