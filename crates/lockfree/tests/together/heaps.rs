//! Tests that every priority queue must pass, with real threads.
//!
//! The list at the end is not the table's, because a heap is tested with several sizes.

use std::cell::Cell;
use std::cmp::Ordering;
use std::num::NonZeroU64;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stanchion_lockfree::PriorityQueue;
use stanchion_lockfree::heap::{HerlihyHeap, LockedArrayHeap, LockedHeap, MultiQueue, Words};

/// A random source for tests: the same numbers on every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % below
    }
}

/// Threads that push and pop at random; what came out is what went in, and each value came with its
/// key.
fn keeps_all<H>(heap: &H)
where
    H: PriorityQueue<Key = u64, Value = Box<(u64, u64)>> + Sync,
{
    const THREADS: u64 = 4;
    const STEPS: u64 = 20_000;
    let start = Barrier::new(THREADS as usize);
    let sums = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let start = &start;
                scope.spawn(move || {
                    let mut random = Random(thread + 1);
                    let (mut pushed, mut popped) = ((0_u64, 0_u64), (0_u64, 0_u64));
                    start.wait();
                    for step in 0..STEPS {
                        if random.next(2) == 0 {
                            let key = random.next(1_000);
                            let value = thread * STEPS + step;
                            heap.push(key, Box::new((key, value)));
                            pushed = (pushed.0 + 1, pushed.1.wrapping_add(value * value));
                        } else if let Some((key, value)) = heap.pop_min() {
                            assert_eq!(key, value.0);
                            popped = (popped.0 + 1, popped.1.wrapping_add(value.1 * value.1));
                        }
                    }
                    (pushed, popped)
                })
            })
            .collect();
        let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
        threads.into_iter().map(|thread| thread.join().unwrap()).fold(
            ((0, 0), (0, 0)),
            |(pushed, popped), (more_pushed, more_popped)| {
                (add(pushed, more_pushed), add(popped, more_popped))
            },
        )
    });
    let (pushed, mut popped) = sums;
    while let Some((key, value)) = heap.pop_min() {
        assert_eq!(key, value.0);
        popped = (popped.0 + 1, popped.1.wrapping_add(value.1 * value.1));
    }
    assert_eq!(pushed, popped, "how many, and the sum of their squares");
    assert!(heap.is_empty());
}

/// All push, then all pop: what a thread pops gets no smaller.
fn each_thread_pops_in_order<H: PriorityQueue<Key = u64, Value = u64> + Sync>(heap: &H) {
    const THREADS: u64 = 3;
    const EACH: u64 = 5_000;
    let all_pushed = Barrier::new(THREADS as usize);
    let total: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let all_pushed = &all_pushed;
                scope.spawn(move || {
                    let mut random = Random(thread + 9);
                    for _ in 0..EACH {
                        let key = random.next(1 << 40);
                        heap.push(key, key);
                    }
                    all_pushed.wait();
                    let popped: Vec<u64> =
                        std::iter::from_fn(|| heap.pop_min()).map(|(key, _)| key).collect();
                    assert!(popped.is_sorted());
                    popped.len()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(total as u64, THREADS * EACH);
}

/// Counts how often values are dropped.
struct Tally<'c>(&'c AtomicU64);

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Tests RUSTSEC-2018-0009: a value is dropped once, by the thread that popped it or with the heap.
fn drops_each_once<'c, H>(heap: H, dropped: &'c AtomicU64)
where
    H: PriorityQueue<Key = u64, Value = Tally<'c>> + Sync,
{
    const THREADS: u64 = 3;
    const EACH: u64 = 3_000;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let heap = &heap;
            scope.spawn(move || {
                let mut random = Random(thread + 5);
                for step in 0..EACH {
                    heap.push(random.next(100), Tally(dropped));
                    if step % 3 == 0 {
                        drop(heap.pop_min());
                    }
                }
            });
        }
    });
    let popped = dropped.load(Relaxed);
    assert_eq!(popped, THREADS * EACH / 3);
    drop(heap);
    assert_eq!(dropped.load(Relaxed), THREADS * EACH);
}

/// RUSTSEC-2022-0020: values that are never all zeros.
fn keeps_what_is_never_zero<'v, H>(heap: &H)
where
    H: PriorityQueue<Key = u64, Value = (&'v str, NonZeroU64, Box<u8>)>,
{
    for number in (1..50).rev() {
        heap.push(number, ("text", NonZeroU64::new(number).unwrap(), Box::new(number as u8)));
    }
    for number in 1..50 {
        let (key, value) = heap.pop_min().unwrap();
        assert_eq!((key, value.0, value.1.get(), *value.2), (number, "text", number, number as u8));
    }
}

thread_local! {
    /// The number of comparisons that are left until one panics.
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Faulty(u64);

impl PartialOrd for Faulty {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Faulty {
    fn cmp(&self, other: &Self) -> Ordering {
        LEFT.set(LEFT.get().checked_sub(1).expect("no comparison left"));
        self.0.cmp(&other.0)
    }
}

impl Words for Faulty {
    type Block = u64;

    fn to_words(self) -> u64 {
        self.0
    }

    fn from_words(word: u64) -> Self {
        Self(word)
    }
}

/// RUSTSEC-2026-0205: a comparison that panics, at every point where one is made. `exact`: the
/// smallest comes first.
fn survives_comparisons_that_panic<'c, H>(new: impl Fn() -> H, dropped: &'c AtomicU64, exact: bool)
where
    H: PriorityQueue<Key = Faulty, Value = Tally<'c>>,
{
    const ENTRIES: u64 = 40;
    let mut panics = 0;
    for key in [None, Some(0), Some(50), Some(100)] {
        for at in 0.. {
            dropped.store(0, Relaxed);
            LEFT.set(u32::MAX);
            let heap = new();
            let mut random = Random(3);
            for _ in 0..ENTRIES {
                heap.push(Faulty(random.next(100)), Tally(dropped));
            }
            LEFT.set(at);
            let done = catch_unwind(AssertUnwindSafe(|| match key {
                None => assert!(heap.pop_min().is_some()),
                Some(key) => heap.push(Faulty(key), Tally(dropped)),
            }));
            LEFT.set(u32::MAX);
            let expected = match (key, &done) {
                (None, Ok(())) => ENTRIES - 1,
                (Some(_), Ok(())) => ENTRIES + 1,
                (_, Err(_)) => ENTRIES,
            };
            let mut keys = Vec::new();
            while let Some((key, _)) = heap.pop_min() {
                keys.push(key.0);
            }
            assert_eq!(keys.len() as u64, expected);
            assert!(!exact || keys.is_sorted());
            assert_eq!(dropped.load(Relaxed), ENTRIES + u64::from(key.is_some()));
            if done.is_ok() {
                break;
            }
            panics += 1;
        }
    }
    assert!(panics > 3, "only {panics} comparisons");
}

/// Checks that a value with a destructor that panics does not keep the others from being dropped.
fn drops_all_when_a_drop_panics<H: PriorityQueue<Key = u64, Value = Bomb>>(heap: H) {
    DROPPED.set(0);
    for key in 0..20 {
        heap.push(key, Bomb(key == 7));
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(heap))).is_err());
    assert_eq!(DROPPED.get(), 20);
}

thread_local! {
    static DROPPED: Cell<u32> = const { Cell::new(0) };
}

struct Bomb(bool);

impl Drop for Bomb {
    fn drop(&mut self) {
        DROPPED.set(DROPPED.get() + 1);
        assert!(!self.0, "this one panics");
    }
}

macro_rules! heaps {
    ($($name:ident: $new:expr, exact: $exact:literal;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn keeps_all() {
                super::keeps_all(&$new);
            }

            #[test]
            fn each_thread_pops_in_order() {
                if $exact {
                    super::each_thread_pops_in_order(&$new);
                }
            }

            #[test]
            fn drops_each_once() {
                let dropped = AtomicU64::new(0);
                super::drops_each_once($new, &dropped);
            }

            #[test]
            fn keeps_what_is_never_zero() {
                if $exact {
                    super::keeps_what_is_never_zero(&$new);
                }
            }

            #[test]
            fn survives_comparisons_that_panic() {
                let dropped = AtomicU64::new(0);
                super::survives_comparisons_that_panic(|| $new, &dropped, $exact);
            }

            #[test]
            fn drops_all_when_a_drop_panics() {
                super::drops_all_when_a_drop_panics($new);
            }
        }
    )+};
}

heaps! {
    locked: LockedHeap::new(), exact: true;
    locked_array: LockedArrayHeap::new(), exact: true;
    locked_spinning: LockedHeap::with_capacity_and_lock(10, stanchion_spin::TestAndSet::new()), exact: true;
    multi_queue: MultiQueue::with_heaps(4), exact: false;
    multi_queue_of_one: MultiQueue::with_heaps(1), exact: true;
    herlihy: HerlihyHeap::new(), exact: true;
    herlihy_in_small_batches: HerlihyHeap::with_batch(1), exact: true;
}
