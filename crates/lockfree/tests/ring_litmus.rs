//! Litmus tests of `LockedRing`: calls that only look, or ask in vain, are in one order with those
//! that change it.
//!
//! No locked instruction stands between the calls of a thread, as one does where a history is
//! recorded. So a store of the first call may still wait in the processor's store buffer while the
//! second call reads. Unoptimized code is too slow for that, so these tests say most with
//! `cargo test --release -p stanchion-lockfree --test ring_litmus`. There a length that was read
//! without the locks failed twelve of them, in 9 to 53,000 of 100,000 rounds. The models
//! `ring_one_look_of_two` and `ring_flag_or_…` catch it in any case.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use stanchion_competitive::RawPolicyMutex;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::lock_api::RawMutex;
use stanchion_lockfree::queue::LockedRing;

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

type Pair<L> = [LockedRing<u32, L>; 2];

fn pair<L: RawMutex>() -> Pair<L> {
    [(); 2].map(|()| LockedRing::with_capacity_and_locks(4, L::INIT, L::INIT))
}

fn push<L: RawMutex>(ring: &LockedRing<u32, L>) {
    assert!(ring.try_push(1).is_ok(), "there is room for four");
}

/// Each of two threads pushes to one ring and looks at the other: one of them finds a value.
fn store_buffering<L: RawMutex + Sync + Send>(look: fn(&LockedRing<u32, L>) -> bool) {
    let calls = |mine: usize| {
        move |rings: &Pair<L>| {
            push(&rings[mine]);
            look(&rings[1 - mine])
        }
    };
    // The other thread pops, so that the next push must fetch the line of the slots.
    let restore = |rings: &Pair<L>, thread: usize| assert_eq!(rings[1 - thread].pop(), Some(1));
    let both = count(&pair::<L>(), [&calls(0), &calls(1)], restore, |one, two| one && two);
    assert_eq!(both, 0, "rounds in which both threads found the other's ring empty");
}

/// Each of two threads pops from one ring and looks at the other: one of them finds it empty.
fn store_buffering_of_pops<L: RawMutex + Sync + Send>(look: fn(&LockedRing<u32, L>) -> bool) {
    let calls = |mine: usize| {
        move |rings: &Pair<L>| {
            assert_eq!(rings[mine].pop(), Some(1));
            look(&rings[1 - mine])
        }
    };
    let rings = pair::<L>();
    rings.iter().for_each(push);
    let restore = |rings: &Pair<L>, thread: usize| push(&rings[1 - thread]);
    let both = count(&rings, [&calls(0), &calls(1)], restore, |one, two| !one && !two);
    assert_eq!(both, 0, "rounds in which both threads found a value in the other's ring");
}

/// One thread raises a flag and asks the ring in vain, the other makes the `change` that the first
/// asks for and reads the flag: the first finds the change, or the second the flag. `restore` makes
/// the ring as it was.
fn flag<L: RawMutex + Sync + Send>(
    ring: LockedRing<u32, L>,
    asks_in_vain: fn(&LockedRing<u32, L>) -> bool,
    change: fn(&LockedRing<u32, L>),
    restore: fn(&LockedRing<u32, L>),
) {
    type State<L> = (AtomicBool, LockedRing<u32, L>);
    let sleeper = |(flag, ring): &State<L>| {
        flag.store(true, Ordering::SeqCst);
        asks_in_vain(ring)
    };
    let waker = |(flag, ring): &State<L>| {
        change(ring);
        !flag.load(Ordering::SeqCst)
    };
    let restore = |(flag, ring): &State<L>, thread| {
        if thread == 0 {
            flag.store(false, Ordering::SeqCst);
            restore(ring);
        }
    };
    let state = (AtomicBool::new(false), ring);
    let lost = count(&state, [&sleeper, &waker], restore, |sleeps, silent| sleeps && silent);
    assert_eq!(lost, 0, "rounds in which a wake-up would have been lost");
}

/// A thread that finds a ring empty, by `look` or by a pop, misses no push.
fn flag_before_empty<L: RawMutex + Sync + Send>(look: fn(&LockedRing<u32, L>) -> bool) {
    let [ring, _] = pair();
    flag(ring, look, push, |ring| _ = ring.pop());
}

/// A thread that finds a ring full misses no pop.
fn flag_before_full<L: RawMutex + Sync + Send>() {
    let ring = LockedRing::with_capacity_and_locks(1, L::INIT, L::INIT);
    push(&ring);
    let pop = |ring: &LockedRing<u32, L>| assert!(ring.pop().is_some());
    flag(ring, |ring| ring.try_push(2).is_err(), pop, |ring| _ = ring.try_push(1));
}

/// One thread pushes to one ring, then to the other; a thread that finds the second value finds
/// the first too.
fn message_passing<L: RawMutex + Sync + Send>(look: fn(&LockedRing<u32, L>) -> bool) {
    let sender = |[first, second]: &Pair<L>| {
        push(first);
        push(second);
        false
    };
    let receiver = |[first, second]: &Pair<L>| {
        let second_is_there = !look(second);
        second_is_there && look(first)
    };
    let restore = |rings: &Pair<L>, thread: usize| assert_eq!(rings[thread].pop(), Some(1));
    let backwards = count(&pair::<L>(), [&sender, &receiver], restore, |_, backwards| backwards);
    assert_eq!(backwards, 0, "rounds in which the second value was there before the first");
}

/// Runs every shape for a lock and a way to find a ring empty.
macro_rules! shapes {
    ($($name:ident: $lock:ty, $look:expr;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn one_of_two_looks_after_a_push_finds_a_value() {
                store_buffering::<$lock>($look);
            }

            #[test]
            fn one_of_two_looks_after_a_pop_finds_nothing() {
                store_buffering_of_pops::<$lock>($look);
            }

            #[test]
            fn a_thread_that_looks_before_it_sleeps_misses_no_push() {
                flag_before_empty::<$lock>($look);
            }

            #[test]
            fn values_are_seen_in_the_order_of_their_pushes() {
                message_passing::<$lock>($look);
            }
        }
    )+};
}

shapes! {
    is_empty: Barging, LockedRing::is_empty;
    len: Barging, |ring| matches!(ring.len(), 0);
    is_empty_with_a_mutex: RawPolicyMutex, LockedRing::is_empty;
    len_with_a_mutex: RawPolicyMutex, |ring| matches!(ring.len(), 0);
}

#[test]
fn a_thread_that_pops_in_vain_before_it_sleeps_misses_no_push() {
    flag_before_empty::<Barging>(|ring| ring.pop().is_none());
    flag_before_empty::<RawPolicyMutex>(|ring| ring.pop().is_none());
}

#[test]
fn a_thread_that_pushes_in_vain_before_it_sleeps_misses_no_pop() {
    flag_before_full::<Barging>();
    flag_before_full::<RawPolicyMutex>();
}
