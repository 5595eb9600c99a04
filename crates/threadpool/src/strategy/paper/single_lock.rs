//! One lock around everything: the ready queue, the free blocks and the free stacks.
//!
//! Why one lock: it is the fewest acquisitions that a task's life can have with central data. One
//! creates the task, and one finishes the last task and starts the next. Why not: nearly all of
//! that life is then under one lock, and two workers are enough to wait for each other.
//!
//! ```text
//! lock ┌ ready: first ─► … ─► last
//!      │ free blocks ─► …             `length`, of `ready`, is read without the lock
//!      └ free stacks ─► …
//! ```
//!
//! # Invariants
//!
//! 1. `length` is the length of the ready queue whenever the lock is free.
//!
//! # Orderings
//!
//! `length` is Relaxed: a hint whether to take the lock, which orders the rest.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.1.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use super::ready_queue::put;
use crate::strategy::blocks::free_list::with_slabs;
use crate::strategy::blocks::{CentralList, Chain, Stack, Task};
use crate::strategy::interface::NO_STACKS;
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};
use crate::sync::Locked;

/// A ready queue, free blocks and free stacks under one lock `L`. Ready tasks leave in the order
/// `O`.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2: create; finish and start the next |
/// | memory | as many blocks as were in use at a time |
/// | throughput | that of one lock: a second processor adds little, a third nothing |
///
/// The default lock is the one that sleeps when its holder does not run: workers are threads, and a
/// thread may be preempted under the lock. The paper's is
/// [`TestAndSet`](stanchion_spin::TestAndSet), which waits by Ethernet's backoff. `fill` of
/// [`create`](Strategy::create) runs under it.
///
/// ```
/// use stanchion_threadpool::strategy::{Plan, SingleLock, Strategy, WakeTarget, WorkerSlot};
///
/// let ready: SingleLock = SingleLock::new(&Plan::new(1));
/// // SAFETY: the only one of this strategy.
/// let slot = unsafe { WorkerSlot::new(0) };
/// // SAFETY: the thread that fills a task has it alone.
/// let told = ready.create(None, |task| unsafe { task.words().write(7) });
/// assert_eq!(told, WakeTarget::Any(1));
///
/// let task = ready.next(&slot, None, &mut None).unwrap();
/// // SAFETY: the task is ours, and was filled.
/// assert_eq!(unsafe { task.words().read() }, 7);
/// assert_eq!(ready.next(&slot, Some(task), &mut None), None);
/// ```
pub struct SingleLock<L = RawPolicyMutex, O = Fifo> {
    central: CachePadded<Central<L>>,
    /// The order of the ready queue.
    order: PhantomData<fn() -> O>,
}

struct Central<L> {
    /// The length of the ready queue (Invariant 1). Written under the lock.
    length: AtomicUsize,
    /// All else.
    all: Locked<L, All>,
}

struct All {
    /// The ready queue.
    ready: Chain<Task>,
    /// Free blocks.
    blocks: CentralList,
    /// Free stacks; `None` if tasks have no stacks.
    stacks: Option<Chain<Stack>>,
}

impl<L: Lock, O: Order> SingleLock<L, O> {
    #[inline]
    fn make(&self, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let mut fill = Some(fill);
        with_slabs(|slab| {
            self.central.all.with(|all| {
                let task = all.blocks.take(slab)?;
                if let Some(fill) = fill.take() {
                    fill(&task);
                }
                put::<O>(&mut all.ready, task, last);
                self.central.now(all);
                Some(WakeTarget::Any(all.ready.len()))
            })
        })
    }
}

impl<L> Central<L> {
    /// Updates `length` under the lock, as the queue has changed.
    #[inline]
    fn now(&self, all: &All) {
        // Relaxed: a hint, written under the lock (Invariant 1).
        self.length.store(all.ready.len(), Ordering::Relaxed);
    }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it, both under
// the lock. From then on the caller has its block, which is free when it comes back, and not
// before. `is_ready` looks at the length that
// the last change has left (Invariant 1).
unsafe impl<L: Lock, O: Order> Strategy for SingleLock<L, O> {
    const NAME: &'static str = "single lock";

    fn new(plan: &Plan) -> Self {
        plan.check();
        let stacks = plan.stacks.then(Chain::new);
        let all = All { ready: Chain::new(), blocks: CentralList::new(), stacks };
        let central = Central { length: AtomicUsize::fresh(0), all: Locked::new(all) };
        Self { central: CachePadded::new(central), order: PhantomData }
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
        _: &WorkerSlot,
        finished: Option<Task>,
        hand: &mut Option<Stack>,
    ) -> Option<Task> {
        if finished.is_none() && self.len() == 0 {
            return None;
        }
        self.central.all.with(|all| {
            if let Some(finished) = finished {
                all.blocks.put(finished);
                if let Some(stacks) = &mut all.stacks
                    && let Some(stack) = hand.take()
                {
                    stacks.push_front(stack);
                }
            }
            let task = all.ready.pop_front()?;
            self.central.now(all);
            if let Some(stacks) = &mut all.stacks
                && hand.is_none()
            {
                *hand = stacks.pop_front();
            }
            Some(task)
        })
    }

    fn release(&self, _: Option<&WorkerSlot>, finished: Task) {
        self.central.all.with(|all| all.blocks.put(finished));
    }

    fn give_stack(&self, _: Option<&WorkerSlot>, stack: Stack) {
        self.central.all.with(|all| all.stacks.as_mut().expect(NO_STACKS).push_front(stack));
    }

    fn take_stack(&self, _: Option<&WorkerSlot>) -> Option<Stack> {
        self.central.all.with(|all| all.stacks.as_mut()?.pop_front())
    }

    #[inline]
    fn is_ready(&self, _: &WorkerSlot) -> bool {
        self.len() > 0
    }

    #[inline]
    fn len(&self) -> usize {
        // Relaxed: a hint.
        self.central.length.load(Ordering::Relaxed)
    }

    fn blocks(&self) -> usize {
        self.central.all.with(|all| all.blocks.made())
    }

    fn label(&self) {
        stanchion_machine::label(&*self.central, "ready queue and free lists");
    }
}

impl<L: Lock, O: Order> fmt::Debug for SingleLock<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleLock").field("ready", &self.len()).finish_non_exhaustive()
    }
}
