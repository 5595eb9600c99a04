//! A ready queue per place, which its owner uses without a lock; who has nothing takes half of what
//! another has.
//!
//! Why: between a place and its own queue there are no locked instructions and no fences, so a task
//! costs what its control block costs. Why thieves take half, and the oldest: each theft interrupts
//! the victim's processor (see `biased.rs`), so there should be few; the oldest are the largest
//! where tasks create tasks, and the farthest from the victim's cache. Why not the last one of a
//! queue at once: its owner, who has just created it, will most likely run it next; a thief that
//! got it would only have moved the work. It takes such a task when it has found nothing else
//! several times.
//!
//! ```text
//! slot 0:  own    front [oldest ┆ … ┆ newest] back   owner: pushes and pops at the back
//!           later  front [oldest ┆ … ┆ newest] back   owner: pushes at the back, pops at the front
//! slot 1:  own    front [ … ] back                   thief: half of both, at most 32: from the
//!           later  front [ … ] back                          front of `later`, then of `own`
//! outside:  a queue under a lock; a slot takes its share of it, at most 32
//! ```
//!
//! # Order
//!
//! What a place creates, it runs newest first. "Last" tasks, and what the place has moved here from
//! another queue, lie in `later`: the place runs them oldest first, when it has none of its own.
//! Once in 64 tasks the first of `later` comes before those of its own, and once the first from
//! outside. So neither waits for ever beside tasks that create tasks. The oldest of a place's own
//! tasks may wait as long as newer ones are created and no thief comes.
//!
//! # Invariants
//!
//! 1. `ready` of a queue is its length as its last user left it.
//! 2. What belongs to a place and has no lock is touched through its [`WorkerSlot`].
//! 3. Nobody is inside two queues: a thief goes out with what it has taken before it enters its
//!    own.
//!
//! # Orderings
//!
//! `ready` is Relaxed, a hint while others run. For the final look of who goes to sleep it is
//! exact: whoever creates a task tells afterwards, and `light` and `heavy` are between (see
//! `sleeping.rs`).
//!
//! Source: Blumofe and Leiserson 1999 for stealing the oldest; half at once, Hendler and Shavit
//! 2002; which is left to its owner until a last pass is Go's.

pub(crate) mod biased;

use core::cell::Cell;
use core::fmt;
use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_spin::TestAndSet;

use self::biased::BiasedLock;
use crate::metrics::Count;
use crate::strategy::blocks::control_block::{Chain, Stack, Task};
use crate::strategy::blocks::resources::{Resources, keeps_resources};
use crate::strategy::interface::{Plan, Strategy, WakeTarget, WorkerSlot};
use crate::sync::locked::Locked;

/// The most that is moved between two queues at a time.
const BATCH: usize = 32;

/// How often a place looks for others' tasks in vain before it takes the only one that another has.
const PASSES: u32 = 4;

/// Once in so many tasks a place looks first at what came from outside, and half-way between at its
/// `later` queue: neither is forgotten while tasks create tasks.
const TURNS: u32 = 64;

/// Free blocks that a place keeps, unless the plan says otherwise.
const THRESHOLD: usize = 64;

/// Ready queues that their owners use without a lock, and thieves.
///
/// | | |
/// | --- | --- |
/// | locked instructions in a task's life | none, if it runs where it was created |
/// | a theft | some microseconds (`asymmetric::heavy`), for at most 32 tasks; the victim's processor is interrupted where [`machine::asymmetric`] is free, else the owner fences |
/// | order | own tasks newest first; then those of [`create_last`](Strategy::create_last) and stolen ones, oldest first; then those from outside, oldest first. Once in 64 tasks each of the other two kinds comes before own tasks |
/// | memory | as many blocks as were in use at a time, and at most 65 for each place |
///
/// ```
/// use stanchion_threadpool::strategy::{WorkerSlot, Plan, Strategy, WorkStealing};
///
/// let ready = WorkStealing::new(&Plan::new(2));
/// // SAFETY: one of each number.
/// let (mine, other) = unsafe { (WorkerSlot::new(0), WorkerSlot::new(1)) };
/// for _ in 0..8 {
///     let _ = ready.create(Some(&mine), |_| {});
/// }
/// // The other slot takes half, and starts with one of them.
/// let stolen = ready.next(&other, None, &mut None).unwrap();
/// assert_eq!(ready.len(), 7);
/// ready.release(Some(&other), stolen);
/// ```
pub struct WorkStealing {
    slots: Box<[CachePadded<SlotQueues>]>,
    injector: CachePadded<Injector>,
    /// Places below have been used.
    used: CachePadded<AtomicUsize>,
    resources: Resources<TestAndSet>,
}

/// What a place has.
struct SlotQueues {
    queue: BiasedLock<Queues>,
    /// Invariant 1.
    ready: AtomicUsize,
    steals: Count,
    failed: Count,
    owner: OwnerState,
}

/// The ready tasks of a place.
struct Queues {
    /// Those that the place has created.
    own: VecDeque<Task>,
    /// Those that are to run after them: "last" tasks, and what came from another queue.
    later: VecDeque<Task>,
}

/// What only the place itself uses (Invariant 2).
struct OwnerState {
    began: Cell<bool>,
    /// The block of the last task that finished: the next one gets it while it is warm.
    warm: Cell<Option<Task>>,
    random: Cell<u32>,
    turns: Cell<u32>,
    failed_passes: Cell<u32>,
    /// So many tasks came into the queue from elsewhere, and nobody has been told yet.
    moved: Cell<usize>,
}

// SAFETY: `own` is touched by the thread that has the place (Invariant 2); the rest is atomic, or
// has its lock.
unsafe impl Sync for SlotQueues {}

/// Where tasks come in from threads that have no place.
struct Injector {
    queue: Locked<TestAndSet, InjectorQueue>,
    ready: AtomicUsize,
    /// Places that share it.
    active: AtomicUsize,
}

/// What is under the lock of [`Injector`]: the block of a task is taken under the same lock as it is
/// put in.
struct InjectorQueue {
    ready: VecDeque<Task>,
    free: Chain<Task>,
}

/// Tasks on their way from one queue to another, oldest first. Why not a chain: its links lie in
/// lines that another processor has.
struct Batch {
    tasks: [Option<Task>; BATCH],
    first: usize,
    end: usize,
}

impl WorkStealing {
    #[inline]
    fn local(&self, slot: &WorkerSlot) -> &SlotQueues {
        &self.slots[slot.index()]
    }

    #[inline]
    fn create_at(
        &self,
        slot: Option<&WorkerSlot>,
        last: bool,
        fill: impl FnOnce(&Task),
    ) -> WakeTarget {
        let Some(slot) = slot else { return self.inject(fill) };
        let local = self.local(slot);
        let task =
            local.owner.warm.take().unwrap_or_else(|| self.resources.blocks.take(Some(slot)));
        fill(&task);
        if !local.owner.began.get() {
            self.begin(slot);
        }
        // SAFETY: this thread has the place, and no section comes here again.
        let ready = unsafe {
            local.enter(|queues| {
                if last { queues.later.push_back(task) } else { queues.own.push_back(task) }
            })
        };
        if ready == 1 { WakeTarget::Lone } else { WakeTarget::Any(ready) }
    }

    /// Creates a task for whoever comes first.
    fn inject(&self, fill: impl FnOnce(&Task)) -> WakeTarget {
        let mut fill = Some(fill);
        let mut fetched = Chain::new();
        loop {
            let ready = self.injector.queue.with(|queue| {
                // Most often nobody else has fetched some meanwhile, and this is all that there is.
                if queue.free.is_empty() {
                    core::mem::swap(&mut queue.free, &mut fetched);
                }
                while let Some(block) = fetched.pop_front() {
                    queue.free.push_front(block);
                }
                let task = queue.free.pop_front()?;
                if let Some(fill) = fill.take() {
                    fill(&task);
                }
                queue.ready.push_back(task);
                // Relaxed: see the head of the file.
                self.injector.ready.store(queue.ready.len(), Ordering::Relaxed);
                Some(queue.ready.len())
            });
            match ready {
                Some(ready) => return WakeTarget::Any(ready),
                None => fetched = self.resources.blocks.take_half(),
            }
        }
    }

    /// The place is used for the first time.
    #[cold]
    fn begin(&self, slot: &WorkerSlot) {
        self.local(slot).owner.began.set(true);
        // Relaxed: as for `ready`: what the place has, it creates after this.
        self.used.fetch_max(slot.index() + 1, Ordering::Relaxed);
    }

    /// Takes a share of what came from outside, at most `most`; all but the first goes into the
    /// place's own queue.
    fn take_injected(&self, slot: &WorkerSlot, most: usize) -> Option<Task> {
        // Relaxed: see the head of the file.
        if self.injector.ready.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut share = self.injector.queue.with(|queue| {
            // Relaxed: a hint.
            let active = self.injector.active.load(Ordering::Relaxed);
            let ready = &mut queue.ready;
            let mut share = Batch::new();
            share.take(ready, ready.len().div_ceil(active).min(most));
            // Relaxed: as above.
            self.injector.ready.store(ready.len(), Ordering::Relaxed);
            share
        });
        let first = share.pop_front();
        self.keep(slot, share);
        first
    }

    /// Puts what was taken elsewhere behind the rest of `later`.
    fn keep(&self, slot: &WorkerSlot, mut taken: Batch) {
        if taken.is_empty() {
            return;
        }
        let local = self.local(slot);
        // SAFETY: this thread has the place, and no section comes here again.
        let ready = unsafe {
            local.enter(|queues| {
                while let Some(task) = taken.pop_front() {
                    queues.later.push_back(task);
                }
            })
        };
        local.owner.moved.set(ready);
    }

    /// Takes half of what another place has.
    fn steal(&self, slot: &WorkerSlot) -> Option<Task> {
        let own = &self.local(slot).owner;
        // Relaxed: see the head of the file.
        let used = self.used.load(Ordering::Relaxed);
        let start = own.random() as usize % used.max(1);
        let fewest = if own.failed_passes.get() >= PASSES { 1 } else { 2 };
        for victim in (start..used).chain(0..start) {
            if victim != slot.index()
                && let Some(task) = self.steal_from(slot, victim, fewest, BATCH)
            {
                own.failed_passes.set(0);
                return Some(task);
            }
        }
        own.failed_passes.set(own.failed_passes.get().saturating_add(1));
        None
    }

    /// Takes half of what `victim` has, if that is `fewest` at least, and no more than `most`.
    fn steal_from(
        &self,
        slot: &WorkerSlot,
        victim: usize,
        fewest: usize,
        most: usize,
    ) -> Option<Task> {
        let local = self.local(slot);
        let victim = &self.slots[victim];
        // Relaxed: see the head of the file.
        if victim.ready.load(Ordering::Relaxed) < fewest {
            return None;
        }
        let taken = victim.queue.try_with_thief(|queues| {
            let mut taken = Batch::new();
            let share = queues.len().div_ceil(2).min(most);
            taken.take(&mut queues.later, share);
            taken.take(&mut queues.own, share - taken.end);
            // Relaxed: as above.
            victim.ready.store(queues.len(), Ordering::Relaxed);
            taken
        });
        let first = taken.and_then(|mut taken| {
            let first = taken.pop_front();
            self.keep(slot, taken);
            first
        });
        if first.is_some() {
            local.steals.add(1)
        } else {
            local.failed.add(1)
        }
        first
    }
}

impl SlotQueues {
    fn new(index: usize) -> Self {
        Self {
            queue: BiasedLock::new(Queues { own: VecDeque::new(), later: VecDeque::new() }),
            ready: AtomicUsize::fresh(0),
            steals: Count::new(),
            failed: Count::new(),
            owner: OwnerState {
                began: Cell::new(false),
                warm: Cell::new(None),
                random: Cell::new((index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1),
                turns: Cell::new(0),
                failed_passes: Cell::new(0),
                moved: Cell::new(0),
            },
        }
    }

    /// Uses the queue as its owner, and notes its length. Returns that.
    ///
    /// # Safety
    ///
    /// As for [`BiasedLock::with_owner`].
    #[inline]
    unsafe fn enter(&self, section: impl FnOnce(&mut Queues)) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            self.queue.with_owner(|queue| {
                section(queue);
                // Relaxed: see the head of the file.
                self.ready.store(queue.len(), Ordering::Relaxed);
                queue.len()
            })
        }
    }
}

impl Queues {
    #[inline]
    fn len(&self) -> usize {
        self.own.len() + self.later.len()
    }

    /// Takes the task that the place is to run next; `later`: from that queue, if it has one.
    #[inline]
    fn pop(&mut self, later: bool) -> Option<Task> {
        let first = if later { self.later.pop_front() } else { self.own.pop_back() };
        first.or_else(|| if later { self.own.pop_back() } else { self.later.pop_front() })
    }
}

impl Batch {
    fn new() -> Self {
        Self { tasks: [const { None }; BATCH], first: 0, end: 0 }
    }

    /// Takes the first `count` out of the queue, or as many as there are, or as there is room for.
    fn take(&mut self, queue: &mut VecDeque<Task>, count: usize) {
        for task in queue.drain(..count.min(BATCH - self.end).min(queue.len())) {
            self.tasks[self.end] = Some(task);
            self.end += 1;
        }
    }

    fn is_empty(&self) -> bool {
        self.first == self.end
    }

    fn pop_front(&mut self) -> Option<Task> {
        let task = self.tasks.get_mut(self.first)?.take()?;
        self.first += 1;
        Some(task)
    }
}

impl OwnerState {
    /// The next of a row of pseudo-random numbers (Marsaglia's xorshift).
    fn random(&self) -> u32 {
        let mut word = self.random.get();
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        self.random.set(word);
        word
    }

    /// Counts a task: 0, if it is the turn of what came from outside, [`TURNS`] / 2 if it is that
    /// of the `later` queue.
    #[inline]
    fn turn(&self) -> u32 {
        let turn = (self.turns.get() + 1) % TURNS;
        self.turns.set(turn);
        turn
    }
}

// SAFETY: a task is in one queue from its `create` to the `next` that takes it, or in the hands of
// who moves it from one to another; its block is free from then on until it comes back. A mover has
// searched, so it is awake and runs what it moves; `is_ready` looks at all queues.
unsafe impl Strategy for WorkStealing {
    const NAME: &'static str = "work stealing";

    fn new(plan: &Plan) -> Self {
        let plan = Plan { threshold: plan.threshold.or(Some(THRESHOLD)), ..plan.clone() };
        let resources = Resources::new(&plan);
        Self {
            slots: (0..plan.slots).map(|index| CachePadded::new(SlotQueues::new(index))).collect(),
            injector: CachePadded::new(Injector {
                queue: Locked::new(InjectorQueue { ready: VecDeque::new(), free: Chain::new() }),
                ready: AtomicUsize::fresh(0),
                active: AtomicUsize::fresh(plan.active.max(1)),
            }),
            used: CachePadded::new(AtomicUsize::fresh(0)),
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
        let local = self.local(slot);
        if finished.is_some() {
            self.resources.finish(slot, local.owner.warm.replace(finished));
        }
        if !local.owner.began.get() {
            self.begin(slot);
        }
        let turn = local.owner.turn();
        let outside = if turn == 0 { self.take_injected(slot, 1) } else { None };
        let task = outside.or_else(|| {
            let mut task = None;
            // Relaxed: the place's own, to which thieves do not add.
            if local.ready.load(Ordering::Relaxed) > 0 {
                // SAFETY: this thread has the place, and no section comes here again.
                unsafe {
                    local.enter(|queues| task = queues.pop(turn == TURNS / 2));
                }
                local.owner.failed_passes.set(0);
            }
            task
        });
        let task = task.or_else(|| self.take_injected(slot, BATCH)).or_else(|| self.steal(slot))?;
        self.resources.start(slot, hand);
        Some(task)
    }

    fn next_from(&self, slot: &WorkerSlot, victim: usize) -> Option<Task> {
        // One only: what else it took would lie in the queue of a place that runs none of it.
        self.steal_from(slot, victim, 1, 1)
    }

    fn is_ready(&self, _: &WorkerSlot) -> bool {
        // Relaxed: see the head of the file; so below.
        let used = self.used.load(Ordering::Relaxed);
        self.injector.ready.load(Ordering::Relaxed) > 0
            || self.slots[..used].iter().any(|slot| slot.ready.load(Ordering::Relaxed) > 0)
    }

    #[inline]
    fn is_ready_locally(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: the place's own, to which thieves do not add; what came from outside, as in
        // `is_ready`.
        self.local(slot).ready.load(Ordering::Relaxed) > 0
            || self.injector.ready.load(Ordering::Relaxed) > 0
    }

    fn has_backlog(&self, slot: &WorkerSlot) -> bool {
        // Relaxed: see the head of the file; so below.
        let used = self.used.load(Ordering::Relaxed);
        self.injector.ready.load(Ordering::Relaxed) > 0
            || (0..used).any(|index| {
                let local = &self.slots[index];
                let ready = local.ready.load(Ordering::Relaxed);
                // Who is inside of his queue for long has lost his processor; a thief must come
                // back later.
                if index == slot.index() { ready > 0 } else { ready > 1 && !local.queue.is_owned() }
            })
    }

    fn take_moved(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let moved = &self.local(slot).owner.moved;
        let ready = moved.get();
        (ready > 0).then(|| {
            moved.set(0);
            WakeTarget::Any(ready)
        })
    }

    fn resize(&self, active: usize) {
        // Relaxed: a hint.
        self.injector.active.store(active.max(1), Ordering::Relaxed);
    }

    fn len(&self) -> usize {
        // Relaxed: out of date when it is returned.
        let outside = self.injector.ready.load(Ordering::Relaxed);
        self.slots.iter().map(|slot| slot.ready.load(Ordering::Relaxed)).sum::<usize>() + outside
    }

    fn steals(&self, slot: usize) -> (u64, u64) {
        (self.slots[slot].steals.get(), self.slots[slot].failed.get())
    }

    fn label(&self) {
        machine::label(&self.slots[..], "ready queues");
        machine::label(&*self.injector, "outside queue");
        self.resources.label();
    }

    keeps_resources!();
}

impl fmt::Debug for WorkStealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkStealing").field("ready", &self.len()).finish_non_exhaustive()
    }
}
