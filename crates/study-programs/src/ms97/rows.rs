//! The structures of figures 1 to 4, and the operations of a process on them.
//!
//! | kind | what |
//! | --- | --- |
//! | [`Kind::Ordinary`] | under a test-and-test-and-set lock with bounded exponential backoff |
//! | [`Kind::Safe`] | under the same lock; its taker and holder asks not to be preempted |
//! | [`Kind::NonBlocking`] | without a lock |
//!
//! The paper's structures under one lock are linked lists and a skew heap, and so are the first two
//! rows of queues, stacks ([`linked`](super::linked)) and heaps ([`skew`](super::skew)). Arrays
//! under a lock are further rows. The counters of the first two rows have a line beside that of
//! their lock ([`separate`](super::separate)).
//!
//! The queue of Michael and Scott and the stack of Treiber have tagged links and nodes of their own
//! ([`tagged`](super::tagged)), as the paper's had. The other structures without a lock take their
//! nodes from per-thread lists, with hazard pointers; those named "shared pool" have counted
//! pointers, and their pool is one list that all threads share: its head is a second contended
//! word. The paper's own rows come first in each list. The others are ours. The rows are
//! those of the figures, and not those of `crates/lockfree/src/table.rs`.

use std::marker::PhantomData;

use super::linked::{LinkedQueue, LinkedStack};
use super::separate::SeparateCounter;
use super::skew::SkewHeap;
use super::tagged::{TaggedQueue, TaggedStack};
use stanchion_lockfree::counter::{
    CompareExchangeCounter, FetchAddCounter, LinkedCounter, LockedCounter, ShardedCounter,
};
use stanchion_lockfree::heap::{CopiedHeap, HerlihyHeap, LockedHeap};
use stanchion_lockfree::memory::{Counted, Hazard};
use stanchion_lockfree::queue::{
    LockedQueue, MichaelScottQueue, NikolaevQueue, PrakashLeeJohnsonQueue, TwoLockQueue,
};
use stanchion_lockfree::stack::{EliminationStack, HerlihyStack, LockedStack, TreiberStack};
use stanchion_lockfree::{ConcurrentQueue, ConcurrentStack, Counter, PriorityQueue};
use stanchion_spin::contention::Polling;
use stanchion_spin::{PreemptionSafe, Spin, TestAndSet};

use stanchion_study::settings::structures::Kind;

/// The paper's backoff, of at most 30 µs.
type Backoff = Polling<100, 30_000>;

/// Test-and-test-and-set with bounded exponential backoff, which only spins.
pub type Ordinary = TestAndSet<Backoff, Spin>;
/// The same lock, which asks not to be preempted.
pub type Safe = PreemptionSafe<Backoff, Spin>;

/// A structure that processes share, and the turn that each process repeats.
pub trait Subject: Send + Sync {
    /// Does one turn: each operation once, with `rest` after each of them. `key` is random.
    fn turn(&self, key: u64, rest: &mut dyn FnMut());
}

/// A line of a figure.
pub struct Row {
    /// The name of the structure, in the report.
    pub name: &'static str,
    /// The way in which it keeps its threads apart.
    pub kind: Kind,
    /// Makes a structure that holds a number of entries before the processes begin.
    pub make: fn(usize) -> Box<dyn Subject>,
}

struct Queue<Q>(Q);

impl<Q: ConcurrentQueue<Item = u64> + Send + Sync> Subject for Queue<Q> {
    fn turn(&self, key: u64, rest: &mut dyn FnMut()) {
        assert!(self.0.try_push(key).is_ok(), "there is always room");
        rest();
        // Each process has pushed before it pops.
        assert!(self.0.pop().is_some(), "more was popped than pushed");
        rest();
    }
}

struct Stack<S>(S);

impl<S: ConcurrentStack<Item = u64> + Send + Sync> Subject for Stack<S> {
    fn turn(&self, key: u64, rest: &mut dyn FnMut()) {
        self.0.push(key);
        rest();
        assert!(self.0.pop().is_some(), "more was popped than pushed");
        rest();
    }
}

struct Heap<H>(H);

impl<H: PriorityQueue<Key = u64, Value = u64> + Send + Sync> Subject for Heap<H> {
    fn turn(&self, key: u64, rest: &mut dyn FnMut()) {
        self.0.push(key, key);
        rest();
        assert!(self.0.pop_min().is_some(), "more was popped than pushed");
        rest();
    }
}

struct Count<C>(C);

impl<C: Counter + Send + Sync> Subject for Count<C> {
    fn turn(&self, _key: u64, rest: &mut dyn FnMut()) {
        self.0.increment();
        rest();
    }
}

/// A constructor of the rows of one family.
struct Make<T>(PhantomData<T>);

impl<Q: ConcurrentQueue<Item = u64> + Default + Send + Sync + 'static> Make<Queue<Q>> {
    const fn queue(name: &'static str, kind: Kind) -> Row {
        Row { name, kind, make: |_| Box::new(Queue(Q::default())) }
    }
}

impl<S: ConcurrentStack<Item = u64> + Default + Send + Sync + 'static> Make<Stack<S>> {
    const fn stack(name: &'static str, kind: Kind) -> Row {
        Row { name, kind, make: |_| Box::new(Stack(S::default())) }
    }
}

impl<H: PriorityQueue<Key = u64, Value = u64> + Default + Send + Sync + 'static> Make<Heap<H>> {
    const fn heap(name: &'static str, kind: Kind) -> Row {
        let make: fn(usize) -> Box<dyn Subject> = |entries| {
            let heap = H::default();
            // The keys are distinct, spread evenly and in no order: the factor is odd, so its
            // multiples differ modulo 2^64.
            let keys = (1..=entries as u64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            keys.for_each(|key| heap.push(key, key));
            Box::new(Heap(heap))
        };
        Row { name, kind, make }
    }
}

impl<C: Counter + Default + Send + Sync + 'static> Make<Count<C>> {
    const fn counter(name: &'static str, kind: Kind) -> Row {
        Row { name, kind, make: |_| Box::new(Count(C::default())) }
    }
}

/// The index of the row that all others are divided by: one preemption-safe lock.
pub const BASE: usize = 1;

/// The capacity of the ring: more than all processes hold at a time.
const ROOM: usize = 1_024;

/// The rows of figure 1, in the order of the paper's legend: one lock, two locks, none.
pub static QUEUES: &[Row] = &[
    Make::<Queue<LinkedQueue<u64, Ordinary>>>::queue("single ordinary lock", Kind::Ordinary),
    Make::<Queue<LinkedQueue<u64, Safe>>>::queue("single preemption-safe lock", Kind::Safe),
    Make::<Queue<TwoLockQueue<u64, Ordinary>>>::queue("two ordinary locks", Kind::Ordinary),
    Make::<Queue<TwoLockQueue<u64, Safe>>>::queue("two preemption-safe locks", Kind::Safe),
    Make::<Queue<TaggedQueue<u64>>>::queue("Michael-Scott", Kind::NonBlocking),
    Make::<Queue<PrakashLeeJohnsonQueue<u64>>>::queue("Prakash-Lee-Johnson", Kind::NonBlocking),
    Make::<Queue<MichaelScottQueue<u64>>>::queue("Michael-Scott, hazards", Kind::NonBlocking),
    Make::<Queue<MichaelScottQueue<u64, Counted>>>::queue(
        "Michael-Scott, shared pool",
        Kind::NonBlocking,
    ),
    Row {
        name: "Nikolaev's ring",
        kind: Kind::NonBlocking,
        make: |_| Box::new(Queue(NikolaevQueue::with_capacity(ROOM))),
    },
    Make::<Queue<LockedQueue<u64, Ordinary>>>::queue("array, ordinary lock", Kind::Ordinary),
    Make::<Queue<LockedQueue<u64, Safe>>>::queue("array, preemption-safe lock", Kind::Safe),
];

/// The rows of figure 2.
pub static STACKS: &[Row] = &[
    Make::<Stack<LinkedStack<u64, Ordinary>>>::stack("ordinary lock", Kind::Ordinary),
    Make::<Stack<LinkedStack<u64, Safe>>>::stack("preemption-safe lock", Kind::Safe),
    Make::<Stack<TaggedStack<u64>>>::stack("Treiber", Kind::NonBlocking),
    Make::<Stack<HerlihyStack<u64, Hazard>>>::stack("Herlihy", Kind::NonBlocking),
    Make::<Stack<TreiberStack<u64>>>::stack("Treiber, hazards", Kind::NonBlocking),
    Make::<Stack<EliminationStack<u64>>>::stack("elimination", Kind::NonBlocking),
    Make::<Stack<TreiberStack<u64, Counted>>>::stack("Treiber, shared pool", Kind::NonBlocking),
    Make::<Stack<LockedStack<u64, Ordinary>>>::stack("array, ordinary lock", Kind::Ordinary),
    Make::<Stack<LockedStack<u64, Safe>>>::stack("array, preemption-safe lock", Kind::Safe),
];

/// The rows of figure 3.
pub static HEAPS: &[Row] = &[
    Make::<Heap<SkewHeap<u64, u64, Ordinary>>>::heap("ordinary lock", Kind::Ordinary),
    Make::<Heap<SkewHeap<u64, u64, Safe>>>::heap("preemption-safe lock", Kind::Safe),
    Make::<Heap<HerlihyHeap<u64, u64>>>::heap("Herlihy, optimized copying", Kind::NonBlocking),
    Make::<Heap<CopiedHeap<u64, u64>>>::heap("Herlihy, full copy", Kind::NonBlocking),
    Make::<Heap<LockedHeap<u64, u64, Ordinary>>>::heap("array, ordinary lock", Kind::Ordinary),
    Make::<Heap<LockedHeap<u64, u64, Safe>>>::heap("array, preemption-safe lock", Kind::Safe),
];

/// The rows of figure 4.
pub static COUNTERS: &[Row] = &[
    Make::<Count<SeparateCounter<Ordinary>>>::counter("ordinary lock", Kind::Ordinary),
    Make::<Count<SeparateCounter<Safe>>>::counter("preemption-safe lock", Kind::Safe),
    Make::<Count<LinkedCounter>>::counter("LL/SC", Kind::NonBlocking),
    Make::<Count<CompareExchangeCounter>>::counter("compare-exchange", Kind::NonBlocking),
    Make::<Count<FetchAddCounter>>::counter("fetch-and-add", Kind::NonBlocking),
    Make::<Count<ShardedCounter>>::counter("sharded", Kind::NonBlocking),
    Make::<Count<LockedCounter<Ordinary>>>::counter("one line, ordinary lock", Kind::Ordinary),
    Make::<Count<LockedCounter<Safe>>>::counter("one line, preemption-safe lock", Kind::Safe),
];
