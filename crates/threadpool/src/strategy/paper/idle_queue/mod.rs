//! A central ready queue, and a central queue of idle places: instead of places searching for work, work searches for places.
//!
//! A place that has nothing to do takes a free block, queues itself and watches a word of its own. Whoever creates a task takes a place out of that
//! queue, fills the block that it holds, and sets its word. So the block and the lock of the idle place are out of the way between creation and
//! start.
//!
//! Why not always: when all places are busy, each creation looks at an empty idle queue, for nothing. And a task that was handed over waits for that
//! one place, even if it has been stopped meanwhile and another would have come first.
//!
//! Why one lock around both queues, where there could be two: a place queues itself only if no task is ready, and a task is made ready only if no
//! place is queued. Under one lock each of these is one step. Under two, a task and a place could each just miss the other, and the place would have
//! to watch the ready queue beside its own word. Creation and start are one acquisition each, as with two.
//!
//! Why the place that came last is taken first: it is the most likely not to have gone to sleep.
//!
//! # The word of a place
//!
//! | `state` | meaning | left by |
//! | --- | --- | --- |
//! | `AWAY` | not in the idle queue | the place, which queues itself: `WAITING` |
//! | `WAITING` | in the idle queue, or just taken out by a creator | the place, if it takes itself out: `AWAY`; else that creator: `HANDED` |
//! | `HANDED` | its block is a task | the place, which takes it: `AWAY` |
//!
//! # Invariants
//!
//! 1. Under the lock, one of the two queues is empty.
//! 2. A place in the idle queue is `WAITING` and has a block in its seat. Whoever takes it out of the queue, a creator or the place itself, has that
//!    block alone, until a creator sets `HANDED`; then the place has it.
//! 3. `ready` and `idle` are the lengths of the queues whenever nobody holds the lock.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | creator: store `HANDED` | Release | the place's Acquire load: the block is filled |
//! | place: store `WAITING`, `AWAY` | Relaxed | the lock: a creator finds the place in the queue after that, or not at all |
//! | `ready`, `idle` | Relaxed | hints; the lock orders the rest |
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.4.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, AtomicUsize, Fresh, Ordering};
use machine::cell::UnsafeCell;
use machine::wait::{Patient, WaitPolicy, wait_until};
use stanchion_competitive::RawPolicyMutex;

use self::idle::Idle;
use crate::strategy::blocks::control_block::{Chain, Stack, Task};
use crate::strategy::blocks::resources::{Resources, keeps_resources};
use crate::strategy::interface::{Lock, Plan, Strategy, WakeTarget, WorkerSlot};
use crate::strategy::order::{Fifo, Order};
use crate::strategy::paper::ready_queue::put;
use crate::sync::locked::Locked;

mod idle;

const AWAY: u32 = 0;
const WAITING: u32 = 1;
const HANDED: u32 = 2;

/// A ready queue and a queue of idle places under a lock `L`; ready tasks leave in the order `O`. Free blocks are in local lists.
///
/// | | |
/// | --- | --- |
/// | acquisitions in a task's life | 2: into the ready queue, out of it; or the place into the idle queue, out of it. And at most 4/T for the block |
/// | with idle places | creation to start: one acquisition, and one line that the idle place watches |
/// | without | a look more than [`LocalFreeList`](super::LocalFreeList) at each creation |
/// | memory | as [`LocalFreeList`](super::LocalFreeList), and a block for each idle place |
///
/// A place is in the idle queue between [`idle`](Strategy::idle) and the next [`next`](Strategy::next) or [`leave`](Strategy::leave), which may wait
/// for a creator that has taken it out and is filling its block. What was handed to it, nobody else can take.
///
/// The default lock is the one that sleeps when its holder does not run, as for [`SingleLock`](super::SingleLock).
///
/// ```
/// use stanchion_threadpool::strategy::{IdleQueue, WorkerSlot, Plan, Strategy, WakeTarget};
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
    seats: Box<[CachePadded<Seat>]>,
    resources: Resources<L>,
    order: PhantomData<fn() -> O>,
}

struct Central<L> {
    ready: AtomicUsize,
    idle: AtomicUsize,
    queues: Locked<L, Queues>,
}

struct Queues {
    ready: Chain<Task>,
    idle: Idle,
}

struct Seat {
    state: AtomicU32,
    block: UnsafeCell<Option<Task>>,
}

// SAFETY: `block` is touched by whoever Invariant 2 gives it to.
unsafe impl Sync for Seat {}

impl Seat {
    fn new() -> Self {
        Self { state: AtomicU32::fresh(AWAY), block: UnsafeCell::new(None) }
    }

    /// # Safety
    ///
    /// The caller has the block of this seat (Invariant 2).
    #[inline]
    unsafe fn exchange(&self, block: Option<Task>) -> Option<Task> {
        self.block.with_mut(|slot| {
            // SAFETY: the caller's promise.
            let slot = unsafe { &mut *slot };
            core::mem::replace(slot, block)
        })
    }

    /// Tells the place that its block is a task.
    #[inline]
    fn hand(&self) {
        // Release: pairs with the Acquire of `come_off`.
        self.state.store(HANDED, Ordering::Release);
    }

    /// The task that was handed over, for the place.
    #[inline]
    fn handed(&self) -> Option<Task> {
        // Relaxed: nobody looks at it before the place queues itself again.
        self.state.store(AWAY, Ordering::Relaxed);
        // SAFETY: `HANDED` was seen with Acquire: the creator has given the block up.
        unsafe { self.exchange(None) }
    }
}

impl<L: Lock, O: Order> IdleQueue<L, O> {
    #[inline]
    fn create_at(
        &self,
        slot: Option<&WorkerSlot>,
        last: bool,
        fill: impl FnOnce(&Task),
    ) -> WakeTarget {
        // Relaxed: a hint; a place that queues itself just now is found under the lock.
        if self.central.idle.load(Ordering::Relaxed) > 0
            && let Some(idler) = self.central.queues.with(|queues| self.central.take_idle(queues))
        {
            let seat = &self.seats[idler];
            seat.block.with(|block| {
                // SAFETY: the place has just been taken out of the queue, so the block is ours (Invariant 2).
                let block = unsafe { &*block };
                fill(block.as_ref().expect("a place in the idle queue has a block"));
            });
            seat.hand();
            return WakeTarget::Worker(idler);
        }
        let task = self.resources.blocks.take(slot);
        fill(&task);
        self.make_ready(slot, last, task)
    }

    /// Hands a task that is filled to an idle place, or puts it into the ready queue.
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
                let seat = &self.seats[idler];
                // SAFETY: the place has just been taken out of the queue, so the block is ours (Invariant 2).
                if let Some(block) = unsafe { seat.exchange(task) } {
                    seat.hand();
                    self.resources.blocks.put(slot, block);
                }
                WakeTarget::Worker(idler)
            }
            Err(ready) => WakeTarget::Any(ready),
        }
    }

    /// Takes the place out of the idle queue, or takes what it was handed. Afterwards it is `AWAY`.
    #[inline]
    fn come_off(&self, slot: &WorkerSlot) -> Option<Task> {
        let seat = &self.seats[slot.index()];
        // Acquire: pairs with the Release of `hand`.
        match seat.state.load(Ordering::Acquire) {
            AWAY => None,
            WAITING => self.take_back(slot, seat),
            _ => seat.handed(),
        }
    }

    #[cold]
    fn take_back(&self, slot: &WorkerSlot, seat: &Seat) -> Option<Task> {
        let out = self.central.queues.with(|queues| {
            let out = queues.idle.remove(slot.index());
            self.central.now(queues);
            out
        });
        if !out {
            // A creator has taken the place out, and is filling its block. Acquire: pairs with the Release of `hand`.
            let handed = |state| state == HANDED;
            wait_until(&seat.state, Ordering::Acquire, handed, &mut <Patient>::start());
            return seat.handed();
        }
        // Relaxed: nobody looks at it before the place queues itself again.
        seat.state.store(AWAY, Ordering::Relaxed);
        // SAFETY: the place has taken itself out (Invariant 2).
        if let Some(block) = unsafe { seat.exchange(None) } {
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
}

impl<L> Central<L> {
    /// Under the lock: the queues have changed.
    #[inline]
    fn now(&self, queues: &Queues) {
        // Relaxed: hints, written under the lock (Invariant 3).
        self.ready.store(queues.ready.len(), Ordering::Relaxed);
        // Relaxed: likewise.
        self.idle.store(queues.idle.len(), Ordering::Relaxed);
    }

    /// Under the lock: takes the place out that queued itself last.
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

// SAFETY: a task is in the ready queue from its `create` to the `next` that takes it, or in a seat from its `create` to the next `next` or `leave` of
// that place; `leave` makes it ready again. A block in a seat is no task before `HANDED`. A place in the idle queue finds nothing but what it is
// handed (Invariant 1), and any other nothing but what is in the ready queue.
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
        let seat = || CachePadded::new(Seat::new());
        Self {
            central: CachePadded::new(central),
            seats: core::iter::repeat_with(seat).take(plan.slots).collect(),
            resources,
            order: PhantomData,
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
        let task = self.come_off(slot).or_else(|| self.pop())?;
        self.resources.start(slot, hand);
        Some(task)
    }

    #[inline]
    fn is_ready(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: who says yes calls `next`, which looks with Acquire.
        match self.seats[slot.index()].state.load(Ordering::Relaxed) {
            AWAY => self.central.has_ready(),
            // While it is in the idle queue nothing is ready (Invariant 1), and it has its own word to watch.
            state => state == HANDED,
        }
    }

    /// Queues the place, unless a task is ready.
    fn idle(&self, slot: &WorkerSlot) {
        let seat = &self.seats[slot.index()];
        // Relaxed: the place's own, unless it was handed a task, which is not `AWAY` either.
        if seat.state.load(Ordering::Relaxed) != AWAY || self.central.has_ready() {
            return;
        }
        self.resources.prepare_stack(slot);
        let block = self.resources.blocks.take(Some(slot));
        // SAFETY: the place is away, so the seat is its own (Invariant 2).
        let empty = unsafe { seat.exchange(Some(block)) };
        debug_assert!(empty.is_none());
        // Relaxed: whoever finds the place in the queue comes after this, by the lock.
        seat.state.store(WAITING, Ordering::Relaxed);
        let queued = self.central.queues.with(|queues| {
            let queues_up = queues.ready.is_empty();
            if queues_up {
                queues.idle.add(slot.index());
                self.central.now(queues);
            }
            queues_up
        });
        if !queued {
            // Relaxed: nobody looks at it before the place queues itself again.
            seat.state.store(AWAY, Ordering::Relaxed);
            // SAFETY: the place was never in the queue (Invariant 2).
            if let Some(block) = unsafe { seat.exchange(None) } {
                self.resources.blocks.put(Some(slot), block);
            }
        }
    }

    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let task = self.come_off(slot)?;
        Some(self.make_ready(Some(slot), false, task))
    }

    /// In the ready queue, and in the hands of places that have not looked yet.
    fn len(&self) -> usize {
        // Relaxed: hints.
        let handed = |seat: &&CachePadded<Seat>| seat.state.load(Ordering::Relaxed) == HANDED;
        // Relaxed: likewise.
        self.central.ready.load(Ordering::Relaxed) + self.seats.iter().filter(handed).count()
    }

    fn label(&self) {
        machine::label(&*self.central, "ready queue and idle queue");
        machine::label(&*self.seats, "words of idle places");
        self.resources.label();
    }

    keeps_resources!();
}

impl<L: Lock, O: Order> fmt::Debug for IdleQueue<L, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleQueue")
            .field("ready", &self.central.ready)
            .field("idle", &self.central.idle)
            .finish_non_exhaustive()
    }
}
