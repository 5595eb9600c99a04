//! Order, counts and drops of the queue in segments, and threads that exchange values.

use super::*;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::sync::Arc;

assert_impl_all!(FaaArrayQueue<u32>: Send, Sync);
// A value that must stay with its thread must not be pushed here and popped there.
assert_not_impl_any!(FaaArrayQueue<std::rc::Rc<u32>>: Send, Sync);

#[test]
fn first_in_first_out_over_many_segments() {
    let queue = FaaArrayQueue::default();
    assert!(queue.is_empty());
    for round in 0..10 {
        for number in 0..1_000 {
            assert_eq!(queue.is_empty(), number == 0, "{round}, {number}");
            queue.push(number);
        }
        assert!(queue.drain().eq(0..1_000));
        assert_eq!(queue.pop(), None);
        assert!(queue.is_empty());
    }
}

/// They see that it is empty before they take a number.
#[test]
fn pops_in_vain_spoil_no_cells() {
    let queue = FaaArrayQueue::new();
    for number in 0..10 {
        for _ in 0..1_000 {
            assert_eq!(queue.pop(), None);
        }
        queue.push(number);
        assert_eq!(queue.pop(), Some(number));
    }
}

#[test]
fn every_value_is_dropped_once() {
    let token = Arc::new(());
    let mut queue: FaaArrayQueue<_> = (0..1_000).map(|_| token.clone()).collect();
    queue.extend([token.clone()]);
    assert!(queue.pop().is_some());
    assert_eq!(Arc::strong_count(&token), 1_001);
    drop(queue);
    assert_eq!(Arc::strong_count(&token), 1);
}

/// A segment of them is 2 MiB, and so is the stack of the thread.
#[test]
fn a_segment_need_not_fit_the_stack() {
    let large = |number: u8| [number; 1 << 15];
    let user = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let queue = FaaArrayQueue::new();
        for number in 0..CELLS as u8 + 1 {
            queue.push(large(number));
        }
        for number in 0..CELLS as u8 + 1 {
            assert!(queue.pop() == Some(large(number)), "{number}");
        }
    });
    user.unwrap().join().unwrap();
}

/// Every value once, those of one thread in their order.
#[test]
fn threads_exchange_everything() {
    const EACH: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let queue = FaaArrayQueue::new();
    let popped = std::thread::scope(|scope| {
        let workers = [0, 1, 2, 3].map(|worker| {
            let queue = &queue;
            scope.spawn(move || {
                let mut mine = Vec::new();
                for number in 0..EACH {
                    queue.push(worker * EACH + number);
                    // Another thread may have been quicker with the value, but never is there less
                    // than this.
                    mine.push(queue.pop().expect("each has pushed one more than it has popped"));
                }
                mine
            })
        });
        workers.map(|worker| worker.join().unwrap())
    });
    for mine in &popped {
        for worker in 0..4 {
            assert!(mine.iter().filter(|value| **value / EACH == worker).is_sorted());
        }
    }
    let mut all = popped.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..4 * EACH));
    assert!(queue.is_empty());
}
