//! A creator probes for an idle worker at random and hands the task to it. If it finds none, the
//! task goes into a central ready queue.
//!
//! Why: as with an idle queue, work searches for workers, and the block and its lock are out of the
//! way between creation and start. But no lock is taken for it, and idle workers are in no queue
//! for which they would contend. Why not: a creator looks at cells of others each time, mostly for
//! nothing. With few idle workers it may find none although there is one, which must then watch the
//! ready queue beside its own cell. The paper names this hybrid and doubts it: complexity adds a
//! cost that may outweigh the benefit, which `cargo study all89/sec3.6` judges.
//!
//! `cargo xtask costs "create, next"` shows workers that are never idle, so that the probes are in
//! vain. A task costs 133 ns with 8 processors, where [`LocalFreeList`](super::LocalFreeList) has
//! 84. With 64 it is 2.9 µs against 6.5, since a probing worker stays away from the lock
//! meanwhile.
//!
//! Why so few probes ([`PROBES`]): where all workers work, all of them are in vain. `cargo study
//! all89/fig3.4` shows what a creation costs then.
//!
//! Why a claim before the block is filled, where the idle queue has a lock: creators contend for
//! the word of the cell (`handoff.rs`, with its states and orderings).
//!
//! ```text
//! AWAY --worker--> WAITING --creator--> CLAIMED --creator--> HANDED --worker--> AWAY
//!                     |                                                          ^
//!                     +---------------------------worker-------------------------+
//! ```
//!
//! A worker is `CLAIMED` only as long as it takes to fill a block. `active` and `outside` are
//! Relaxed: they only spread the probes.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.6, the second of the two hybrids at its end.

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use super::handoff::{AWAY, Block, HANDED, Handoff};
use super::numbers::{Numbers, Source, below};
use super::ready_queue::ReadyQueue;
use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Resources, Stack, Task};
use crate::strategy::{Fifo, Lock, Order, Plan, Strategy, WakeTarget, WorkerSlot};

/// The number of workers at which a creator looks: neighbours, from one chosen at random. If half
/// of the others are idle it finds one three times in four.
const PROBES: usize = 2;

/// A central ready queue under a lock `L`, for tasks for which no idle worker was found by probing.
/// Its tasks leave in the order `O`. Free blocks are in local lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | none if an idle worker is found, else 2; 4/T for a block |
/// | with an idle worker found | creation to start: one line that the idle worker watches |
/// | without | looks at 2 more cells than [`LocalFreeList`](super::LocalFreeList) |
/// | memory | as [`LocalFreeList`](super::LocalFreeList), and a block for each idle worker |
///
/// A worker can be found between [`idle`](Strategy::idle) and the next [`next`](Strategy::next) or
/// [`leave`](Strategy::leave), which may wait for a creator that is filling its block. A task that
/// was handed to it can be taken by no other worker. Tasks that are handed over overtake those in
/// the ready queue.
///
/// The default lock is the one that sleeps when its holder does not run, as for
/// [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{Plan, ProbeIdleElseCentral, Strategy};
/// use stanchion_threadpool::strategy::{WakeTarget, WorkerSlot};
///
/// let ready: ProbeIdleElseCentral = ProbeIdleElseCentral::new(&Plan::new(2));
/// // SAFETY: the only one of this number for this strategy; so below.
/// let creator = unsafe { WorkerSlot::new(0) };
/// // SAFETY: as above.
/// let idler = unsafe { WorkerSlot::new(1) };
///
/// ready.idle(&idler);
/// assert_eq!(ready.create(Some(&creator), |_| {}), WakeTarget::Worker(1));
///
/// let task = ready.next(&idler, None, &mut None).unwrap();
/// assert_eq!(ready.create(Some(&creator), |_| {}), WakeTarget::Any(1));
/// assert!(ready.next(&idler, Some(task), &mut None).is_some());
/// ```
pub struct ProbeIdleElseCentral<L = RawPolicyMutex, O = Fifo> {
    central: CachePadded<ReadyQueue<L, O>>,
    /// The handoff cell of each slot.
    cells: Box<[CachePadded<Handoff>]>,
    /// The random numbers of each slot.
    numbers: Box<[CachePadded<Source>]>,
    /// Slots from here on are not probed. Written by `resize`.
    active: CachePadded<AtomicUsize>,
    /// Tasks from threads that have no slot. Written by each of them.
    outside: CachePadded<AtomicUsize>,
    /// Free blocks and stacks.
    resources: Resources<L>,
}

impl<L: Lock, O: Order> ProbeIdleElseCentral<L, O> {
    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        if let Some(idler) = self.probe(slot) {
            // SAFETY: this creator has claimed the block (Invariant 1 of `handoff.rs`).
            unsafe { self.cells[idler].fill(fill) };
            self.cells[idler].hand();
            return WakeTarget::Worker(idler);
        }
        let task = self.resources.blocks.take(slot);
        fill(&task);
        WakeTarget::Any(self.central.push(task, last))
    }

    /// Looks for an idle worker, and claims it.
    #[inline]
    fn probe(&self, slot: Option<&WorkerSlot>) -> Option<usize> {
        // Relaxed: only spreads.
        let active = self.active.load(Ordering::Relaxed);
        let number = match slot {
            Some(slot) => self.numbers[slot.index()].next(slot),
            // Relaxed: only spreads.
            None => Numbers::new(self.outside.fetch_add(1, Ordering::Relaxed) as u64).next(),
        };
        // All others, from the one after the worker on.
        let (first, others) = match slot {
            Some(slot) if slot.index() < active => (slot.index() + 1, active - 1),
            _ => (0, active),
        };
        let start = below(others, number);
        let mut probed = (0..PROBES.min(others)).map(|probe| {
            let other = wrapped(start + probe, others);
            wrapped(first + other, active)
        });
        probed.find(|&idler| self.cells[idler].claim())
    }

    /// Takes the block out of the worker's cell, if there is one: a task if one was handed over. A
    /// free block goes back to the free ones.
    #[inline]
    fn come_off(&self, slot: &WorkerSlot) -> Option<Task> {
        match self.cells[slot.index()].withdraw()? {
            Block::Task(task) => Some(task),
            Block::Free(block) => {
                self.resources.blocks.put(Some(slot), block);
                None
            }
        }
    }

    /// Takes the next task for the worker, if there is one.
    #[inline]
    fn find(&self, slot: &WorkerSlot) -> Option<Task> {
        self.come_off(slot).or_else(|| self.central.pop())
    }
}

/// Returns `number`, less `bound` if it is not below.
#[inline]
fn wrapped(number: usize, bound: usize) -> usize {
    if number < bound { number } else { number - bound }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it, or in a cell
// from its `create` to the next `next` or `leave` of that worker. `leave` makes it ready again. A
// block in a cell is no task before `HANDED`. `is_ready` looks at the worker's cell and at the
// length that the last change has left. A worker that is `CLAIMED` is woken when it is `HANDED`.
unsafe impl<L: Lock, O: Order> Strategy for ProbeIdleElseCentral<L, O> {
    const NAME: &'static str = "probe idle else central";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        Self {
            central: CachePadded::new(ReadyQueue::new()),
            cells: (0..plan.slots).map(|_| CachePadded::new(Handoff::new())).collect(),
            numbers: (0..plan.slots).map(|slot| CachePadded::new(Source::new(slot))).collect(),
            active: CachePadded::new(AtomicUsize::fresh(plan.active)),
            outside: CachePadded::new(AtomicUsize::fresh(0)),
            resources,
        }
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: a worker that sees yes calls `next`, which looks with Acquire.
        let state = self.cells[slot.index()].state(Ordering::Relaxed);
        state == HANDED || self.central.len() > 0
    }

    /// Shows the worker to creators, unless a task is ready.
    fn idle(&self, slot: &WorkerSlot) {
        let cell = &self.cells[slot.index()];
        // Relaxed: the worker's own, unless it was claimed, which is not `AWAY` either.
        if cell.state(Ordering::Relaxed) != AWAY || self.central.len() > 0 {
            return;
        }
        self.resources.prepare_stack(slot);
        cell.offer(self.resources.blocks.take(Some(slot)));
    }

    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let task = self.come_off(slot)?;
        Some(WakeTarget::Any(self.central.push(task, false)))
    }

    fn resize(&self, active: usize) {
        // Relaxed: only spreads.
        self.active.store(active.min(self.cells.len()), Ordering::Relaxed);
    }

    /// Counts tasks of the ready queue, and tasks in cells at which no worker has looked yet.
    fn len(&self) -> usize {
        // Relaxed: a hint.
        let handed = |cell: &&CachePadded<Handoff>| cell.state(Ordering::Relaxed) == HANDED;
        self.central.len() + self.cells.iter().filter(handed).count()
    }

    fn label(&self) {
        stanchion_machine::label(&*self.central, "ready queue");
        stanchion_machine::label(&*self.cells, "words of idle slots");
        self.resources.label();
    }

    keeps_resources!(and finds);
}

impl<L: Lock, O: Order> fmt::Debug for ProbeIdleElseCentral<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeIdleElseCentral").field("ready", &self.len()).finish_non_exhaustive()
    }
}
