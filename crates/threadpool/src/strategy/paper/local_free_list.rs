//! A central ready queue under a lock; free blocks in local lists that need none.
//!
//! Why: it takes both acquisitions for the block out of a task's life, and adds one of the pool in
//! T/2 tasks. So it is faster than either central form, for a worker that is alone and for many.
//! Why not: the ready queue's lock still limits all workers together.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.3. The lists are in `blocks/free_list/`.

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;

use super::ready_queue::ReadyQueue;
use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Resources, Stack, Task};
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};

/// A ready queue under a lock `L`, which leaves in the order `O`, and local lists of free blocks.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2: into the queue, out of it; and at most 4/T for its block |
/// | memory | as many blocks as were in use, and at most `T` for each worker and for outside |
/// | throughput | that of the lock of the ready queue |
///
/// The default lock is the one that sleeps when its holder does not run, as for
/// [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{LocalFreeList, Plan, Strategy, WorkerSlot};
///
/// let ready: LocalFreeList = LocalFreeList::new(&Plan { threshold: Some(32), ..Plan::new(1) });
/// // SAFETY: the only one of this strategy.
/// let slot = unsafe { WorkerSlot::new(0) };
/// let mut finished = None;
/// for _ in 0..100 {
///     let _ = ready.create(Some(&slot), |_| {});
///     finished = ready.next(&slot, finished, &mut None);
/// }
/// assert!(ready.blocks() <= 2 + 32);
/// ```
pub struct LocalFreeList<L = RawPolicyMutex, O = Fifo> {
    ready: CachePadded<ReadyQueue<L, O>>,
    /// Free blocks and stacks.
    resources: Resources<L>,
}

impl<L: Lock, O: Order> LocalFreeList<L, O> {
    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let task = self.resources.blocks.take(slot);
        fill(&task);
        WakeTarget::Any(self.ready.push(task, last))
    }

    /// Takes the next task for the worker, if there is one.
    #[inline]
    fn find(&self, _: &WorkerSlot) -> Option<Task> {
        self.ready.pop()
    }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it; its block is
// free from then on until it comes back. `is_ready` looks at the length that the last change has
// left.
unsafe impl<L: Lock, O: Order> Strategy for LocalFreeList<L, O> {
    const NAME: &'static str = "local free lists";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        Self { ready: CachePadded::new(ReadyQueue::new()), resources }
    }

    #[inline]
    fn is_ready(&self, _: &WorkerSlot) -> bool {
        self.ready.len() > 0
    }

    fn len(&self) -> usize {
        self.ready.len()
    }

    fn label(&self) {
        stanchion_machine::label(&*self.ready, "ready queue");
        self.resources.label();
    }

    keeps_resources!(and finds);
}

impl<L: Lock, O: Order> fmt::Debug for LocalFreeList<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalFreeList").field("ready", &self.ready.len()).finish_non_exhaustive()
    }
}
