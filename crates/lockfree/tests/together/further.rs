//! Tests of operations that only some containers have: count, tell that they are full, show a
//! value, displace one. Each is compared with a model. The lists are selections: the structures
//! that have an operation.
//!
//! The operations that all have for their only owner (`push_mut`, `pop_mut`, `peek_mut`,
//! `pop_if_mut`) are in the state machine (`tests/state_machine.rs`).

use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::values::Ledger;
use stanchion_lockfree::heap::{CopiedHeap, HerlihyHeap, LockedArrayHeap, LockedHeap, MultiQueue};
use stanchion_lockfree::iter::{Drain, IntoIter};
use stanchion_lockfree::memory::Counted;
use stanchion_lockfree::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, NikolaevQueue, SegmentedQueue, TwoLockQueue,
};
use stanchion_lockfree::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};
use stanchion_lockfree::{Blocking, Herlihy, LinkedCell};
use static_assertions::{assert_impl_all, assert_not_impl_any};

/// Items need not be unwind safe, as jobs that are boxed closures are not.
type Job = Box<dyn FnOnce() + Send>;

macro_rules! unwind_safe {
    ($($type:ty),+ $(,)?) => {$(
        assert_impl_all!($type: Send, Sync, UnwindSafe, RefUnwindSafe);
    )+};
}

/// Asserts it of the counters of the table.
macro_rules! counters {
    ([] $({ $name:ident: $counter:ty, $($rest:tt)* })+) => {
        unwind_safe!($($counter),+);
    };
}

stanchion_lockfree::__structures!(counter: counters);
stanchion_lockfree::__structures!(other_counter: counters);
// The queues, stacks and heaps of the table are asked in `tests/common/structures.rs`.
unwind_safe!(
    Blocking<LockedRing<Job>>,
    MultiQueue<u32, Job>,
    CopiedHeap<u32, Arc<Mutex<u32>>>,
    Drain<'static, LockedRing<Job>>,
    LinkedCell,
    Herlihy<Vec<u32>>,
);
// An iterator that owns a structure owns its items.
assert_impl_all!(IntoIter<LockedQueue<Job>>: Send, UnwindSafe);
// A reader is shown the object, and may leave it broken.
assert_not_impl_any!(Herlihy<Cell<u32>>: Sync, RefUnwindSafe);
assert_not_impl_any!(MultiQueue<u32, Rc<u32>>: Send, Sync);
assert_not_impl_any!(CopiedHeap<u32, Cell<u32>>: Sync);
assert_not_impl_any!(Blocking<LockedRing<Rc<u32>>>: Send, Sync);

/// Numbers without any order to speak of.
fn numbers() -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    })
}

/// Pushes and pops as a model does, in runs, so that a bounded container gets full and each gets
/// empty.
fn beside_a_model<C>(
    container: &C,
    put: impl Fn(&C, u64) -> bool,
    take: impl Fn(&C) -> bool,
    check: impl Fn(&C, usize),
) {
    let mut len = 0;
    check(container, len);
    for (step, number) in numbers().take(4_000).enumerate() {
        if number % 4 < 1 + step as u64 / 40 % 3 {
            len += usize::from(put(container, number));
        } else {
            len -= usize::from(take(container));
        }
        check(container, len);
    }
}

macro_rules! lengths {
    ($($name:ident: $new:expr, $put:ident($($key:expr)?), $take:ident;)+) => {$(
        #[test]
        fn $name() {
            beside_a_model(
                &$new,
                |container, number| {
                    container.$put($($key(number),)? number);
                    true
                },
                |container| container.$take().is_some(),
                |container, len| assert_eq!(container.len(), len),
            );
        }
    )+};
}

lengths! {
    a_locked_queue_counts: LockedQueue::new(), push(), pop;
    a_segmented_queue_counts: SegmentedQueue::new(), push(), pop;
    a_queue_with_two_locks_counts: TwoLockQueue::new(), push(), pop;
    an_faa_array_queue_counts: FaaArrayQueue::new(), push(), pop;
    a_locked_stack_counts: LockedStack::new(), push(), pop;
    a_locked_heap_counts: LockedHeap::new(), push(u64::from), pop_min;
    a_locked_array_heap_counts: LockedArrayHeap::new(), push(u64::from), pop_min;
    a_copied_heap_counts: CopiedHeap::new(), push(u64::from), pop_min;
}

macro_rules! bounded {
    ($($name:ident: $queue:ident;)+) => {$(
        #[test]
        fn $name() {
            for capacity in [1, 2, 3, 7, 64] {
                beside_a_model(
                    &$queue::with_capacity(capacity),
                    |queue, number| queue.try_push(number).is_ok(),
                    |queue| queue.pop().is_some(),
                    |queue, len| {
                        assert_eq!((queue.len(), queue.is_full()), (len, len == capacity));
                        assert_eq!(queue.is_empty(), len == 0);
                    },
                );
            }
        }
    )+};
}

bounded! {
    a_locked_ring_counts_and_says_that_it_is_full: LockedRing;
    nikolaevs_queue_counts_and_says_that_it_is_full: NikolaevQueue;
}

/// With other threads at work, a count is exact under locks, and otherwise an estimate. It is exact
/// again afterwards.
#[test]
fn counts_are_exact_when_the_other_threads_are_done() {
    const EACH: usize = 2_000;
    fn test<C: Sync>(
        most: usize,
        container: &C,
        put: impl Fn(&C) + Sync,
        take: impl Fn(&C) -> Option<u32> + Sync,
        len: impl Fn(&C) -> usize,
    ) {
        thread::scope(|scope| {
            let work = || {
                (0..EACH).for_each(|_| {
                    put(container);
                    take(container);
                });
                put(container);
            };
            let threads = [scope.spawn(work), scope.spawn(work)];
            while threads.iter().any(|thread| !thread.is_finished()) {
                let len = len(container);
                assert!(len <= most, "{len} of {most}");
            }
        });
        assert_eq!(len(container), 2);
    }
    test(
        2,
        &SegmentedQueue::new(),
        |queue| queue.push(1),
        |queue| queue.pop(),
        |queue| queue.len(),
    );
    test(2, &TwoLockQueue::new(), |queue| queue.push(1), |queue| queue.pop(), |queue| queue.len());
    test(
        2 * (EACH + 1),
        &FaaArrayQueue::new(),
        |queue| queue.push(1),
        |queue| queue.pop(),
        |queue| queue.len(),
    );
    test(
        3,
        &NikolaevQueue::with_capacity(3),
        |queue| assert!(queue.try_push(1).is_ok()),
        |queue| queue.pop(),
        |queue| queue.len(),
    );
}

macro_rules! peeks {
    ($($name:ident: $new:expr, $push:ident;)+) => {$(
        #[test]
        fn $name() {
            let container = $new;
            assert_eq!(container.peek(|value| *value), None);
            assert_eq!(container.pop_if(|_| true), None);
            let _ = container.$push(7);
            assert_eq!(container.peek(|value| *value), Some(7));
            assert_eq!(container.pop_if(|value| *value == 8), None);
            let broken = catch_unwind(|| container.pop_if(|_| panic!("this one panics")));
            assert!(broken.is_err());
            // It is still there, and no lock is held.
            assert_eq!(container.peek(|value| *value), Some(7));
            assert_eq!(container.pop_if(|value| *value == 7), Some(7));
            assert!(container.is_empty());
        }
    )+};
}

peeks! {
    a_locked_queue_lets_look: LockedQueue::new(), push;
    a_locked_ring_lets_look: LockedRing::with_capacity(1), try_push;
    a_segmented_queue_lets_look: SegmentedQueue::new(), push;
    a_queue_with_two_locks_lets_look: TwoLockQueue::new(), push;
    a_locked_stack_lets_look: LockedStack::new(), push;
}

macro_rules! heap_peeks {
    ($($name:ident: $new:expr;)+) => {$(
        #[test]
        fn $name() {
            let heap = $new;
            assert_eq!(heap.peek_min(|key, value| (*key, *value)), None);
            assert_eq!(heap.pop_min_if(|_, _| true), None);
            heap.push(2, 'b');
            heap.push(1, 'a');
            assert_eq!(heap.peek_min(|key, value| (*key, *value)), Some((1, 'a')));
            assert_eq!(heap.pop_min_if(|key, value| *key == 2 || *value == 'b'), None);
            let broken = catch_unwind(|| heap.pop_min_if(|_, _| panic!("this one panics")));
            assert!(broken.is_err());
            assert_eq!(heap.pop_min_if(|key, _| *key == 1), Some((1, 'a')));
            assert_eq!(heap.pop_min(), Some((2, 'b')));
        }
    )+};
}

heap_peeks! {
    a_locked_heap_lets_look: LockedHeap::new();
    a_locked_array_heap_lets_look: LockedArrayHeap::new();
    a_copied_heap_lets_look: CopiedHeap::new();
}

#[test]
fn the_only_owner_of_a_heap_may_change_values_and_takes_the_smallest() {
    let mut heap = CopiedHeap::new();
    let mut relaxed: MultiQueue<u64, u64> = MultiQueue::with_heaps(4);
    let mut expected: Vec<u64> = numbers().take(100).collect();
    for number in &expected {
        heap.push_mut(*number, 0);
        relaxed.push_mut(*number, 0);
    }
    expected.sort_unstable();
    for number in expected {
        let (key, value) = relaxed.peek_min_mut().unwrap();
        *value = *key;
        assert_eq!(relaxed.pop_min_mut(), Some((number, number)));
        let (key, value) = heap.peek_min_mut().unwrap();
        *value = *key;
        assert_eq!(heap.pop_min_if_mut(|key, value| *key == *value), Some((number, number)));
    }
    assert!(heap.is_empty() && heap.peek_min_mut().is_none());
    assert!(relaxed.is_empty() && relaxed.peek_min_mut().is_none());
    assert_eq!(relaxed.pop_min_mut(), None);
    let mut object = Herlihy::new(1);
    *object.get_mut() += 1;
    assert_eq!(object.get(), 2);
}

#[test]
fn a_forced_push_displaces_the_oldest_alone() {
    for capacity in 1..5 {
        let ring = LockedRing::with_capacity(capacity);
        let mut model = VecDeque::new();
        for number in numbers().take(500) {
            if number % 5 == 0 {
                assert_eq!(ring.pop(), model.pop_front());
            } else {
                model.push_back(number);
                let displaced = if model.len() > capacity { model.pop_front() } else { None };
                assert_eq!(ring.force_push(number), displaced);
            }
            assert_eq!(ring.len(), model.len());
        }
        assert!(ring.into_iter().eq(model));
    }
}

/// Each value comes back once or stays, and no thread sees the ring but full.
#[test]
fn forced_pushes_of_several_threads_lose_nothing() {
    const EACH: usize = 2_000;
    let ledger = Ledger::new(3 * EACH + 2);
    let ring = LockedRing::with_capacity(2);
    (0..2).for_each(|key| assert!(ring.try_push(ledger.value(key)).is_ok()));
    let came_back = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for key in 0..EACH as u64 {
                    came_back.fetch_add(
                        usize::from(ring.force_push(ledger.value(key)).is_some()),
                        Relaxed,
                    );
                    assert!(ring.is_full() && !ring.is_empty());
                }
            });
        }
    });
    assert_eq!(came_back.into_inner(), 3 * EACH);
    assert_eq!(ring.drain().count(), 2);
    ledger.assert_settled("LockedRing");
}

/// The values that an iterator gave before it panicked are in.
#[test]
fn extending_by_an_iterator_that_panics_keeps_what_came() {
    fn broken() -> impl Iterator<Item = u32> {
        (0..10).inspect(|number| assert!(*number < 4, "this one panics"))
    }
    macro_rules! extends {
        ($($container:expr),+) => {$(
            let mut container = $container;
            assert!(catch_unwind(AssertUnwindSafe(|| container.extend(broken()))).is_err());
            assert_eq!(container.drain().count(), 4);
        )+};
    }
    extends!(
        LockedQueue::new(),
        SegmentedQueue::new(),
        TwoLockQueue::new(),
        FaaArrayQueue::new(),
        LockedStack::new(),
        TreiberStack::new(),
        HerlihyStack::new(),
        EliminationStack::new()
    );
}

/// Made when the program is compiled.
#[test]
fn containers_can_be_statics() {
    static QUEUE: LockedQueue<u32> = LockedQueue::new();
    static SEGMENTS: SegmentedQueue<u32> = SegmentedQueue::new();
    static TWO: TwoLockQueue<u32> = TwoLockQueue::new();
    static STACK: LockedStack<u32> = LockedStack::new();
    static TREIBER: TreiberStack<u32> = TreiberStack::new();
    static COUNTED: TreiberStack<u32, Counted> = TreiberStack::with_memory(Counted);
    static ELIMINATION: EliminationStack<u32> = EliminationStack::new();
    static HERLIHY: HerlihyStack<u32> = HerlihyStack::new();
    static HEAP: LockedHeap<u32, u32> = LockedHeap::new();
    static ARRAY: LockedArrayHeap<u32, u32> = LockedArrayHeap::new();
    static PATHS: HerlihyHeap<u32, u32> = HerlihyHeap::new();
    static BLOCKING: Blocking<LockedQueue<u32>> = Blocking::new(LockedQueue::new());
    macro_rules! empty {
        ($($container:ident),+) => {
            assert!($($container.is_empty())&&+);
        };
    }
    empty!(
        QUEUE,
        SEGMENTS,
        TWO,
        STACK,
        TREIBER,
        COUNTED,
        ELIMINATION,
        HERLIHY,
        HEAP,
        ARRAY,
        PATHS,
        BLOCKING
    );
}
