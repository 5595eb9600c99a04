//! The interface of a strategy: [`Strategy`], what it is made from, and what it answers.

use core::cell::Cell;
use core::marker::PhantomData;

use lock_api::RawMutex;

use crate::strategy::blocks::{Stack, Task};

/// A lock that strategies can have: any [`lock_api`] raw mutex that threads can share, of
/// `stanchion_spin` or `stanchion_competitive` for instance.
pub trait Lock: RawMutex + Send + Sync + 'static {}
impl<L: RawMutex + Send + Sync + 'static> Lock for L {}

/// The message when a stack is given to a strategy that keeps none.
pub(super) const NO_STACKS: &str =
    "Plan::stacks is false: this strategy keeps no stacks; set it before `new`";

/// The right of one thread to use one worker slot of a strategy: an index below [`Plan::slots`].
///
/// The state that a strategy keeps for a worker without a lock is reached through its slot only. So
/// there must be one value of an index at a time.
#[derive(Debug)]
pub struct WorkerSlot {
    /// The number of the slot.
    index: usize,
    /// Makes it neither `Send` nor `Sync`: it stays with its thread.
    one_thread: PhantomData<Cell<*const ()>>,
}

impl WorkerSlot {
    /// Creates the right to use the slot with this index.
    ///
    /// # Safety
    ///
    /// It is used with one strategy, and for that strategy there is one value of an index at a
    /// time. All uses of the last one happened before those of the next one. Tasks that it gets go
    /// back to the same strategy or nowhere, and are not used any more when the strategy is gone.
    #[must_use]
    pub unsafe fn new(index: usize) -> Self {
        Self { index, one_thread: PhantomData }
    }

    /// Returns its index.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }
}

/// The parameters of a strategy.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The number of worker slots: every [`WorkerSlot`] of the strategy has an index below it.
    pub slots: usize,
    /// The number of slots in use at first. [`Strategy::resize`] says when that changes.
    pub active: usize,
    /// The most free blocks that a worker keeps for itself, `T` in the paper. `None` is the
    /// strategy's own choice (the paper: as many as there are processors).
    pub threshold: Option<usize>,
    /// The number of ready queues, for a strategy that lets it be chosen. `None` is one for each
    /// slot.
    pub queues: Option<usize>,
    /// True if tasks have stacks, which [`Strategy::next`] then hands out and takes back.
    pub stacks: bool,
}

impl Plan {
    /// Creates a plan for so many slots, all of them in use, with the strategy's own threshold and
    /// without stacks.
    #[must_use]
    pub fn new(slots: usize) -> Self {
        Self { slots, active: slots, threshold: None, queues: None, stacks: false }
    }

    /// Refuses parameters for which no strategy can be made.
    ///
    /// # Panics
    ///
    /// If there are no slots, more active ones than there may be, a threshold of 0, or not between
    /// one and [`slots`](Self::slots) queues.
    #[track_caller]
    pub(crate) fn check(&self) {
        let &Self { slots, active, threshold, queues, stacks: _ } = self;
        assert!(slots > 0, "Plan::slots is 0: there must be a worker; ask for at least 1");
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

/// The idle workers that should be woken, as there is ready work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an idle place that is not told sleeps on"]
pub enum WakeTarget {
    /// Any idle workers: so many tasks are ready where the last one was put, at least 1. If no
    /// worker is idle, none need be woken.
    Any(usize),
    /// Any idle worker, unless it searched in vain just now: the task is the only one of its
    /// creator, which will most likely run it next.
    Lone,
    /// The worker of this slot and no other: the task is for it alone.
    Worker(usize),
}

/// A way of managing ready work: the queues of created tasks, the order in which workers take them,
/// and the free blocks.
///
/// # Safety
///
/// Each task that `create` has filled comes out of `next` exactly once, or is still inside. No
/// other task does. A block that comes back through `next` or `release` is not handed out before.
///
/// A worker sleeps, and a pool ends, by what `is_ready`, `has_backlog` and `len` say. They may be
/// wrong while another thread uses the strategy. When no other thread does, these hold:
///
/// - `is_ready` says yes if `next` of that slot would find a task.
/// - If `is_ready` says yes, one of the next 15 calls of `next` returns a task.
/// - `len` is above 0 if a task is ready.
pub unsafe trait Strategy: Send + Sync + Sized + 'static {
    /// The name of the strategy, in words that a table can show.
    const NAME: &'static str;

    /// Creates an empty strategy.
    ///
    /// # Panics
    ///
    /// If the plan has no slots, more active ones than slots, a threshold of 0, or not between one
    /// and `slots` queues.
    fn new(plan: &Plan) -> Self;

    /// Creates a task: takes a free block, has `fill` write it, makes it ready. Returns the workers
    /// that should be woken.
    ///
    /// `slot` is the caller's; `None` if the caller is no worker of the strategy. `fill` must not
    /// unwind, and not use the strategy: it may run under a lock.
    fn create(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget;

    /// Does what [`create`](Self::create) does, but the task is to run after those that are ready
    /// at this slot, where the strategy may choose the order.
    fn create_last(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
        self.create(slot, fill)
    }

    /// Takes a task that is ready at the slot `victim`, if the strategy knows which worker's tasks
    /// are which: for a worker that waits for that one and has nothing else to do.
    fn next_from(&self, slot: &WorkerSlot, victim: usize) -> Option<Task> {
        let _ = (slot, victim);
        None
    }

    /// Gives back the block of a task that has finished, if there is one, and takes a task that is
    /// ready.
    ///
    /// With [`Plan::stacks`], `stack` is the stack that the worker has in hand. A strategy that
    /// keeps stacks centrally takes that of a finished task away. If a task is returned and there
    /// is no stack in hand, it puts one there, if it has one.
    fn next(
        &self,
        slot: &WorkerSlot,
        finished: Option<Task>,
        stack: &mut Option<Stack>,
    ) -> Option<Task>;

    /// Gives back the block of a task that has finished, and takes nothing.
    fn release(&self, slot: Option<&WorkerSlot>, finished: Task);

    /// Gives the strategy a free stack.
    ///
    /// # Panics
    ///
    /// If the plan was without stacks.
    fn give_stack(&self, slot: Option<&WorkerSlot>, stack: Stack);

    /// Takes a free stack, if it has one: for a program that made stacks and wants them back.
    fn take_stack(&self, slot: Option<&WorkerSlot>) -> Option<Stack>;

    /// Returns whether [`next`](Self::next) may find something for `slot`. Takes no lock.
    fn is_ready(&self, slot: &WorkerSlot) -> bool;

    /// Returns whether [`next`](Self::next) may find a task for `slot` without taking it from
    /// another slot. A strategy that does not know returns true. In a strategy that knows, the
    /// first `next` after a yes returns a task, unless another worker takes it first.
    #[inline]
    fn is_ready_locally(&self, slot: &WorkerSlot) -> bool {
        let _ = slot;
        true
    }

    /// Returns the workers that should be woken after the last [`next`](Self::next) of this slot.
    /// It may have moved ready tasks to where other workers have looked before.
    #[inline]
    fn take_moved(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let _ = slot;
        None
    }

    /// Does what [`is_ready`](Self::is_ready) does for a worker that has searched in vain. It may
    /// leave out tasks of other slots for which `create` returned [`WakeTarget::Lone`], and queues
    /// that their owner is using just now: the dozing worker looks again.
    fn has_backlog(&self, slot: &WorkerSlot) -> bool {
        self.is_ready(slot)
    }

    /// Notes that the worker has found nothing. The worker asks [`is_ready`](Self::is_ready) again
    /// and again. The strategy may hand it tasks that no other worker can take. That ends when the
    /// worker calls [`next`](Self::next) or [`leave`](Self::leave). A pool's worker calls `leave`
    /// before it sleeps.
    fn idle(&self, slot: &WorkerSlot) {
        let _ = slot;
    }

    /// Leaves to the others what only this worker would find: when its thread ends, or stops
    /// waiting without looking for a task. Returns the workers that should be woken, if there was
    /// something.
    fn leave(&self, slot: &WorkerSlot) -> Option<WakeTarget> {
        let _ = slot;
        None
    }

    /// Notes that the number of slots in use has changed: those below `active` are.
    fn resize(&self, active: usize) {
        let _ = active;
    }

    /// Returns how many tasks are ready. Other threads may change that at any time. It counts every
    /// task of which the `create` has returned: the last searcher wakes another worker if this is
    /// above 0.
    fn len(&self) -> usize;

    /// Returns whether no task is ready.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many blocks there are, free or not.
    fn blocks(&self) -> usize;

    /// Returns how often the worker has taken tasks from another slot, and how often it tried and
    /// got none.
    fn steals(&self, slot: usize) -> (u64, u64) {
        let _ = slot;
        (0, 0)
    }

    /// Returns how often the lock of the free blocks' global pool was taken, by strategies that
    /// have one beside local lists.
    fn pool_uses(&self) -> u64 {
        0
    }

    /// Names its parts in the statistics of the simulated machine. Called when the strategy is
    /// where it stays. Free elsewhere.
    fn label(&self) {}
}
