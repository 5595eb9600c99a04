//! Ready queues for each worker, or for several, each with a lock. A worker that finds nothing in
//! its own queue scans the others.
//!
//! Why locks, where the free blocks need none: a ready task is scarce. A worker must not idle while
//! a task waits elsewhere, so others must reach each queue. Why not: with about as many tasks as
//! workers, a worker looks into half of the queues before it finds a task (section 3.7). A worker
//! looks at the length of a queue before it takes its lock, so scanning disturbs no busy worker.
//!
//! # Orderings
//!
//! It has none of its own: see `ready_queue.rs`. The counter of threads without a slot is Relaxed:
//! it only spreads them.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.5. Two choices are Azar, Broder, Karlin and
//! Upfal, "Balanced allocations", STOC 1994.

mod placement;

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Resources, Stack, Task};
use crate::strategy::paper::numbers::{Numbers, Source};
use crate::strategy::paper::ready_queue::ReadyQueue;
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};

pub use placement::{OwnQueue, Placement, Random, TwoChoices};

/// As many ready queues as there are slots, or [`Plan::queues`], each under a lock `L` and leaving
/// in the order `O`. The placement `P` chooses the queue of a new task. Free blocks are in local
/// lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2, of different locks; and at most 4/T for its block |
/// | looks of a worker that finds nothing | one for each queue |
/// | memory | as [`LocalFreeList`](super::LocalFreeList) |
/// | throughput | grows with the workers, until the memory system is the limit |
/// | order | none among queues: a worker looks into another only if its own is empty |
///
/// [`OwnQueue`] is the default: a creator uses its own queue, and has its line and lock. On the
/// simulated machine `modern` with 8 processors a task then costs 9 ns, with [`Random`] 255 ns
/// (`cargo xtask costs "create, next"`): 4.0 lines move instead of 0.01. The paper measured
/// [`Random`], so that locality would not matter. A thread without a slot has no queue. With
/// [`OwnQueue`] it takes the next one each time.
///
/// The default lock is the one that sleeps when its holder does not run, as for
/// [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{LocalReadyQueue, Plan, Strategy, WorkerSlot};
///
/// let ready: LocalReadyQueue = LocalReadyQueue::new(&Plan { queues: Some(2), ..Plan::new(4) });
/// // SAFETY: the only one of this number for this strategy; so below.
/// let here = unsafe { WorkerSlot::new(0) };
/// // SAFETY: as above.
/// let there = unsafe { WorkerSlot::new(3) };
/// let _ = ready.create(Some(&here), |_| {});
/// assert!(ready.is_ready(&there));
/// assert!(ready.next(&there, None, &mut None).is_some());
/// assert!(ready.next(&here, None, &mut None).is_none());
/// ```
pub struct LocalReadyQueue<L = RawPolicyMutex, O = Fifo, P = OwnQueue> {
    queues: Box<[CachePadded<ReadyQueue<L, O>>]>,
    /// The random numbers of each slot.
    numbers: Box<[CachePadded<Source>]>,
    /// Tasks from threads that have no slot. Written by each of them.
    outside: CachePadded<AtomicUsize>,
    /// Free blocks and stacks.
    resources: Resources<L>,
    /// Chooses the queue of a new task.
    placement: PhantomData<fn() -> P>,
}

impl<L: Lock, O: Order, P: Placement> LocalReadyQueue<L, O, P> {
    #[inline]
    fn own(&self, slot: usize) -> usize {
        slot % self.queues.len()
    }

    /// Chooses the queue for a task from this worker.
    #[inline]
    fn chosen(&self, slot: Option<&WorkerSlot>) -> &ReadyQueue<L, O> {
        let queues = self.queues.len();
        let length = |queue: usize| self.queues[queue].len();
        let chosen = match slot {
            Some(slot) => {
                let numbers = &self.numbers[slot.index()];
                P::choose(queues, self.own(slot.index()), || numbers.next(slot), length)
            }
            None => {
                // Relaxed: only spreads.
                let count = self.outside.fetch_add(1, Ordering::Relaxed);
                let mut numbers = Numbers::new(count as u64);
                P::choose(queues, self.own(count), || numbers.next(), length)
            }
        };
        &self.queues[chosen]
    }

    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let task = self.resources.blocks.take(slot);
        fill(&task);
        WakeTarget::Any(self.chosen(slot).push(task, last))
    }

    /// Returns all queues, the worker's own first.
    #[inline]
    fn own_first(&self, slot: &WorkerSlot) -> impl Iterator<Item = &CachePadded<ReadyQueue<L, O>>> {
        let (before, after) = self.queues.split_at(self.own(slot.index()));
        after.iter().chain(before)
    }

    /// Takes the next task for the worker, if there is one.
    #[inline]
    fn find(&self, slot: &WorkerSlot) -> Option<Task> {
        self.own_first(slot).find_map(|queue| queue.pop())
    }
}

// SAFETY: a task is in one of the queues from its `create` to the `next` that takes it. From then
// on the caller has its block, which is free when it comes back, and not before. `is_ready` looks
// at all lengths, which the last changes have left.
unsafe impl<L: Lock, O: Order, P: Placement> Strategy for LocalReadyQueue<L, O, P> {
    const NAME: &'static str = "local ready queues";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        let queue = || CachePadded::new(ReadyQueue::new());
        let source = |slot| CachePadded::new(Source::new(slot));
        let queues = plan.queues.unwrap_or(plan.slots);
        Self {
            queues: core::iter::repeat_with(queue).take(queues).collect(),
            numbers: (0..plan.slots).map(source).collect(),
            outside: CachePadded::new(AtomicUsize::fresh(0)),
            resources,
            placement: PhantomData,
        }
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        self.own_first(slot).any(|queue| queue.len() > 0)
    }

    fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.len()).sum()
    }

    fn label(&self) {
        stanchion_machine::label(&*self.queues, "ready queues");
        self.resources.label();
    }

    keeps_resources!(and finds);
}

impl<L: Lock, O: Order, P: Placement> fmt::Debug for LocalReadyQueue<L, O, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalReadyQueue")
            .field("queues", &self.queues.len())
            .field("ready", &self.len())
            .finish_non_exhaustive()
    }
}
