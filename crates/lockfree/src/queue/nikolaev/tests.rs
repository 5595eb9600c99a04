//! On the real machine: order, bounds, wrapping turns, used-up patience, drops.

use super::*;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

assert_impl_all!(NikolaevQueue<u32>: Send, Sync);
assert_impl_all!(NikolaevQueue<std::cell::Cell<u32>>: Send, Sync);
// A value that must stay with its thread must not be pushed here and popped there.
assert_not_impl_any!(NikolaevQueue<std::rc::Rc<u32>>: Send, Sync);

/// Does what a sequential queue with a bound does, for every small capacity, from `start` on.
fn like_a_sequential_one(start: u64) {
    for capacity in 1..=17 {
        let queue = NikolaevQueue::starting_at(capacity, start, Some(2 * 64));
        let mut model = VecDeque::new();
        let mut random = 1_u64;
        for number in 0..2_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // In stretches, so that it becomes full and empty.
            if (random >> 60) + (number / 64 % 2) * 8 > 11 {
                let outcome = queue.try_push(number);
                if model.len() < capacity {
                    assert_eq!(outcome, Ok(()), "capacity {capacity}, {number}");
                    model.push_back(number);
                } else {
                    assert_eq!(outcome, Err(Full(number)), "capacity {capacity}, {number}");
                }
            } else {
                assert_eq!(queue.pop(), model.pop_front(), "capacity {capacity}, {number}");
            }
            assert_eq!(queue.is_empty(), model.is_empty(), "capacity {capacity}, {number}");
        }
        assert!(queue.drain().eq(model), "capacity {capacity}");
    }
}

#[test]
fn every_small_capacity() {
    like_a_sequential_one(0);
}

/// Turns wrap at 2^64, cycles in the slots at 2^63 turns, and comparisons change their sign between.
#[test]
fn turns_wrap_around() {
    for wraps in [u64::MAX - 1_000, (1 << 63) - 1_000, (1 << 62) - 1_000] {
        like_a_sequential_one(wraps);
    }
}

/// dotnet/runtime#132736: a queue that looked empty while something was in it. Here patience is used up again and again.
#[test]
fn used_up_patience_is_restored() {
    let queue = NikolaevQueue::starting_at(3, 0, Some(17));
    for number in 0..100 {
        for _ in 0..40 {
            assert_eq!(queue.pop(), None);
        }
        assert_eq!(queue.try_push(number), Ok(()));
        assert!(!queue.is_empty());
        assert_eq!(queue.pop(), Some(number));
    }
}

/// Every value once, those of one pusher in their order, under as much contention as there is.
#[test]
fn threads_exchange_everything() {
    const EACH: u64 = if cfg!(miri) { 50 } else { 5_000 };
    for capacity in [1, 2, 3, 64] {
        let queue = NikolaevQueue::starting_at(capacity, u64::MAX - 100, None);
        let count = AtomicU64::new(0);
        let popped = std::thread::scope(|scope| {
            for pusher in 0..3 {
                let queue = &queue;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let mut value = pusher * EACH + number;
                        while let Err(Full(back)) = queue.try_push(value) {
                            value = back;
                            std::thread::yield_now();
                        }
                    }
                });
            }
            let poppers: Vec<_> = (0..3)
                .map(|_| {
                    let (queue, count) = (&queue, &count);
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        while count.load(Relaxed) < 3 * EACH {
                            match queue.pop() {
                                Some(value) => {
                                    count.fetch_add(1, Relaxed);
                                    mine.push(value);
                                }
                                None => std::thread::yield_now(),
                            }
                        }
                        mine
                    })
                })
                .collect();
            poppers.into_iter().map(|popper| popper.join().unwrap()).collect::<Vec<_>>()
        });
        for mine in &popped {
            for pusher in 0..3 {
                let own = mine.iter().filter(|value| **value / EACH == pusher);
                assert!(
                    own.is_sorted(),
                    "capacity {capacity}: values of one thread overtook each other"
                );
            }
        }
        let mut all: Vec<u64> = popped.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..3 * EACH), "capacity {capacity}");
    }
}
