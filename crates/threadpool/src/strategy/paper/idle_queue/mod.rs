//! A central ready queue, and a central queue of idle workers: instead of workers searching for
//! work, work searches for workers.
//!
//! A worker that has nothing to do offers a free block in its handoff cell (`handoff.rs`), queues
//! itself and watches the cell. A creator takes a worker out of that queue, fills its block, and
//! sets its cell. So the block and the lock of the idle worker are out of the way between creation
//! and start.
//!
//! Why not always: when all workers are busy, each creation looks at an empty idle queue, for
//! nothing. And a task that was handed over waits for that one worker, even if the worker has been
//! stopped meanwhile and another would have come first.
//!
//! Why one lock around both queues, where there could be two: a worker queues itself only if no
//! task is ready, and a task is made ready only if no worker is queued. Under one lock each of
//! these is one step. Under two, a task and a worker could each just miss the other, and the worker
//! would have to watch the ready queue beside its own cell. Creation and start are one acquisition
//! each, as with two.
//!
//! Why the worker that came last is taken first: it is the most likely not to have gone to sleep.
//!
//! # Invariants
//!
//! 1. Under the lock, one of the two queues is empty.
//! 2. A worker in the idle queue is `WAITING`. The thread that takes it out of the queue, a creator
//!    or the worker itself, has its block alone, until a creator stores `HANDED`. Then the worker
//!    has it.
//! 3. `ready` and `idle` are the lengths of the queues whenever the lock is free.
//!
//! # Orderings
//!
//! Those of the cell are in `handoff.rs`. `ready` and `idle` are Relaxed hints. The lock orders the
//! rest.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.4.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use self::idle::Idle;
use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Chain, Resources, Stack, Task};
use crate::strategy::paper::handoff::{AWAY, HANDED, Handoff, WAITING};
use crate::strategy::paper::ready_queue::put;
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};
use crate::sync::Locked;

mod idle;

/// A ready queue and a queue of idle workers under a lock `L`. Ready tasks leave in the order `O`.
/// Free blocks are in local lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2, into a queue and out of it; at most 4/T for the block |
/// | with idle workers | one acquisition between creation and start, and one line |
/// | without | a look more than [`LocalFreeList`](super::LocalFreeList) at each creation |
/// | memory | as [`LocalFreeList`](super::LocalFreeList), and a block for each idle worker |
///
/// The queue is that of ready tasks or of idle workers. A worker is in the idle queue between
/// [`idle`](Strategy::idle) and the next [`next`](Strategy::next) or [`leave`](Strategy::leave),
/// which may wait for a creator that has taken it out and is filling its block. A task that was
/// handed to it can be taken by no other worker.
///
/// The default lock is the one that sleeps when its holder does not run, as for
/// [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{IdleQueue, Plan, Strategy, WakeTarget, WorkerSlot};
///
/// let ready: IdleQueue = IdleQueue::new(&Plan::new(2));
/// // SAFETY: the only one of this number for this strategy; so below.
/// let creator = unsafe { WorkerSlot::new(0) };
/// // SAFETY: as above.
/// let idler = unsafe { WorkerSlot::new(1) };
///
/// ready.idle(&idler);
/// assert_eq!(ready.create(Some(&creator), |_| {}), WakeTarget::Worker(1));
/// assert!(ready.is_ready(&idler) && !ready.is_ready(&creator));
///
/// let task = ready.next(&idler, None, &mut None).unwrap();
/// assert_eq!(ready.create(Some(&creator), |_| {}), WakeTarget::Any(1));
/// assert!(ready.next(&idler, Some(task), &mut None).is_some());
/// ```
pub struct IdleQueue<L = RawPolicyMutex, O = Fifo> {
    central: CachePadded<Central<L>>,
    /// The handoff cell of each slot.
    cells: Box<[CachePadded<Handoff>]>,
    /// Free blocks and stacks.
    resources: Resources<L>,
    /// The order of the ready queue.
    order: PhantomData<fn() -> O>,
}

struct Central<L> {
    /// The length of the ready queue (Invariant 3). Written under the lock.
    ready: AtomicUsize,
    /// The length of the idle queue (Invariant 3). Written under the lock.
    idle: AtomicUsize,
    queues: Locked<L, Queues>,
}

struct Queues {
    ready: Chain<Task>,
    /// Idle workers, by slot.
    idle: Idle,
}

impl<L: Lock, O: Order> IdleQueue<L, O> {
    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        // Relaxed: a hint; a worker that queues itself just now is found under the lock.
        if self.central.idle.load(Ordering::Relaxed) > 0
            && let Some(idler) = self.central.queues.with(|queues| self.central.take_idle(queues))
        {
            let cell = &self.cells[idler];
            // SAFETY: this creator has just taken the slot out of the queue (Invariant 2).
            unsafe { cell.fill(fill) };
            cell.hand();
            return WakeTarget::Worker(idler);
        }
        let task = self.resources.blocks.take(slot);
        fill(&task);
        self.make_ready(slot, last, task)
    }

    /// Hands a task that is filled to an idle worker, or puts it into the ready queue.
    #[inline]
    fn make_ready(&self, slot: Option<&WorkerSlot>, last: bool, task: Task) -> WakeTarget {
        let mut task = Some(task);
        let idler = self.central.queues.with(|queues| {
            let idler = self.central.take_idle(queues);
            if idler.is_none()
                && let Some(task) = task.take()
            {
                put::<O>(&mut queues.ready, task, last);
                self.central.now(queues);
            }
            idler.ok_or(queues.ready.len())
        });
        match idler {
            Ok(idler) => {
                let cell = &self.cells[idler];
                // SAFETY: this creator has just taken the slot out of the queue (Invariant 2).
                if let Some(block) = unsafe { cell.exchange(task) } {
                    cell.hand();
                    self.resources.blocks.put(slot, block);
                }
                WakeTarget::Worker(idler)
            }
            Err(ready) => WakeTarget::Any(ready),
        }
    }

    /// Takes the worker out of the idle queue, or takes what it was handed. Afterwards it is
    /// `AWAY`.
    #[inline]
    fn come_off(&self, slot: &WorkerSlot) -> Option<Task> {
        let cell = &self.cells[slot.index()];
        // Acquire: pairs with the Release of `hand`.
        match cell.state(Ordering::Acquire) {
            AWAY => None,
            WAITING => self.take_back(slot, cell),
            _ => cell.take_handed(),
        }
    }

    #[cold]
    fn take_back(&self, slot: &WorkerSlot, cell: &Handoff) -> Option<Task> {
        let out = self.central.queues.with(|queues| {
            let out = queues.idle.remove(slot.index());
            self.central.now(queues);
            out
        });
        // Not in the queue any more: a creator has taken the slot out and is filling its block.
        if !out {
            return cell.wait_until_handed();
        }
        // The worker has taken its slot out itself (Invariant 2).
        if let Some(block) = cell.take_free() {
            self.resources.blocks.put(Some(slot), block);
        }
        None
    }

    /// Takes the next out of the ready queue.
    #[inline]
    fn pop(&self) -> Option<Task> {
        if !self.central.has_ready() {
            return None;
        }
        self.central.queues.with(|queues| {
            let task = queues.ready.pop_front();
            self.central.now(queues);
            task
        })
    }

    /// Takes the next task for the worker, if there is one.
    #[inline]
    fn find(&self, slot: &WorkerSlot) -> Option<Task> {
        self.come_off(slot).or_else(|| self.pop())
    }
}

impl<L> Central<L> {
    /// Updates the lengths under the lock, as the queues have changed.
    #[inline]
    fn now(&self, queues: &Queues) {
        // Relaxed: hints, written under the lock (Invariant 3).
        self.ready.store(queues.ready.len(), Ordering::Relaxed);
        // Relaxed: likewise.
        self.idle.store(queues.idle.len(), Ordering::Relaxed);
    }

    /// Takes the worker out that queued itself last. Called under the lock.
    #[inline]
    fn take_idle(&self, queues: &mut Queues) -> Option<usize> {
        let idler = queues.idle.take_newest()?;
        self.now(queues);
        Some(idler)
    }

    #[inline]
    fn has_ready(&self) -> bool {
        // Relaxed: a hint.
        self.ready.load(Ordering::Relaxed) > 0
    }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it, or in a cell
// from its `create` to the next `next` or `leave` of that worker. `leave` makes it ready again. A
// block in a cell is no task before `HANDED`. A worker in the idle queue finds only the task that
// it is handed (Invariant 1), and any other worker only tasks of the ready queue.
unsafe impl<L: Lock, O: Order> Strategy for IdleQueue<L, O> {
    const NAME: &'static str = "idle queue";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        let queues = Queues { ready: Chain::new(), idle: Idle::new(plan.slots) };
        let central = Central {
            ready: AtomicUsize::fresh(0),
            idle: AtomicUsize::fresh(0),
            queues: Locked::new(queues),
        };
        let cell = || CachePadded::new(Handoff::new());
        Self {
            central: CachePadded::new(central),
            cells: core::iter::repeat_with(cell).take(plan.slots).collect(),
            resources,
            order: PhantomData,
        }
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: a worker that sees yes calls `next`, which looks with Acquire.
        match self.cells[slot.index()].state(Ordering::Relaxed) {
            AWAY => self.central.has_ready(),
            // While it is in the idle queue nothing is ready (Invariant 1), and it has its own word
            // to watch.
            state => state == HANDED,
        }
    }

    /// Queues the worker, unless a task is ready.
    fn idle(&self, slot: &WorkerSlot) {
        let cell = &self.cells[slot.index()];
        // Relaxed: the worker's own, unless it was handed a task, which is not `AWAY` either.
        if cell.state(Ordering::Relaxed) != AWAY || self.central.has_ready() {
            return;
        }
        self.resources.prepare_stack(slot);
        cell.offer(self.resources.blocks.take(Some(slot)));
        let queued = self.central.queues.with(|queues| {
            let queues_up = queues.ready.is_empty();
            if queues_up {
                queues.idle.add(slot.index());
                self.central.now(queues);
            }
            queues_up
        });
        // A task is ready: the slot was never in the queue (Invariant 2).
        if !queued && let Some(block) = cell.take_free() {
            self.resources.blocks.put(Some(slot), block);
        }
    }

    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let task = self.come_off(slot)?;
        Some(self.make_ready(Some(slot), false, task))
    }

    /// Counts tasks of the ready queue, and tasks in cells at which no worker has looked yet.
    fn len(&self) -> usize {
        // Relaxed: hints.
        let handed = |cell: &&CachePadded<Handoff>| cell.state(Ordering::Relaxed) == HANDED;
        // Relaxed: likewise.
        self.central.ready.load(Ordering::Relaxed) + self.cells.iter().filter(handed).count()
    }

    fn label(&self) {
        stanchion_machine::label(&*self.central, "ready queue and idle queue");
        stanchion_machine::label(&*self.cells, "words of idle slots");
        self.resources.label();
    }

    keeps_resources!(and finds);
}

impl<L: Lock, O: Order> fmt::Debug for IdleQueue<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleQueue")
            .field("ready", &self.central.ready)
            .field("idle", &self.central.idle)
            .finish_non_exhaustive()
    }
}
