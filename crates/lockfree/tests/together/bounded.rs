//! Tests that every bounded queue must pass, with real threads.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use stanchion_competitive::RawPolicyMutex;
use stanchion_lockfree::queue::{LockedRing, NikolaevQueue};
use stanchion_lockfree::{ConcurrentQueue, Full};

fn ring_that_sleeps<T>(capacity: usize) -> LockedRing<T, RawPolicyMutex> {
    LockedRing::with_capacity_and_locks(capacity, RawPolicyMutex::new(), RawPolicyMutex::new())
}

/// Makes the tests of each ring of the table, and of one more. `$make` gets the capacity.
macro_rules! of_each_ring {
    ([$tests:tt] $({ $name:ident: $ring:ty, $($rest:tt)* })+) => {
        $(of_each_ring!($name $tests <$ring>::with_capacity);)+
        of_each_ring!(locked_ring_that_sleeps $tests super::ring_that_sleeps);
    };
    ($name:ident [$($test:ident)+] $make:expr) => {
        mod $name { $(#[test] fn $test() { super::$test($make); })+ }
    };
}

stanchion_lockfree::__structures!(ring: of_each_ring [[
    like_a_sequential_one
    exchanges_everything
    drops_each_value_once
    a_panic_in_drop_loses_nothing
    values_of_any_size
    capacity_zero_is_refused
]], _);

/// Checks that it is full exactly when it must be, and empty exactly when it must be. The
/// capacities are powers of two and others (chatmail/core#2444).
fn like_a_sequential_one<Q: ConcurrentQueue<Item = u64>>(make: impl Fn(usize) -> Q) {
    for capacity in (1..=17).chain([63, 64, 65, 100]) {
        let queue = make(capacity);
        assert_eq!(queue.capacity(), Some(capacity));
        let mut model = VecDeque::new();
        let mut random = 1_u64;
        for number in 0..3_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // In stretches, so that it becomes full and empty.
            if (random >> 60) + (number / 256 % 2) * 8 > 11 {
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
        assert!(std::iter::from_fn(|| queue.pop()).eq(model), "capacity {capacity}");
    }
}

/// Every value once, those of one thread in their order.
fn exchanges_everything<Q: ConcurrentQueue<Item = u64> + Sync>(make: impl Fn(usize) -> Q) {
    const EACH: u64 = if cfg!(miri) { 50 } else { 5_000 };
    for capacity in [1, 2, 3, 64] {
        let queue = make(capacity);
        let count = AtomicU64::new(0);
        let push = |pusher: u64| {
            for number in 0..EACH {
                let mut value = pusher * EACH + number;
                while let Err(Full(back)) = queue.try_push(value) {
                    value = back;
                    thread::yield_now();
                }
            }
        };
        let pop = || {
            let mut mine = Vec::new();
            while count.load(Relaxed) < 3 * EACH {
                match queue.pop() {
                    Some(value) => {
                        count.fetch_add(1, Relaxed);
                        mine.push(value);
                    }
                    None => thread::yield_now(),
                }
            }
            mine
        };
        let popped = thread::scope(|scope| {
            for pusher in 0..3 {
                scope.spawn(move || push(pusher));
            }
            let poppers = [(); 3].map(|()| scope.spawn(pop));
            poppers.map(|popper| popper.join().unwrap())
        });
        for mine in &popped {
            for pusher in 0..3 {
                let own = mine.iter().filter(|value| **value / EACH == pusher);
                assert!(own.is_sorted(), "capacity {capacity}: one thread's values out of order");
            }
        }
        let mut all = popped.concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..3 * EACH), "capacity {capacity}");
    }
}

fn drops_each_value_once<Q: ConcurrentQueue<Item = Arc<()>>>(make: impl Fn(usize) -> Q) {
    let token = Arc::new(());
    let queue = make(5);
    for _ in 0..7 {
        _ = queue.try_push(token.clone());
    }
    drop(queue.pop());
    drop(queue.pop());
    _ = queue.try_push(token.clone());
    assert_eq!(Arc::strong_count(&token), 5);
    drop(queue);
    assert_eq!(Arc::strong_count(&token), 1);
}

/// A value that counts its drop, and then panics if its second field is set.
struct Breaks(Arc<AtomicU64>, bool);

impl Drop for Breaks {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
        assert!(!self.1, "it panics if asked to");
    }
}

fn a_panic_in_drop_loses_nothing<Q: ConcurrentQueue<Item = Breaks>>(make: impl Fn(usize) -> Q) {
    let dropped = Arc::new(AtomicU64::new(0));
    let queue = make(4);
    for number in 0..4 {
        assert!(queue.try_push(Breaks(dropped.clone(), number == 1)).is_ok());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| drop(queue))).is_err());
    assert_eq!(dropped.load(Relaxed), 4);
}

/// Larger than a page (crossbeam#1146 built those on the stack).
#[derive(Clone, PartialEq, Debug)]
struct Large([u64; 1_024], Box<u8>);

fn values_of_any_size<Q: ConcurrentQueue<Item = Large>>(make: impl Fn(usize) -> Q) {
    let queue = make(3);
    for round in 0..5 {
        let value = Large([round; 1_024], Box::new(round as u8));
        assert!(queue.try_push(value.clone()).is_ok());
        assert!(queue.try_push(value.clone()).is_ok());
        assert_eq!(
            (queue.pop(), queue.pop(), queue.pop()),
            (Some(value.clone()), Some(value), None)
        );
    }
}

fn capacity_zero_is_refused<Q: ConcurrentQueue<Item = u32>>(make: impl Fn(usize) -> Q) {
    let refusal = catch_unwind(AssertUnwindSafe(|| drop(make(0)))).unwrap_err();
    let message = refusal.downcast_ref::<String>().map(String::as_str);
    let message = message.or(refusal.downcast_ref::<&str>().copied()).unwrap();
    assert!(message.contains("of capacity 0 could hold nothing"), "{message}");
}

/// Values without a size take no room, and are counted all the same.
#[test]
fn values_without_a_size() {
    let (ring, nikolaev): (LockedRing<()>, _) =
        (LockedRing::with_capacity(2), NikolaevQueue::with_capacity(2));
    for queue in [&ring as &dyn PushPop, &nikolaev] {
        assert!(queue.push() && queue.push() && !queue.push());
        assert!(queue.pop() && queue.pop() && !queue.pop());
    }
}

trait PushPop {
    fn push(&self) -> bool;
    fn pop(&self) -> bool;
}

impl<Q: ConcurrentQueue<Item = ()>> PushPop for Q {
    fn push(&self) -> bool {
        self.try_push(()).is_ok()
    }

    fn pop(&self) -> bool {
        ConcurrentQueue::pop(self).is_some()
    }
}

#[test]
fn debug_shows_no_values_and_does_not_wait() {
    struct Secret;
    let ring: LockedRing<Secret> = LockedRing::with_capacity(3);
    assert!(ring.try_push(Secret).is_ok());
    assert_eq!(format!("{ring:?}"), "LockedRing { len: Some(1), capacity: 3, .. }");
    let queue = NikolaevQueue::with_capacity(3);
    assert!(queue.try_push(Secret).is_ok());
    assert_eq!(format!("{queue:?}"), "NikolaevQueue { capacity: 3, is_empty: false, .. }");
}
