//! Each public type is made by its plain constructor, and no type parameter is named.
//!
//! What fails here fails to compile: a constructor that is generic in a defaulted parameter infers
//! nothing, because an expression has no defaults to take it from. Constructors differ from
//! structure to structure, so only `by_default` expands the table.

use stanchion_competitive::RawPolicyMutex;
use stanchion_lockfree::barging::Barging;
use stanchion_lockfree::counter::{
    CompareExchangeCounter, FetchAddCounter, LinkedCounter, LockedCounter, ShardedCounter,
};
use stanchion_lockfree::heap::sequential::{QuaternaryHeap, SequentialHeap, SkewHeap};
use stanchion_lockfree::heap::{
    CopiedHeap, HerlihyHeap, LockedArrayHeap, LockedHeap, MultiQueue, PriorityQueue,
};
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::queue::{
    FaaArrayQueue, LockedQueue, LockedRing, MichaelScottQueue, NikolaevQueue,
    PrakashLeeJohnsonQueue, SegmentedQueue, TwoLockQueue,
};
use stanchion_lockfree::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};
use stanchion_lockfree::{
    Blocking, ConcurrentQueue, ConcurrentStack, Counter, Herlihy, LinkedCell,
};
use stanchion_spin::{Mcs, TestAndSet};

/// Uses a queue of numbers. The value that is pushed decides its type.
fn queues(queue: impl ConcurrentQueue<Item = i32>) {
    assert!(queue.is_empty());
    assert!(queue.try_push(1).is_ok());
    assert_eq!(queue.pop(), Some(1));
}

fn stacks(stack: impl ConcurrentStack<Item = i32>) {
    assert!(stack.is_empty());
    stack.push(1);
    assert_eq!(stack.pop(), Some(1));
}

fn heaps(heap: impl PriorityQueue<Key = u64, Value = char>) {
    assert!(heap.is_empty());
    heap.push(1, 'a');
    assert_eq!(heap.pop_min(), Some((1, 'a')));
}

fn sequential(mut heap: impl SequentialHeap<Key = i32, Value = char>) {
    heap.push(1, 'a');
    assert_eq!(heap.pop_min(), Some((1, 'a')));
}

fn counters(counter: impl Counter) {
    counter.add(2);
    assert_eq!(counter.get(), 3);
}

/// Only the calls of the methods decide the type of the values.
#[test]
fn the_values_decide_the_type() {
    let queue = LockedQueue::new();
    queue.push(1);
    assert_eq!(queue.pop(), Some(1));
    let stack = TreiberStack::new();
    stack.push("one");
    assert_eq!(stack.pop(), Some("one"));
    let heap = LockedHeap::new();
    heap.push(1, 'a');
    assert_eq!(heap.pop_min(), Some((1, 'a')));
    let array = LockedArrayHeap::new();
    array.push(1, 'a');
    assert_eq!(array.pop_min(), Some((1, 'a')));
}

#[test]
fn plain_queues() {
    queues(LockedQueue::new());
    queues(LockedQueue::with_capacity(3));
    queues(LockedRing::with_capacity(3));
    queues(MichaelScottQueue::new());
    queues(NikolaevQueue::with_capacity(3));
    queues(PrakashLeeJohnsonQueue::new());
    queues(SegmentedQueue::new());
    queues(TwoLockQueue::new());
    queues(TwoLockQueue::with_capacity(3));
    queues(FaaArrayQueue::new());
    let blocking = Blocking::new(LockedQueue::new());
    assert!(blocking.try_push(1).is_ok());
}

#[test]
fn plain_stacks() {
    stacks(EliminationStack::new());
    stacks(HerlihyStack::new());
    stacks(HerlihyStack::with_capacity(3));
    stacks(LockedStack::new());
    stacks(LockedStack::with_capacity(3));
    stacks(TreiberStack::new());
}

#[test]
fn plain_heaps() {
    heaps(CopiedHeap::new());
    heaps(HerlihyHeap::new());
    heaps(HerlihyHeap::with_capacity(3));
    heaps(HerlihyHeap::with_batch(3));
    heaps(LockedArrayHeap::new());
    heaps(LockedArrayHeap::with_capacity(3));
    heaps(LockedHeap::new());
    heaps(LockedHeap::with_capacity(3));
    heaps(MultiQueue::new());
    heaps(MultiQueue::with_heaps(3));
    sequential(QuaternaryHeap::new());
    sequential(SkewHeap::new());
}

#[test]
fn plain_counters_and_cells() {
    counters(CompareExchangeCounter::new(1));
    counters(FetchAddCounter::new(1));
    counters(LinkedCounter::new(1));
    counters(LockedCounter::new(1));
    counters(ShardedCounter::new(1));
    assert_eq!(LinkedCell::new(1).load(), 1);
    assert_eq!(Herlihy::new(1).get(), 1);
}

macro_rules! by_default {
    ([$uses:ident] $({ $name:ident: $type:ty, $($rest:tt)* })+) => {
        $($uses(<$type>::default());)+
    };
}

#[test]
fn by_default() {
    fn zero(counter: impl Counter) {
        assert_eq!(counter.get(), 0);
    }
    stanchion_lockfree::__structures!(queue: by_default [queues], _);
    stanchion_lockfree::__structures!(stack: by_default [stacks], _);
    stanchion_lockfree::__structures!(heap: by_default [heaps], _);
    stanchion_lockfree::__structures!(other_heap: by_default [heaps], _);
    stanchion_lockfree::__structures!(counter: by_default [zero]);
    stanchion_lockfree::__structures!(other_counter: by_default [zero]);
    sequential(QuaternaryHeap::default());
    sequential(SkewHeap::default());
}

/// A lock, a memory or a heap is handed in, and decides the type.
#[test]
fn with_what_the_caller_chooses() {
    queues(LockedQueue::with_lock(Mcs::new()));
    queues(LockedQueue::with_capacity_and_lock(3, Barging::with_policy()));
    queues(LockedRing::with_capacity_and_locks(3, RawPolicyMutex::new(), RawPolicyMutex::new()));
    queues(SegmentedQueue::with_locks(Mcs::new(), Mcs::new()));
    queues(TwoLockQueue::with_locks(Mcs::new(), Mcs::new()));
    queues(TwoLockQueue::with_capacity_and_locks(3, TestAndSet::new(), TestAndSet::new()));
    queues(MichaelScottQueue::with_memory(Counted));
    queues(MichaelScottQueue::with_capacity_and_memory(3, Hazard));
    queues(PrakashLeeJohnsonQueue::with_memory(Hazard));
    queues(PrakashLeeJohnsonQueue::with_capacity_and_memory(3, Counted));
    stacks(LockedStack::with_lock(Mcs::new()));
    stacks(LockedStack::with_capacity_and_lock(3, Mcs::new()));
    stacks(TreiberStack::with_memory(Counted));
    stacks(TreiberStack::with_capacity_and_memory(3, Counted));
    stacks(HerlihyStack::with_memory(Hazard));
    stacks(HerlihyStack::with_capacity_and_memory(3, Counted));
    stacks(EliminationStack::with_memory(Counted));
    stacks(EliminationStack::with_capacity_and_memory(3, Counted));
    heaps(LockedHeap::with_lock(Mcs::new()));
    heaps(LockedHeap::with_capacity_and_lock(3, Mcs::new()));
    heaps(LockedArrayHeap::with_lock(TestAndSet::new()));
    heaps(CopiedHeap::with_heap(SkewHeap::new()));
    counters(LockedCounter::with_lock(1, Mcs::new()));
}

static QUEUE: LockedQueue<u32> = LockedQueue::new();
static TWO_LOCKS: TwoLockQueue<u32, Mcs> = TwoLockQueue::with_locks(Mcs::new(), Mcs::new());
static STACK: TreiberStack<u32, Counted> = TreiberStack::with_memory(Counted);
static HEAP: LockedArrayHeap<u32, u32, Mcs> = LockedArrayHeap::with_lock(Mcs::new());
static COUNTER: LockedCounter<Mcs> = LockedCounter::with_lock(7, Mcs::new());

#[test]
fn in_statics() {
    assert!(QUEUE.is_empty() && TWO_LOCKS.is_empty() && STACK.is_empty() && HEAP.is_empty());
    assert_eq!(COUNTER.get(), 7);
}
