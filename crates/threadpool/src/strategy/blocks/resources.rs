//! The free blocks and stacks of most strategies: free blocks in local lists, and a stack for each
//! worker. The paper has them from section 3.3 on.

use lock_api::RawMutex;

use crate::strategy::blocks::{FreeBlocks, LocalStacks, Stack, Task};
use crate::strategy::interface::NO_STACKS;
use crate::strategy::{Plan, WorkerSlot};

pub(crate) struct Resources<L> {
    /// Free blocks.
    pub(in crate::strategy) blocks: FreeBlocks<L>,
    /// Free stacks; `None` if tasks have none.
    stacks: Option<LocalStacks<L>>,
}

impl<L: RawMutex> Resources<L> {
    /// Creates them with the plan's threshold, or else the paper's: as many blocks as there are
    /// slots.
    #[track_caller]
    pub(in crate::strategy) fn new(plan: &Plan) -> Self {
        plan.check();
        Self {
            blocks: FreeBlocks::new(plan.slots, plan.threshold.unwrap_or(plan.slots)),
            stacks: plan.stacks.then(|| LocalStacks::new(plan.slots)),
        }
    }

    /// Keeps the block of a finished task. Its stack stays in the worker's hand.
    #[inline]
    pub(in crate::strategy) fn finish(&self, slot: &WorkerSlot, finished: Option<Task>) {
        if let Some(finished) = finished {
            self.blocks.put(Some(slot), finished);
        }
    }

    /// Puts a stack into the worker's hand, if none is there: a task is to be started.
    #[inline]
    pub(in crate::strategy) fn start(&self, slot: &WorkerSlot, stack: &mut Option<Stack>) {
        if let Some(stacks) = &self.stacks
            && stack.is_none()
        {
            *stack = stacks.take(Some(slot));
        }
    }

    /// Prepares a stack for the worker's next task, if there is one.
    pub(in crate::strategy) fn prepare_stack(&self, slot: &WorkerSlot) {
        if let Some(stacks) = &self.stacks {
            stacks.prepare(slot);
        }
    }

    #[track_caller]
    pub(in crate::strategy) fn give_stack(&self, slot: Option<&WorkerSlot>, stack: Stack) {
        self.stacks.as_ref().expect(NO_STACKS).put(slot, stack);
    }

    pub(in crate::strategy) fn take_stack(&self, slot: Option<&WorkerSlot>) -> Option<Stack> {
        self.stacks.as_ref()?.take(slot)
    }

    pub(in crate::strategy) fn label(&self) {
        self.blocks.label();
    }
}

/// The methods of `Strategy` that only use `resources: Resources<L>` and `make`, for use
/// within an `impl Strategy`.
///
/// With `and finds`, also `next` of a strategy that has a method `find`.
macro_rules! keeps_resources {
    (and finds) => {
        #[inline]
        fn next(
            &self,
            slot: &WorkerSlot,
            finished: Option<Task>,
            hand: &mut Option<Stack>,
        ) -> Option<Task> {
            self.resources.finish(slot, finished);
            let task = self.find(slot)?;
            self.resources.start(slot, hand);
            Some(task)
        }

        keeps_resources!();
    };
    () => {
        #[inline]
        fn create(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
            self.make(slot, false, fill)
        }

        fn create_last(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
            self.make(slot, true, fill)
        }

        fn release(&self, slot: Option<&WorkerSlot>, finished: Task) {
            self.resources.blocks.put(slot, finished);
        }

        fn give_stack(&self, slot: Option<&WorkerSlot>, stack: Stack) {
            self.resources.give_stack(slot, stack);
        }

        fn take_stack(&self, slot: Option<&WorkerSlot>) -> Option<Stack> {
            self.resources.take_stack(slot)
        }

        fn blocks(&self) -> usize {
            self.resources.blocks.made()
        }

        fn pool_uses(&self) -> u64 {
            self.resources.blocks.pool_uses()
        }
    };
}
pub(in crate::strategy) use keeps_resources;
