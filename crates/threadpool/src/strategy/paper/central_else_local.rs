//! A central ready queue under a lock, and a queue for each worker, for tasks that find that lock
//! busy.
//!
//! Why: while few workers create, one queue is found at once. When its lock is a bottleneck,
//! creators do not wait for it. Why not: a worker that looks for a task has one more queue to look
//! into, and all workers touch the central lock all the same. The paper names this hybrid and
//! doubts it: complexity adds a cost that may outweigh the benefit, which `cargo study
//! all89/sec3.6` judges. `cargo xtask costs "create, next"` shows both: under a test-and-set lock a
//! task costs 134 ns with 8 processors, where `LocalFreeList` has 84. With 64 it is 1.6 µs against
//! 6.5.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.6, the first of the two hybrids at its end.

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;

use super::ready_queue::ReadyQueue;
use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Resources, Stack, Task};
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};

/// A central ready queue under a lock `L`, and one for each worker. Each leaves in the order `O`.
/// Free blocks are in local lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2, and a failed try for a local queue; 4/T for a block |
/// | looks of a worker that finds nothing | one for each worker, and one |
/// | memory | as [`LocalFreeList`](super::LocalFreeList) |
///
/// A worker takes from its own queue first: it has one when the central lock is busy. A task in the
/// central queue may then wait as long as all workers find that lock busy and work for themselves.
/// A thread without a slot waits for the central lock. The default lock is the one that sleeps when
/// its holder does not run, as for [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{CentralElseLocal, Plan, Strategy, WorkerSlot};
///
/// let ready: CentralElseLocal = CentralElseLocal::new(&Plan::new(2));
/// // SAFETY: the only one of this number for this strategy.
/// let slot = unsafe { WorkerSlot::new(0) };
/// let _ = ready.create(Some(&slot), |_| {});
/// assert!(ready.next(&slot, None, &mut None).is_some());
/// ```
pub struct CentralElseLocal<L = RawPolicyMutex, O = Fifo> {
    central: CachePadded<ReadyQueue<L, O>>,
    /// A queue for each slot.
    local: Box<[CachePadded<ReadyQueue<L, O>>]>,
    /// Free blocks and stacks.
    resources: Resources<L>,
}

impl<L: Lock, O: Order> CentralElseLocal<L, O> {
    /// Returns all queues: the worker's own, the central one, then the others'.
    #[inline]
    fn in_order(&self, slot: &WorkerSlot) -> impl Iterator<Item = &CachePadded<ReadyQueue<L, O>>> {
        let (before, rest) = self.local.split_at(slot.index());
        let (own, after) = rest.split_at(1);
        own.iter().chain([&self.central]).chain(after).chain(before)
    }

    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let task = self.resources.blocks.take(slot);
        fill(&task);
        let Some(slot) = slot else { return WakeTarget::Any(self.central.push(task, last)) };
        let ready = self.central.try_push(task, last);
        WakeTarget::Any(ready.unwrap_or_else(|task| self.local[slot.index()].push(task, last)))
    }

    /// Takes the next task for the worker, if there is one.
    #[inline]
    fn find(&self, slot: &WorkerSlot) -> Option<Task> {
        self.in_order(slot).find_map(|queue| queue.pop())
    }
}

// SAFETY: a task is in one of the queues from its `create` to the `next` that takes it. From then
// on the caller has its block, which is free when it comes back, and not before. `is_ready` looks
// at all lengths, which the last changes have left.
unsafe impl<L: Lock, O: Order> Strategy for CentralElseLocal<L, O> {
    const NAME: &'static str = "central else local";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        let queue = || CachePadded::new(ReadyQueue::new());
        let local = core::iter::repeat_with(queue).take(plan.slots).collect();
        Self { central: queue(), local, resources }
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        self.in_order(slot).any(|queue| queue.len() > 0)
    }

    fn len(&self) -> usize {
        let local: usize = self.local.iter().map(|queue| queue.len()).sum();
        self.central.len() + local
    }

    fn label(&self) {
        stanchion_machine::label(&*self.central, "ready queue");
        stanchion_machine::label(&*self.local, "local ready queues");
        self.resources.label();
    }

    keeps_resources!(and finds);
}

impl<L: Lock, O: Order> fmt::Debug for CentralElseLocal<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CentralElseLocal").field("ready", &self.len()).finish_non_exhaustive()
    }
}
