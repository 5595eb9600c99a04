//! Central data, and a lock for each: the ready queue, the free blocks, the free stacks.
//!
//! Why: a short section under one lock may overlap with a short section under another. Why not: a
//! task's life then has four acquisitions, six with a stack, and the ready queue's two stay a
//! bottleneck. The paper measured a much higher latency than with one lock, and more throughput.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.2; Lampson and Redell 1980.

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;

use super::ready_queue::ReadyQueue;
use crate::strategy::blocks::free_list::with_slabs;
use crate::strategy::blocks::{CentralList, FreeStacks, Stack, Task};
use crate::strategy::interface::NO_STACKS;
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};
use crate::sync::Locked;

/// A ready queue, free blocks and free stacks, each under its own lock `L`. Ready tasks leave in
/// the order `O`.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 4: a block, the queue, twice; 2 more if it has a stack |
/// | memory | as many blocks as were in use at a time |
/// | throughput | that of the lock of the ready queue |
///
/// The default lock is the one that sleeps when its holder does not run, as for
/// [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{MultipleLocks, Plan, Strategy, WorkerSlot};
///
/// let ready: MultipleLocks = MultipleLocks::new(&Plan::new(1));
/// // SAFETY: the only one of this strategy.
/// let slot = unsafe { WorkerSlot::new(0) };
/// let _ = ready.create(Some(&slot), |_| {});
/// let task = ready.next(&slot, None, &mut None);
/// assert!(task.is_some());
/// assert_eq!(ready.next(&slot, task, &mut None), None);
/// assert_eq!(ready.blocks(), 1);
/// ```
pub struct MultipleLocks<L = RawPolicyMutex, O = Fifo> {
    ready: CachePadded<ReadyQueue<L, O>>,
    /// Free blocks.
    blocks: CachePadded<Locked<L, CentralList>>,
    /// Free stacks; `None` if tasks have none.
    stacks: Option<CachePadded<FreeStacks<L>>>,
}

impl<L: Lock, O: Order> MultipleLocks<L, O> {
    #[inline]
    fn make(&self, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let task = with_slabs(|slab| self.blocks.with(|blocks| blocks.take(slab)));
        fill(&task);
        WakeTarget::Any(self.ready.push(task, last))
    }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it; its block is
// free from then on until it comes back. `is_ready` looks at the length that the last change has
// left.
unsafe impl<L: Lock, O: Order> Strategy for MultipleLocks<L, O> {
    const NAME: &'static str = "multiple locks";

    fn new(plan: &Plan) -> Self {
        plan.check();
        Self {
            ready: CachePadded::new(ReadyQueue::new()),
            blocks: CachePadded::new(Locked::new(CentralList::new())),
            stacks: plan.stacks.then(|| CachePadded::new(FreeStacks::new())),
        }
    }

    #[inline]
    fn create(&self, _: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
        self.make(false, fill)
    }

    fn create_last(&self, _: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
        self.make(true, fill)
    }

    #[inline]
    fn next(
        &self,
        slot: &WorkerSlot,
        finished: Option<Task>,
        hand: &mut Option<Stack>,
    ) -> Option<Task> {
        if let Some(finished) = finished {
            self.release(Some(slot), finished);
            if let Some(stacks) = &self.stacks
                && let Some(stack) = hand.take()
            {
                stacks.put(stack);
            }
        }
        let task = self.ready.pop()?;
        if let Some(stacks) = &self.stacks
            && hand.is_none()
        {
            *hand = stacks.take();
        }
        Some(task)
    }

    #[inline]
    fn release(&self, _: Option<&WorkerSlot>, finished: Task) {
        self.blocks.with(|blocks| blocks.put(finished));
    }

    fn give_stack(&self, _: Option<&WorkerSlot>, stack: Stack) {
        self.stacks.as_ref().expect(NO_STACKS).put(stack);
    }

    fn take_stack(&self, _: Option<&WorkerSlot>) -> Option<Stack> {
        self.stacks.as_ref()?.take()
    }

    #[inline]
    fn is_ready(&self, _: &WorkerSlot) -> bool {
        self.ready.len() > 0
    }

    fn len(&self) -> usize {
        self.ready.len()
    }

    fn blocks(&self) -> usize {
        self.blocks.with(|blocks| blocks.made())
    }

    fn label(&self) {
        stanchion_machine::label(&*self.ready, "ready queue");
        stanchion_machine::label(&*self.blocks, "free blocks");
        if let Some(stacks) = &self.stacks {
            stanchion_machine::label(&**stacks, "free stacks");
        }
    }
}

impl<L: Lock, O: Order> fmt::Debug for MultipleLocks<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultipleLocks").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}
