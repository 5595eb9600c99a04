//! Work stealing: a ready queue per worker, which its owner uses without a lock. A worker that has
//! nothing takes half of what another has.
//!
//! Why: between a worker and its own queue there are no locked instructions, and no fences as long
//! as no thief comes. So a task costs what its control block costs. Why thieves take half, and the
//! oldest: a theft interrupts the victim's processor, or makes the victim fence for a while (see
//! `biased.rs`). So there should be few. The oldest are the largest where tasks create tasks, and
//! the farthest from the victim's cache. Why not the last task of a queue at once: its owner, which
//! has just created it, will most likely run it next. A thief would only have moved the work. It
//! takes such a task when it has found nothing else several times. For the same reason a thief
//! looks at a queue, waits a moment, and takes only what is still there.
//!
//! ```text
//! slot 0:   own    front [oldest ┆ … ┆ newest] back   owner: pushes and pops at the back
//!           later  front [oldest ┆ … ┆ newest] back   owner: pushes at the back, pops at the front
//! slot 1:   own    front [ … ] back                   thief: half of both, at most 32: from the
//!           later  front [ … ] back                          front of `later`, then of `own`
//! injector: a queue under a lock; a worker takes its share of it, at most 32
//! ```
//!
//! # Order
//!
//! A worker runs its own tasks newest first. "Last" tasks, and tasks that it has moved here from
//! another queue, lie in `later`. The worker runs those oldest first, when it has none of its own.
//! Once in 64 tasks the first of `later` comes before its own tasks, and once the first of the
//! injector. So neither waits for ever beside tasks that create tasks. The oldest of a worker's own
//! tasks may wait as long as newer ones are created and no thief comes.
//!
//! # Invariants
//!
//! 1. `ready` of a queue is its length as its last user left it.
//! 2. State of a slot that has no lock is touched through its [`WorkerSlot`].
//! 3. No thread is inside two queues: a thief goes out with what it has taken before it enters its
//!    own.
//!
//! # Orderings
//!
//! `ready` is Relaxed, a hint while others run. For the final look of a worker that goes to sleep
//! it is exact: the creator of a task notifies afterwards, and `light` and `heavy` are between (see
//! `sleep.rs`).
//!
//! Source: stealing the oldest is Blumofe and Leiserson's, 1999. Half at once is Hendler and
//! Shavit's, 2002. To leave the last task to its owner until a last pass is Go's.

pub(crate) mod biased;

use core::cell::Cell;
use core::fmt;
use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::wait;
use stanchion_spin::TestAndSet;

use self::biased::BiasedLock;
use crate::metrics::Count;
use crate::random::XorShift;
use crate::strategy::blocks::resources::keeps_resources;
use crate::strategy::blocks::{Chain, Resources, Stack, Task};
use crate::strategy::{Plan, Strategy, WakeTarget, WorkerSlot};
use crate::sync::Locked;

/// The most tasks that are moved between two queues at a time.
const BATCH: usize = 32;

/// Passes in vain over the other queues before a worker takes the only task of another.
const PASSES: u32 = 4;

/// Once in so many tasks a worker looks first at the injector, and half-way between at its `later`
/// queue. So neither is forgotten while tasks create tasks.
const TURNS: u32 = 64;

/// Free blocks that a worker keeps by default.
const THRESHOLD: usize = 64;

/// Ready queues that their owners use without a lock, and from which thieves take half.
///
/// | | |
/// | --- | --- |
/// | locked instructions in a task's life | none, if it runs where it was created |
/// | a theft after a long time | some microseconds (`asymmetric::heavy`), for at most 32 tasks |
/// | a theft soon after another | an exchange and a fence |
/// | order | own tasks newest first, then `later`, then the injector, both oldest first |
/// | memory | as many blocks as were in use at a time, and at most 65 for each worker |
///
/// The first theft interrupts each processor that runs a thread of the program where
/// [`stanchion_machine::asymmetric`] is free. In its next 1,024 uses of the queue the owner fences,
/// and further thieves interrupt no processor. `later` holds tasks of
/// [`create_last`](Strategy::create_last) and stolen ones. Once in 64 tasks each, `later` and the
/// injector come before own tasks.
///
/// ```
/// use stanchion_threadpool::strategy::{Plan, Strategy, WorkStealing, WorkerSlot};
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
    /// The queues of each worker.
    slots: Box<[CachePadded<SlotQueues>]>,
    /// Tasks from outside.
    injector: CachePadded<Injector>,
    /// Slots below have been used. Written by each worker once.
    used: CachePadded<AtomicUsize>,
    /// Free blocks and stacks.
    resources: Resources<TestAndSet>,
}

/// The queues and the state of a worker slot.
struct SlotQueues {
    /// The ready tasks. Its owner enters without a locked instruction.
    queue: BiasedLock<Queues>,
    /// Their number (Invariant 1). Written by the last thread inside.
    ready: AtomicUsize,
    /// Thefts by this worker. Written by it alone.
    steals: Count,
    /// Attempts in vain. Written by it alone.
    failed: Count,
    /// State that only the worker uses.
    owner: OwnerState,
}

/// The ready tasks of a worker slot.
struct Queues {
    /// Tasks that the worker has created.
    own: VecDeque<Task>,
    /// Tasks that are to run after them: "last" tasks, and tasks from another queue.
    later: VecDeque<Task>,
}

/// The state that only the worker itself uses (Invariant 2).
struct OwnerState {
    /// True if the slot has been used.
    began: Cell<bool>,
    /// The block of the last task that finished: the next task gets it while it is warm.
    warm: Cell<Option<Task>>,
    /// Its random numbers.
    random: XorShift,
    /// Tasks taken, modulo [`TURNS`].
    turns: Cell<u32>,
    /// Passes over all queues in vain since it last found something.
    failed_passes: Cell<u32>,
    /// Tasks that came into the queue from elsewhere, and for which no worker was notified yet.
    moved: Cell<usize>,
}

// SAFETY: `owner` is touched by the thread that has the slot (Invariant 2). The rest is atomic, or
// has its lock.
unsafe impl Sync for SlotQueues {}

/// The queue of tasks from threads that have no slot.
struct Injector {
    /// The tasks and free blocks.
    queue: Locked<TestAndSet, InjectorQueue>,
    /// The number of tasks. Written under the lock.
    ready: AtomicUsize,
    /// Workers that share it. Written by `resize`.
    active: AtomicUsize,
}

/// The part of [`Injector`] under its lock. A task's block is taken under the same lock under which
/// the task is put in.
struct InjectorQueue {
    /// Ready tasks, oldest first.
    ready: VecDeque<Task>,
    /// Free blocks for the next tasks.
    free: Chain<Task>,
}

/// Tasks on their way from one queue to another, oldest first. Why not a chain: its links lie in
/// lines that another processor has.
struct Batch {
    /// The tasks from `first` to `end`.
    tasks: [Option<Task>; BATCH],
    first: usize,
    /// The position after the last task.
    end: usize,
}

impl WorkStealing {
    #[inline]
    fn local(&self, slot: &WorkerSlot) -> &SlotQueues {
        &self.slots[slot.index()]
    }

    #[inline]
    fn make(&self, slot: Option<&WorkerSlot>, last: bool, fill: impl FnOnce(&Task)) -> WakeTarget {
        let Some(slot) = slot else { return self.inject(fill) };
        let local = self.local(slot);
        let task =
            local.owner.warm.take().unwrap_or_else(|| self.resources.blocks.take(Some(slot)));
        fill(&task);
        if !local.owner.began.get() {
            self.begin(slot);
        }
        // SAFETY: this thread has the slot, and no section comes here again.
        let ready = unsafe {
            local.enter(|queues| {
                if last { queues.later.push_back(task) } else { queues.own.push_back(task) }
            })
        };
        if ready == 1 { WakeTarget::Lone } else { WakeTarget::Any(ready) }
    }

    /// Creates a task for the first worker that comes.
    fn inject(&self, fill: impl FnOnce(&Task)) -> WakeTarget {
        let mut fill = Some(fill);
        let mut fetched = Chain::new();
        loop {
            let ready = self.injector.queue.with(|queue| {
                // Most often no other thread has fetched some meanwhile, and this is all there is.
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

    /// Notes that the slot is used for the first time.
    #[cold]
    fn begin(&self, slot: &WorkerSlot) {
        self.local(slot).owner.began.set(true);
        // Relaxed, as for `ready`: the worker creates its tasks after this.
        self.used.fetch_max(slot.index() + 1, Ordering::Relaxed);
    }

    /// Takes a share of the injector, at most `most`. All but the first go into the worker's own
    /// queue.
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

    /// Puts tasks that were taken elsewhere behind the rest of `later`.
    fn keep(&self, slot: &WorkerSlot, mut taken: Batch) {
        if taken.is_empty() {
            return;
        }
        let local = self.local(slot);
        // SAFETY: this thread has the slot, and no section comes here again.
        let ready = unsafe {
            local.enter(|queues| {
                while let Some(task) = taken.pop_front() {
                    queues.later.push_back(task);
                }
            })
        };
        local.owner.moved.set(ready);
    }

    /// Takes half of the tasks of another worker.
    fn steal(&self, slot: &WorkerSlot) -> Option<Task> {
        let own = &self.local(slot).owner;
        // Relaxed: see the head of the file.
        let used = self.used.load(Ordering::Relaxed);
        let start = own.random.next() as usize % used.max(1);
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

    /// Takes half of the tasks of `victim`, if it has at least `fewest`, and no more than `most`.
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
        // A turn for each other processor. An owner of short tasks has run them by then. Many
        // thieves that take short tasks from each other need longer than their owner alone.
        wait::delay(wait::rounds(1) - wait::turns(1));
        // Relaxed: as above.
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
                random: XorShift::new(index),
                turns: Cell::new(0),
                failed_passes: Cell::new(0),
                moved: Cell::new(0),
            },
        }
    }

    /// Uses the queue as its owner, and writes its length. Returns the length.
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

    /// Takes the task that the worker is to run next. With `later`, from that queue if it has one.
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
    /// Counts a task. Returns 0 if it is the injector's turn, and [`TURNS`] / 2 if it is that of
    /// the `later` queue.
    #[inline]
    fn turn(&self) -> u32 {
        let turn = (self.turns.get() + 1) % TURNS;
        self.turns.set(turn);
        turn
    }
}

// SAFETY: a task is in one queue from its `create` to the `next` that takes it, or on its way from
// one to another. From `next` on the caller has its block, which is free when it comes back, and
// not before. A worker that moves tasks has searched, so it is awake and runs what it moves.
// `is_ready` looks at all queues.
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
            // Relaxed: the worker's own queue, to which thieves do not add.
            if local.ready.load(Ordering::Relaxed) > 0 {
                // SAFETY: this thread has the slot, and no section comes here again.
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
        // One only: others would lie in the queue of a worker that runs none of them.
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
        // Relaxed: the worker's own queue, to which thieves do not add. The injector as in
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
                // An owner that is inside its queue for long has lost its processor. A thief must
                // come back later.
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
        stanchion_machine::label(&self.slots[..], "ready queues");
        stanchion_machine::label(&*self.injector, "outside queue");
        self.resources.label();
    }

    keeps_resources!();
}

impl fmt::Debug for WorkStealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkStealing").field("ready", &self.len()).finish_non_exhaustive()
    }
}
