//! A creator probes for an idle place at random and hands the task to it; if none was found, the task goes into a central ready queue.
//!
//! Why: as in an idle queue, work searches for places, and the block and its lock are out of the way between creation and start. But no lock is
//! taken for it, and idle places are in no queue for which they would contend. Why not: a creator looks at words of others each time, mostly for
//! nothing, and with few idle places it finds none although there is one, which must then watch the ready queue beside its own word. The paper names
//! this hybrid and doubts it: complexity adds a cost that may outweigh the benefit, which `cargo study all89/sec3.6` judges.
//!
//! `cargo xtask costs "create, next"` shows places that are never idle, for whom the probes are in vain: a task costs 129 ns with 8 processors, where
//! [`LocalFreeList`](super::LocalFreeList) has 82; with 64 it is 2.6 µs against 8.7, since whoever probes stays away from the lock meanwhile.
//!
//! Why so few probes ([`PROBES`]): where everybody works all of them are in vain. `cargo study all89/fig3.4` shows what a creation costs then.
//!
//! Why a claim before the block is filled, where the idle queue has a lock: the word of the place is what creators contend for.
//!
//! # The word of a place
//!
//! ```text
//! AWAY --place--> WAITING --creator--> CLAIMED --creator--> HANDED --place--> AWAY
//!                    |                                                         ^
//!                    +----------------------------place------------------------+
//! ```
//!
//! | `state` | meaning | left by |
//! | --- | --- | --- |
//! | `AWAY` | works, or looks for itself | the place, which shows itself: `WAITING` |
//! | `WAITING` | idle, with a free block in its seat | one creator: `CLAIMED`; or the place: `AWAY` |
//! | `CLAIMED` | a creator fills the block | that creator: `HANDED` |
//! | `HANDED` | the block is a task | the place, which takes it: `AWAY` |
//!
//! # Invariants
//!
//! 1. The block of a seat belongs to the place while `AWAY` or `HANDED`, to nobody while `WAITING`, to the creator that claimed it while `CLAIMED`.
//! 2. A place that is not `AWAY` has a block in its seat.
//! 3. A place is `CLAIMED` for as long as it takes to fill a block, whatever others do.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | place: store `WAITING` | Release | the creator's Acquire claim: the block is in the seat |
//! | creator: store `HANDED` | Release | the place's Acquire load: the block is filled |
//! | place: exchange `WAITING` for `AWAY` | Relaxed | none: nobody else has touched the seat since the place wrote it |
//! | `active`, `outside` | Relaxed | they only spread the probes |
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.6, the second of the two hybrids at its end.

use core::fmt;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_competitive::RawPolicyMutex;

use super::numbers::{Numbers, Source, below};
use super::ready_queue::ReadyQueue;
use crate::strategy::blocks::control_block::{Stack, Task};
use crate::strategy::blocks::resources::{Resources, keeps_resources};
use crate::strategy::interface::{Lock, Plan, Strategy, WakeTarget, WorkerSlot};
use crate::strategy::order::{Fifo, Order};

const AWAY: u32 = 0;
const WAITING: u32 = 1;
const CLAIMED: u32 = 2;
const HANDED: u32 = 3;

/// How many places a creator looks at: neighbours, from one chosen at random. If half of the others are idle it finds one three times in four.
const PROBES: usize = 2;

/// A central ready queue under a lock `L`, whose tasks leave in the order `O`, for what no idle place was found for by probing. Free blocks are in
/// local lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | none if an idle place was found; else 2, into the ready queue and out of it. And at most 4/T for its block |
/// | with an idle place found | creation to start: one line that the idle place watches |
/// | without | looks at 2 places more than [`LocalFreeList`](super::LocalFreeList) at each creation |
/// | memory | as [`LocalFreeList`](super::LocalFreeList), and a block for each idle place |
///
/// A place can be found between [`idle`](Strategy::idle) and the next [`next`](Strategy::next) or [`leave`](Strategy::leave), which may wait for a
/// creator that is filling its block. What was handed to it, nobody else can take. Tasks that are handed over pass by those in the ready queue.
///
/// The default lock is the one that sleeps when its holder does not run, as for [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{WorkerSlot, Plan, ProbeIdleElseCentral, Strategy, WakeTarget};
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
    seats: Box<[CachePadded<Seat>]>,
    numbers: Box<[CachePadded<Source>]>,
    /// Places from here on are not probed.
    active: CachePadded<AtomicUsize>,
    /// How many tasks came from those who have no place.
    outside: CachePadded<AtomicUsize>,
    resources: Resources<L>,
}

struct Seat {
    state: AtomicU32,
    block: UnsafeCell<Option<Task>>,
}

// SAFETY: `block` is touched by whoever Invariant 1 gives it to.
unsafe impl Sync for Seat {}

impl Seat {
    fn new() -> Self {
        Self { state: AtomicU32::fresh(AWAY), block: UnsafeCell::new(None) }
    }

    /// # Safety
    ///
    /// The caller has the block of this seat (Invariant 1).
    #[inline]
    unsafe fn exchange(&self, block: Option<Task>) -> Option<Task> {
        self.block.with_mut(|slot| {
            // SAFETY: the caller's promise.
            let slot = unsafe { &mut *slot };
            core::mem::replace(slot, block)
        })
    }

    /// The place shows itself, with this block.
    #[inline]
    fn wait(&self, block: Task) {
        // SAFETY: called by the place while `AWAY` (Invariant 1).
        let empty = unsafe { self.exchange(Some(block)) };
        debug_assert!(empty.is_none());
        // Release: pairs with the Acquire of `claim`.
        self.state.store(WAITING, Ordering::Release);
    }

    /// Takes the place for a creator, if it is there to be taken.
    #[inline]
    fn claim(&self) -> bool {
        // Relaxed: a hint, by which a seat that nobody waits in is not written to.
        if self.state.load(Ordering::Relaxed) != WAITING {
            return false;
        }
        // Acquire: pairs with the Release of `wait`. Relaxed where it fails: nothing is read then.
        let state = &self.state;
        state.compare_exchange(WAITING, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Fills the block and tells the place that it is a task.
    #[inline]
    fn hand(&self, fill: impl FnOnce(&Task)) {
        self.block.with(|block| {
            // SAFETY: called by who has claimed it (Invariant 1).
            let block = unsafe { &*block };
            fill(block.as_ref().expect("a place that waits has a block"));
        });
        // Release: pairs with the Acquire of `come_off`.
        self.state.store(HANDED, Ordering::Release);
    }

    /// The place's part: its block, which is a task or free, if it was not away. Then it is.
    #[inline]
    fn come_off(&self) -> Option<Block> {
        // Acquire: pairs with the Release of `hand`.
        match self.state.load(Ordering::Acquire) {
            AWAY => None,
            HANDED => self.handed(),
            _ => self.take_back(),
        }
    }

    #[cold]
    fn take_back(&self) -> Option<Block> {
        // Relaxed where it succeeds: nobody else has touched the seat. And where it fails: the wait looks again.
        let state = &self.state;
        if state.compare_exchange(WAITING, AWAY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // SAFETY: the place is away (Invariant 1).
            return unsafe { self.exchange(None) }.map(Block::Free);
        }
        // A creator is filling the block (Invariant 3). Acquire: pairs with the Release of `hand`.
        let handed = |state| state == HANDED;
        wait_until(&self.state, Ordering::Acquire, handed, &mut <Patient>::start());
        self.handed()
    }

    /// The task that was handed over.
    #[inline]
    fn handed(&self) -> Option<Block> {
        // Relaxed: nobody looks at the seat before the place shows itself again.
        self.state.store(AWAY, Ordering::Relaxed);
        // SAFETY: `HANDED` was seen with Acquire, so the creator has given the block up (Invariant 1).
        unsafe { self.exchange(None) }.map(Block::Task)
    }
}

/// What was in a seat.
enum Block {
    Free(Task),
    Task(Task),
}

impl<L: Lock, O: Order> ProbeIdleElseCentral<L, O> {
    #[inline]
    fn create_at(
        &self,
        slot: Option<&WorkerSlot>,
        last: bool,
        fill: impl FnOnce(&Task),
    ) -> WakeTarget {
        if let Some(idler) = self.probe(slot) {
            self.seats[idler].hand(fill);
            return WakeTarget::Worker(idler);
        }
        let task = self.resources.blocks.take(slot);
        fill(&task);
        WakeTarget::Any(self.central.push(task, last))
    }

    /// Looks for an idle place, and claims it.
    #[inline]
    fn probe(&self, slot: Option<&WorkerSlot>) -> Option<usize> {
        // Relaxed: only spreads.
        let active = self.active.load(Ordering::Relaxed);
        let number = match slot {
            Some(slot) => self.numbers[slot.index()].next(slot),
            // Relaxed: only spreads.
            None => Numbers::new(self.outside.fetch_add(1, Ordering::Relaxed) as u64).next(),
        };
        // All others, from the one after the place on.
        let (first, others) = match slot {
            Some(slot) if slot.index() < active => (slot.index() + 1, active - 1),
            _ => (0, active),
        };
        let start = below(others, number);
        let mut probed = (0..PROBES.min(others)).map(|probe| {
            let other = wrapped(start + probe, others);
            wrapped(first + other, active)
        });
        probed.find(|&idler| self.seats[idler].claim())
    }

    /// Leaves the seat, if the place is in it: a task if one was handed over. A block that is none goes back to the free ones.
    #[inline]
    fn come_off(&self, slot: &WorkerSlot) -> Option<Task> {
        match self.seats[slot.index()].come_off()? {
            Block::Task(task) => Some(task),
            Block::Free(block) => {
                self.resources.blocks.put(Some(slot), block);
                None
            }
        }
    }
}

/// `number` less `bound`, if it is not below.
#[inline]
fn wrapped(number: usize, bound: usize) -> usize {
    if number < bound { number } else { number - bound }
}

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it, or in a seat from its `create` to the next `next` or `leave` of
// that place; `leave` makes it ready again. A block in a seat is no task before `HANDED`. `is_ready` looks at the place's word and at the length
// that the last change has left; a place that is `CLAIMED` is told when it is `HANDED`.
unsafe impl<L: Lock, O: Order> Strategy for ProbeIdleElseCentral<L, O> {
    const NAME: &'static str = "probe idle else central";

    fn new(plan: &Plan) -> Self {
        let resources = Resources::new(plan);
        Self {
            central: CachePadded::new(ReadyQueue::new()),
            seats: (0..plan.slots).map(|_| CachePadded::new(Seat::new())).collect(),
            numbers: (0..plan.slots).map(|slot| CachePadded::new(Source::new(slot))).collect(),
            active: CachePadded::new(AtomicUsize::fresh(plan.active)),
            outside: CachePadded::new(AtomicUsize::fresh(0)),
            resources,
        }
    }

    #[inline]
    fn next(
        &self,
        slot: &WorkerSlot,
        finished: Option<Task>,
        hand: &mut Option<Stack>,
    ) -> Option<Task> {
        self.resources.finish(slot, finished);
        let task = self.come_off(slot).or_else(|| self.central.pop())?;
        self.resources.start(slot, hand);
        Some(task)
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: who says yes calls `next`, which looks with Acquire.
        let state = self.seats[slot.index()].state.load(Ordering::Relaxed);
        state == HANDED || self.central.len() > 0
    }

    /// Shows the place to creators, unless a task is ready.
    fn idle(&self, slot: &WorkerSlot) {
        let seat = &self.seats[slot.index()];
        // Relaxed: the place's own, unless it was claimed, which is not `AWAY` either.
        if seat.state.load(Ordering::Relaxed) != AWAY || self.central.len() > 0 {
            return;
        }
        self.resources.prepare_stack(slot);
        seat.wait(self.resources.blocks.take(Some(slot)));
    }

    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let task = self.come_off(slot)?;
        Some(WakeTarget::Any(self.central.push(task, false)))
    }

    fn resize(&self, active: usize) {
        // Relaxed: only spreads.
        self.active.store(active.min(self.seats.len()), Ordering::Relaxed);
    }

    /// In the ready queue, and in the hands of places that have not looked yet.
    fn len(&self) -> usize {
        // Relaxed: a hint.
        let handed = |seat: &&CachePadded<Seat>| seat.state.load(Ordering::Relaxed) == HANDED;
        self.central.len() + self.seats.iter().filter(handed).count()
    }

    fn label(&self) {
        machine::label(&*self.central, "ready queue");
        machine::label(&*self.seats, "words of idle places");
        self.resources.label();
    }

    keeps_resources!();
}

impl<L: Lock, O: Order> fmt::Debug for ProbeIdleElseCentral<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeIdleElseCentral").field("ready", &self.len()).finish_non_exhaustive()
    }
}
