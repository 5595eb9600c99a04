//! The commands to a thread of an executor, and its context while it runs a member.

use core::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use stanchion_machine::topology::{self, Pinned};

use super::gang_executor::GangExecutor;
use crate::matrix::GangKey;
use crate::scheduler::{Preemption, SlotScheduler, Turn};
use crate::state::GangState;

/// A gang without its types.
pub(crate) trait SpawnedGang: Send + Sync {
    /// Returns what the members share.
    fn state(&self) -> &Arc<GangState>;

    /// Runs the closure as the member of `context`.
    ///
    /// # Safety
    ///
    /// Called once for each member.
    unsafe fn run(&self, context: &Rc<MemberContext>);

    /// Drops the members' outcomes and returns the first panic, if no thread has taken the outcomes
    /// before.
    ///
    /// # Safety
    ///
    /// The gang is done.
    unsafe fn take_panic(&self) -> Option<Box<dyn core::any::Any + Send>>;
}

/// A command to a thread of an executor.
pub(super) enum Command {
    /// To run a member of this gang.
    Run(Arc<dyn SpawnedGang>, MemberTask),
    /// To end.
    Exit,
}

/// Which member a thread runs.
pub(super) struct MemberTask {
    /// A handle that keeps the executor alive while the member runs.
    pub(super) executor: GangExecutor,
    /// The gang's key in the matrix.
    pub(super) key: GangKey,
    /// The member's index.
    pub(super) index: usize,
    /// The scheduling entities of all members, by index.
    pub(super) entities: Arc<[usize]>,
}

stanchion_machine::thread_local! {
    /// The context of the thread, if it runs a member.
    static CURRENT: Cell<*const MemberContext> = Cell::new(core::ptr::null());
}

/// The CPU that a thread is pinned to.
pub(super) struct Pin {
    /// The virtual processor for which it is.
    processor: usize,
    /// The pin, undone when it is dropped. None if the system refused it.
    _pinned: Option<Pinned>,
}

/// The context of a thread that runs a member. Only that thread uses it.
pub(crate) struct MemberContext {
    /// Which member it is.
    task: MemberTask,
    /// The turn in which the member last found itself on.
    seen_turn: Cell<Turn>,
    /// True while the member takes no part in the rotation: it is blocked, or waits for a gang.
    inactive: Cell<bool>,
    /// The CPU that the thread is pinned to, if it is.
    pin: RefCell<Option<Pin>>,
}

impl MemberContext {
    pub(super) fn new(task: MemberTask, pin: Option<Pin>) -> Self {
        Self {
            task,
            seen_turn: Cell::new(Turn::FIRST),
            inactive: Cell::new(false),
            pin: RefCell::new(pin),
        }
    }

    /// Runs `body` with this as the thread's context. Returns the pin, for the next member.
    pub(super) fn run(self: Rc<Self>, body: impl FnOnce(&Rc<Self>)) -> Option<Pin> {
        CURRENT.with(|current| current.set(&raw const *self));
        body(&self);
        CURRENT.with(|current| current.set(core::ptr::null()));
        self.pin.take()
    }

    /// Calls `body` with the context of the calling thread, if it runs a member.
    pub(super) fn with_current<R>(body: impl FnOnce(Option<&Self>) -> R) -> R {
        let current = CURRENT.with(Cell::get);
        // SAFETY: `run` sets it on this thread, and removes it before the context is dropped.
        body(unsafe { current.as_ref() })
    }

    /// Sleeps until all members of `gang` have ended. If the calling thread runs a member itself,
    /// it gives its processor up meanwhile.
    pub(crate) fn wait_for(gang: &GangState) {
        if gang.completion.is_done() {
            return;
        }
        Self::with_current(|current| match current {
            Some(context) => context.suspended(|| gang.completion.wait()),
            None => gang.completion.wait(),
        });
    }

    pub(crate) fn executor(&self) -> &GangExecutor {
        &self.task.executor
    }

    /// Returns the member's index.
    pub(crate) fn index(&self) -> usize {
        self.task.index
    }

    fn scheduler(&self) -> &SlotScheduler {
        &self.task.executor.core().scheduler
    }

    pub(super) fn entity(&self) -> usize {
        self.task.entities[self.task.index]
    }

    /// Returns the member's virtual processor.
    pub(crate) fn processor(&self) -> usize {
        self.scheduler().processor_of(self.entity())
    }

    /// Returns for how many nanoseconds a member at a barrier spins.
    pub(crate) fn spin_ns(&self) -> u64 {
        self.task.executor.core().settings.spin_ns
    }

    /// Returns for how many nanoseconds the member may run on if nothing happens.
    pub(crate) fn remaining_ns(&self) -> u64 {
        self.scheduler().remaining_ns(self.seen_turn.get())
    }

    /// Returns at once if the gang is on. Else gives the processor up until it is on again.
    #[inline]
    pub(crate) fn check_turn(&self) {
        if !self.scheduler().is_current(self.seen_turn.get()) && !self.inactive.get() {
            self.wait_for_turn();
        }
    }

    /// Sleeps until the gang is on, then pins the thread.
    #[cold]
    pub(crate) fn wait_for_turn(&self) {
        self.seen_turn.set(self.scheduler().wait_for_turn(self.entity()));
        let processor = self.processor();
        let cpus = &self.task.executor.core().settings.cpus;
        let mut pin = self.pin.borrow_mut();
        // The member was moved, or is the first on this thread.
        if !cpus.is_empty() && pin.as_ref().is_none_or(|pin| pin.processor != processor) {
            // Drop the old pin first: pins are undone in reverse order.
            *pin = None;
            let pinned = topology::pin(cpus[processor % cpus.len()]).ok();
            *pin = Some(Pin { processor, _pinned: pinned });
        }
    }

    /// Takes the member out of the rotation, if it takes part.
    pub(crate) fn deactivate(&self) {
        if !self.inactive.replace(true) {
            self.scheduler().deactivate(self.entity());
        }
    }

    /// Takes the member into the rotation again, and sleeps until its gang is on.
    pub(crate) fn reactivate(&self) {
        self.inactive.set(false);
        self.scheduler().activate(self.entity());
        self.wait_for_turn();
    }

    /// Runs `body` while the processor is free for other members.
    pub(crate) fn suspended<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Reactivate<'c>(&'c MemberContext);
        impl Drop for Reactivate<'_> {
            fn drop(&mut self) {
                self.0.reactivate();
            }
        }
        // Suspended already: the outer call returns the member to the rotation.
        if self.inactive.get() {
            return body();
        }
        self.deactivate();
        let _reactivate = Reactivate(self);
        // No call of `body` ends early for a signal that was under way.
        let _undisturbed = (self.scheduler().preemption() == Preemption::Signal)
            .then(stanchion_machine::control::undisturbed);
        body()
    }
}
