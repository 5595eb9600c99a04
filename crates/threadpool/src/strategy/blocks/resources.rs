//! What the strategies from section 3.3 on have in common: free blocks in local lists, and a stack for each place.

use lock_api::RawMutex;

use crate::strategy::blocks::control_block::{Stack, Task};
use crate::strategy::blocks::free_list::{FreeBlocks, LocalStacks};
use crate::strategy::interface::{NO_STACKS, Plan, WorkerSlot};

pub(in crate::strategy) struct Resources<L> {
    pub(in crate::strategy) blocks: FreeBlocks<L>,
    /// `None` if tasks have none.
    stacks: Option<LocalStacks<L>>,
}

impl<L: RawMutex> Resources<L> {
    /// With the threshold of the plan, or else the paper's: as many blocks as there are places.
    #[track_caller]
    pub(in crate::strategy) fn new(plan: &Plan) -> Self {
        plan.check();
        Self {
            blocks: FreeBlocks::new(plan.slots, plan.threshold.unwrap_or(plan.slots)),
            stacks: plan.stacks.then(|| LocalStacks::new(plan.slots)),
        }
    }

    /// Keeps the block of a finished task. Its stack stays in the place's hand.
    #[inline]
    pub(in crate::strategy) fn finish(&self, slot: &WorkerSlot, finished: Option<Task>) {
        if let Some(finished) = finished {
            self.blocks.put(Some(slot), finished);
        }
    }

    /// Puts a stack into the place's hand, if none is there: a task is to be started.
    #[inline]
    pub(in crate::strategy) fn start(&self, slot: &WorkerSlot, stack: &mut Option<Stack>) {
        if let Some(stacks) = &self.stacks
            && stack.is_none()
        {
            *stack = stacks.take(Some(slot));
        }
    }

    /// Has a stack ready for the place's next task, if there is one.
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

/// What a strategy that has `resources: Resources<L>` and `create_at` does with them and nothing else, within its `impl Strategy`.
macro_rules! keeps_resources {
    () => {
        #[inline]
        fn create(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
            self.create_at(slot, false, fill)
        }

        fn create_last(&self, slot: Option<&WorkerSlot>, fill: impl FnOnce(&Task)) -> WakeTarget {
            self.create_at(slot, true, fill)
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
