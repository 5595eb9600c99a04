//! The interface between a pool and the way in which it manages its ready tasks.

use core::cell::Cell;
use core::marker::PhantomData;

use lock_api::RawMutex;

use super::blocks::control_block::{Stack, Task};

/// A lock that strategies can have: any [`lock_api`] raw mutex that threads can share, of `stanchion_spin` or `stanchion_competitive` for instance.
pub trait Lock: RawMutex + Send + Sync + 'static {}
impl<L: RawMutex + Send + Sync + 'static> Lock for L {}

/// Why a stack is refused.
pub(super) const NO_STACKS: &str =
    "Plan::stacks is false: this strategy keeps no stacks; set it before `new`";

/// One of the threads that share a strategy's work, as the strategy knows it: a number below [`Plan::slots`].
///
/// What a strategy keeps for a processor without a lock is reached with its place only, so there must be one place of a number at a time.
#[derive(Debug)]
pub struct WorkerSlot {
    index: usize,
    /// Neither `Send` nor `Sync`: it stays with its thread.
    one_thread: PhantomData<Cell<*const ()>>,
}

impl WorkerSlot {
    /// The place with this number.
    ///
    /// # Safety
    ///
    /// It is used with one strategy, and for that there is one place of a number at a time; what was done with the last one happened before what is
    /// done with the next. Tasks that it gets go back to the same strategy or nowhere, and are not used any more when that is gone.
    #[must_use]
    pub unsafe fn new(index: usize) -> Self {
        Self { index, one_thread: PhantomData }
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

/// What a strategy is made for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many places there may be: every [`WorkerSlot`] of the strategy is below.
    pub slots: usize,
    /// How many places there are at first; [`Strategy::resize`] says when that changes.
    pub active: usize,
    /// The most free blocks a place keeps for itself, `T` in the paper; `None` for the strategy's own choice (the paper: as many as there are
    /// processors).
    pub threshold: Option<usize>,
    /// How many ready queues there are, for a strategy whose number is free; `None` for one a place.
    pub queues: Option<usize>,
    /// Whether tasks have stacks, which [`Strategy::next`] then hands out and takes back.
    pub stacks: bool,
}

impl Plan {
    /// A plan for so many places, all of them active, with the strategy's own threshold and without stacks.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots, active: slots, threshold: None, queues: None, stacks: false }
    }

    /// Refuses what no strategy can be made for.
    ///
    /// # Panics
    ///
    /// If there are no places, more active ones than there may be, a threshold of 0, or not between one and [`slots`](Self::slots) queues.
    #[track_caller]
    pub(crate) fn check(&self) {
        let &Self { slots, active, threshold, queues, stacks: _ } = self;
        assert!(slots > 0, "Plan::slots is 0: somebody must do the work; ask for at least 1");
        assert!(
            active <= slots,
            "Plan::active is {active}, but Plan::slots only {slots}: raise `slots` to the most that there will ever be"
        );
        assert!(
            threshold != Some(0),
            "Plan::threshold is 0: a place keeps at least 1 free block; say None for the strategy's own choice"
        );
        assert!(
            queues.is_none_or(|queues| (1..=slots).contains(&queues)),
            "Plan::queues is {}, but Plan::slots is {slots}: there are between 1 and as many queues as slots",
            queues.unwrap_or_default()
        );
    }
}

/// Who should be told that there is something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an idle place that is not told sleeps on"]
pub enum WakeTarget {
    /// Any idle places: so many tasks are ready where the last one was put, at least 1. If nobody is idle nobody is missed.
    Any(usize),
    /// Any idle place, but nobody need be woken at once who searched in vain just now: the task is the only one that the creating place has, which
    /// will most likely run it next.
    Lone,
    /// This place and no other: the task is for it alone.
    Worker(usize),
}

/// A way of managing ready work: where created tasks wait, who takes them, and where their blocks go afterwards.
///
/// # Safety
///
/// Each task that `create` has filled comes out of `next` exactly once, or is still inside; no other does. A block that comes back through `next` or
/// `release` is not handed out before. `is_ready` may say yes for nothing, but once all others stand still it must not say no while `next` of that
/// place would find something: the final look of whoever goes to sleep.
pub unsafe trait Strategy: Send + Sync + Sized + 'static {
    /// Its name, in words that a table can show.
    const NAME: &'static str;

    /// An empty one.
    ///
    /// # Panics
    ///
    /// If the plan has no places, more active ones than places, a threshold of 0, or not between one and `slots` queues.
    fn new(plan: &Plan) -> Self;

    /// Creates a task: takes a free block, has `fill` write it, makes it ready. Says who should be told.
    ///
    /// `slot` is the caller's; `None`, if it is none of those that share the work. `fill` must not unwind, and not use the strategy: it may run
    /// under a lock.
    fn create(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget;

    /// [`create`](Self::create), but the task is to run after those that are ready at this place, where the order is the strategy's to choose.
    fn create_last(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
        self.create(slot, fill)
    }

    /// Takes a task that is ready at the place `victim`, if the strategy knows whose task is where: for who waits for that place and has nothing else
    /// to do.
    fn next_from(&self, slot: &WorkerSlot, victim: usize) -> Option<Task> {
        let _ = (slot, victim);
        None
    }

    /// Gives back the block of a task that has finished, if there is one, and takes a task that is ready.
    ///
    /// With [`Plan::stacks`], `stack` is the stack that the place has in hand. A strategy that keeps stacks centrally takes that of a finished task
    /// away; when a task is returned and there is no stack in hand, it puts one there, if it has one.
    fn next(
        &self,
        slot: &WorkerSlot,
        finished: Option<Task>,
        stack: &mut Option<Stack>,
    ) -> Option<Task>;

    /// Gives back the block of a task that has finished, and takes nothing.
    fn release(&self, slot: Option<&WorkerSlot>, finished: Task);

    /// Gives the strategy a stack that nobody uses.
    ///
    /// # Panics
    ///
    /// If the plan was without stacks.
    fn give_stack(&self, slot: Option<&WorkerSlot>, stack: Stack);

    /// Takes a free stack, if it has one: for whoever made them and wants them back.
    fn take_stack(&self, slot: Option<&WorkerSlot>) -> Option<Stack>;

    /// Whether [`next`](Self::next) may find something for `slot`. Takes no lock.
    fn is_ready(&self, slot: &WorkerSlot) -> bool;

    /// Whether [`next`](Self::next) may find something for `slot` that it need not take from another place; yes where the strategy does not know.
    /// [`next`](Self::next) finds at once what this sees.
    #[inline]
    fn is_ready_locally(&self, slot: &WorkerSlot) -> bool {
        let _ = slot;
        true
    }

    /// Who should be told after the last [`next`](Self::next) of this place, because it has moved ready tasks to where others may have looked before.
    #[inline]
    fn take_moved(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let _ = slot;
        None
    }

    /// [`is_ready`](Self::is_ready), apart from tasks of which [`WakeTarget::Lone`] was said.
    fn has_backlog(&self, slot: &WorkerSlot) -> bool {
        self.is_ready(slot)
    }

    /// The place has found nothing and will ask [`is_ready`](Self::is_ready) until there is something, or sleep until it is told: tasks may be meant
    /// for it alone from now on, until it calls [`next`](Self::next), or [`leave`](Self::leave) if it stops waiting for another reason.
    fn idle(&self, slot: &WorkerSlot) {
        let _ = slot;
    }

    /// Takes what only this place would find, and leaves it to the others: when its thread ends, or stops waiting without looking for a task. Says
    /// who should be told, if there was something.
    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let _ = slot;
        None
    }

    /// The number of places in use has changed: those below `active` are.
    fn resize(&self, active: usize) {
        let _ = active;
    }

    /// How many tasks are ready. Out of date when it is returned.
    fn len(&self) -> usize;

    /// Whether none is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many blocks there are, free or not.
    fn blocks(&self) -> usize;

    /// How often the place has taken tasks from another, and how often it tried and got none.
    fn steals(&self, slot: usize) -> (u64, u64) {
        let _ = slot;
        (0, 0)
    }

    /// How often the lock of the free blocks' global pool was taken, by strategies that have one beside local lists.
    fn pool_uses(&self) -> u64 {
        0
    }

    /// Gives its parts names in the statistics of the simulated machine; for whoever has put it where it stays. Free elsewhere.
    fn label(&self) {}
}
