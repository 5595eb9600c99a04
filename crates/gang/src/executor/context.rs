//! Where a member's thread stands: its berth in the gate, and what it has seen there last.

use core::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use machine::clock::{Ticks, now};
use machine::topology::{self, Pinned};
use machine::wait::WaitPolicy;

use super::core::GangExecutor;
use crate::scheduler::{Preemption, SlotScheduler, Turn};

machine::thread_local! {
    /// Where the thread stands, if it runs a member.
    static CURRENT: Cell<*const MemberContext> = Cell::new(core::ptr::null());
}

/// The processor that a thread is kept on, and for which seat.
pub(crate) struct Pin {
    processor: usize,
    /// Nothing, if the system refused.
    _pinned: Option<Pinned>,
}

pub(crate) struct MemberContext {
    executor: GangExecutor,
    index: usize,
    entities: Arc<[usize]>,
    seen_turn: Cell<Turn>,
    /// Takes no part in gang scheduling: blocked, or waiting for another gang.
    inactive: Cell<bool>,
    pin: RefCell<Option<Pin>>,
}

impl MemberContext {
    /// Of member `index` of a gang that has these berths.
    pub(crate) fn new(
        executor: GangExecutor,
        index: usize,
        entities: Arc<[usize]>,
        pin: Option<Pin>,
    ) -> Self {
        Self {
            executor,
            index,
            entities,
            seen_turn: Cell::new(Turn::FIRST),
            inactive: Cell::new(false),
            pin: RefCell::new(pin),
        }
    }

    /// Lets `body` run as what this thread does; afterwards the pin is for the next member.
    pub(crate) fn run(self: Rc<Self>, body: impl FnOnce(&Rc<Self>)) -> Option<Pin> {
        CURRENT.with(|current| current.set(&raw const *self));
        body(&self);
        CURRENT.with(|current| current.set(core::ptr::null()));
        self.pin.take()
    }

    /// The post of the calling thread, if it runs a member.
    pub(crate) fn with_current<R>(body: impl FnOnce(Option<&Self>) -> R) -> R {
        let current = CURRENT.with(Cell::get);
        // SAFETY: set while the post lives, on its own thread, by `during`.
        body(unsafe { current.as_ref() })
    }

    pub(crate) fn executor(&self) -> &GangExecutor {
        &self.executor
    }

    pub(crate) fn scheduler(&self) -> &SlotScheduler {
        self.executor.scheduler()
    }

    pub(crate) fn entity(&self) -> usize {
        self.entities[self.index]
    }

    pub(crate) fn processor(&self) -> usize {
        self.scheduler().processor_of(self.entity())
    }

    /// Stays if the gang is on; else leaves until it is on again.
    #[inline]
    pub(crate) fn check_turn(&self) {
        if !self.scheduler().is_current(self.seen_turn.get()) && !self.inactive.get() {
            self.wait_for_turn();
        }
    }

    /// Goes through the gate.
    #[cold]
    pub(crate) fn wait_for_turn(&self) {
        self.seen_turn.set(self.scheduler().wait_for_turn(self.entity()));
        let processor = self.processor();
        let cpus = self.executor.cpus();
        let mut pin = self.pin.borrow_mut();
        if !cpus.is_empty() && pin.as_ref().is_none_or(|pin| pin.processor != processor) {
            // The one before first: they are given back in reverse order.
            *pin = None;
            let pinned = topology::pin(cpus[processor % cpus.len()]).ok();
            *pin = Some(Pin { processor, _pinned: pinned });
        }
    }

    /// The thread's member has ended.
    pub(crate) fn deactivate(&self) {
        if !self.inactive.replace(true) {
            self.scheduler().deactivate(self.entity());
        }
    }

    /// Does something during which the seat is free for others.
    pub(crate) fn suspended<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Return<'p>(&'p MemberContext);
        impl Drop for Return<'_> {
            fn drop(&mut self) {
                self.0.reactivate();
            }
        }
        if self.inactive.get() {
            return body();
        }
        self.deactivate();
        let _return = Return(self);
        // No call of `body` ends early for a signal that was under way.
        let _undisturbed = (self.scheduler().preemption() == Preemption::Signal)
            .then(machine::control::undisturbed);
        body()
    }

    fn reactivate(&self) {
        self.inactive.set(false);
        self.scheduler().activate(self.entity());
        self.wait_for_turn();
    }

    /// Returns how a member waits at a barrier of its gang.
    pub(crate) fn barrier_wait(&self) -> BarrierWait<'_> {
        BarrierWait { context: Some(self), stage: Stage::Brief(BRIEF_PAUSES) }
    }
}

/// The waiting of a member at its gang's barrier.
///
/// The member spins while the gang is on, and leaves the seat when it is not. When that has lasted
/// for the executor's `spin`, it yields between two looks. When that was in vain too, the member
/// takes no part in gang scheduling any more, gives its seat away, and sleeps until the barrier
/// wakes it.
///
/// Why it does not ask why another member has not come: one that is blocked, one that sleeps
/// without having said so, and one that has more to do than the others all keep it waiting for
/// longer than sleeping costs.
pub(crate) struct BarrierWait<'p> {
    context: Option<&'p MemberContext>,
    stage: Stage,
}

enum Stage {
    /// Most waits end here: the clock has not been read.
    Brief(u32),
    /// Looks at the clock and at the round, since then.
    Spinning(Ticks),
    /// Looks at the round, and has yielded so often.
    Yielding(u32),
    /// The post is away.
    Sleeping,
}

/// Pauses before it reads the clock, and looks at the round: at most 1 µs on any processor known.
const BRIEF_PAUSES: u32 = 16;

/// Yields before it gives its seat away and sleeps.
const YIELDS: u32 = 64;

impl WaitPolicy for BarrierWait<'_> {
    /// Without a post: yields at once.
    fn start() -> Self {
        Self { context: None, stage: Stage::Yielding(0) }
    }

    #[inline]
    fn pause(&mut self) {
        let Some(context) = self.context else { return machine::thread::yield_now() };
        match &mut self.stage {
            Stage::Brief(left) => {
                *left -= 1;
                if *left == 0 {
                    self.stage = Stage::Spinning(now());
                }
                machine::hint::spin_loop();
            }
            Stage::Spinning(since) => {
                if now().nanos_since(*since) >= context.executor.spin_ns() {
                    self.stage = Stage::Yielding(0);
                }
                context.check_turn();
                machine::hint::spin_loop();
            }
            Stage::Yielding(yields) if *yields < YIELDS => {
                *yields += 1;
                context.check_turn();
                machine::thread::yield_now();
            }
            Stage::Yielding(_) => {
                context.deactivate();
                self.stage = Stage::Sleeping;
            }
            // The barrier puts the thread to sleep instead.
            Stage::Sleeping => machine::thread::yield_now(),
        }
    }

    fn sleeps(&self) -> bool {
        matches!(self.stage, Stage::Sleeping)
    }

    fn pausing(&self) -> u64 {
        match (self.context, &self.stage) {
            (Some(context), stage @ (Stage::Brief(_) | Stage::Spinning(_))) => {
                let spent = match stage {
                    Stage::Spinning(since) => now().nanos_since(*since),
                    _ => 0,
                };
                context
                    .executor
                    .spin_ns()
                    .saturating_sub(spent)
                    .min(context.scheduler().remaining_ns(context.seen_turn.get()))
            }
            _ => 0,
        }
    }

    fn paused(&mut self, nanos: u64) {
        let _ = nanos;
        if let Stage::Brief(_) = self.stage {
            self.stage = Stage::Spinning(now());
        }
    }
}

impl Drop for BarrierWait<'_> {
    fn drop(&mut self) {
        if let (Some(context), Stage::Sleeping) = (self.context, &self.stage) {
            context.reactivate();
        }
    }
}
