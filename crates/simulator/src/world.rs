//! A run as its threads see it: coroutines that run ahead of the events, and the loop that brings
//! them together.
//!
//! # Invariants
//!
//! 1. While a virtual thread runs on this thread of the operating system, `CURRENT` points to the
//!    world of its run, and is null at all other times; the world is on the stack of `World::run`,
//!    below the coroutine's caller, so it outlives every coroutine that runs.
//! 2. No reference to the world exists while a coroutine runs user code: `with` ends before its
//!    caller goes on, and the loop reaches the world through a raw pointer, between two resumptions
//!    only. Inside `with`, where a panic calls the program's own panic hook, `CURRENT` is null:
//!    user code that runs there is outside the run.
//! 3. A yielder is used only by the coroutine that it was given to, and only while that runs.
//! 4. A coroutine that did not end is leaked, never unwound: the things that its stack owns are not
//!    touched again. It borrows nothing, as the lender could take a loan back: a body is `'static`.

use crate::Time;
use crate::arena::{self, ArenaStack, Slot};
use crate::failure::Failure;
use crate::locals::{self, Locals};
use crate::scheduler::event::What;
use crate::scheduler::thread::{Status, ThreadId};
use crate::services::interrupt;
use crate::services::kernel::State;
use crate::statistics::Activity;
use core::cell::Cell;
use core::ptr;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Fiber = Coroutine<(), (), (), ArenaStack>;

pub(crate) struct World {
    /// The state of the run.
    pub(crate) state: State,
    /// The memory of the run.
    slot: Slot,
    /// The size of a thread's stack, in bytes.
    stack_size: usize,
    /// The coroutines.
    fibers: Fibers,
    /// The yielder of each thread (Invariant 3).
    yielders: Vec<*const Yielder<(), ()>>,
    /// The thread that runs.
    current: ThreadId,
}

/// The coroutines that have not ended, by their threads.
#[derive(Default)]
struct Fibers(Vec<Option<Fiber>>);

impl Drop for Fibers {
    /// Invariant 4, also when the loop itself panics: a coroutine's own destructor would unwind it.
    fn drop(&mut self) {
        for fiber in &mut self.0 {
            core::mem::forget(fiber.take());
        }
    }
}

std::thread_local! {
    static CURRENT: Cell<*mut World> = const { Cell::new(ptr::null_mut()) };
}

/// Until it is dropped, another world than before is the current one.
struct Turn {
    /// The world before, or null.
    before: *mut World,
}

impl Turn {
    #[inline]
    fn of(world: *mut World) -> Self {
        Self { before: CURRENT.replace(world) }
    }
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Returns whether a virtual thread runs on this thread of the operating system.
#[inline]
pub(crate) fn is_running() -> bool {
    !CURRENT.get().is_null()
}

/// Calls `body` with the world of the running virtual thread, and with that thread. `None` outside
/// a run.
#[inline]
pub(crate) fn with<R>(body: impl FnOnce(&mut World, ThreadId) -> R) -> Option<R> {
    let outside_turn = Turn::of(ptr::null_mut());
    // SAFETY: Invariants 1 and 2: it is null or points to a live world, to which no other reference
    // exists, and to which none is made before `outside_turn` is dropped.
    let world = unsafe { outside_turn.before.as_mut() }?;
    let current = world.current;
    // What the simulator itself allocates is none of the program's memory.
    let _outside = arena::outside();
    Some(body(world, current))
}

pub(crate) fn with_locals(body: &mut dyn FnMut(&mut Locals)) {
    with(|world, id| body(&mut world.state.thread_mut(id).locals))
        .unwrap_or_else(|| outside("a thread-local value"));
}

pub(crate) fn with_globals(body: &mut dyn FnMut(&mut Locals)) {
    with(|world, _| body(&mut world.state.globals))
        .unwrap_or_else(|| outside("a static of the run"));
}

/// The panic of a call that needs a run.
#[cold]
#[track_caller]
pub(crate) fn outside(what: &str) -> ! {
    panic!(
        "{what} was used outside a simulation: \
         wrap the code in `machine::model(|| ...)` or in `stanchion_simulator::Simulation::run`"
    )
}

/// Lets all that is earlier happen first. On return the running thread is the earliest of all, and
/// within its slice.
#[inline]
pub(crate) fn synchronize() {
    let ahead = with(|world, id| {
        let state = &mut world.state;
        let ahead = state.is_ahead(id);
        if ahead {
            state.queue_up(id);
        }
        ahead
    });
    if ahead == Some(true) {
        suspend();
    }
    if with(|world, id| world.state.is_to_freeze(id) && freeze(world, id)) == Some(true) {
        suspend();
    }
    // Being taken off its processor, it comes back at the beginning of a slice, and as the
    // earliest.
    if with(|world, id| world.state.is_out_of_time(id) && world.state.end_slice(id)) == Some(true) {
        suspend();
    }
}

#[cold]
fn freeze(world: &mut World, id: ThreadId) -> bool {
    world.state.freeze(id);
    true
}

/// Leaves the coroutine. Comes back when an event lets the thread run.
pub(crate) fn suspend() {
    // A destructor that runs while its thread unwinds may wait; the standard library's count of
    // panics is the operating system thread's, and the others see it. They only make their guards
    // believe in a poisoned lock.
    let yielder = with(|world, id| world.yielders[id.index()]).unwrap_or_else(|| outside("a wait"));
    // SAFETY: Invariant 3.
    let yielder = unsafe { &*yielder };
    yielder.suspend(());
}

/// The running thread spends `time` on `activity`, which its slice may interrupt.
pub(crate) fn spend(time: Time, activity: Activity) {
    let mut left = time;
    loop {
        let part = with(|world, id| {
            let state = &mut world.state;
            (state.thread(id).time, state.spend_slice(id, left, activity))
        });
        let Some((began, done)) = part else { return };
        // It cannot know yet, because interrupts of other processors come.
        let done = done.unwrap_or_else(|| interrupt::stretch(left, activity));
        with(|world, id| world.state.serve_interrupts(id, began, began + done));
        left = left - done;
        if left == Time::ZERO {
            return;
        }
        synchronize();
    }
}

impl State {
    /// `id` does `activity` for `left`, or until its slice ends; says for how long. `None` if it
    /// cannot know yet, because interrupts come.
    fn spend_slice(&mut self, id: ThreadId, left: Time, activity: Activity) -> Option<Time> {
        if self.interruptible {
            return None;
        }
        let thread = self.thread(id);
        let begin = thread.time;
        let end = (begin + left).min(self.processors[thread.processor].slice_end.max(begin));
        self.spend(id, activity, end);
        Some(end - begin)
    }

    /// Returns whether something is to happen before the next action of `id`, or the run is over.
    #[inline]
    fn is_ahead(&self, id: ThreadId) -> bool {
        let time = self.thread(id).time;
        self.events.next_at() <= time || self.failure.is_some() || time >= self.limits.time
    }

    #[inline]
    fn is_out_of_time(&self, id: ThreadId) -> bool {
        let thread = self.thread(id);
        thread.time >= self.processors[thread.processor].slice_end
    }

    /// Returns whether `id` cannot simply go on.
    #[inline]
    pub(crate) fn must_wait(&self, id: ThreadId) -> bool {
        self.is_ahead(id) || self.is_out_of_time(id) || self.is_to_freeze(id) || self.is_to_delay()
    }

    /// The thread goes on when all that is earlier has happened.
    fn queue_up(&mut self, id: ThreadId) {
        let thread = self.thread(id);
        let (at, stretch) = (thread.time, thread.stretch);
        self.events.announce(at, What::Run(id, stretch));
    }
}

impl World {
    pub(crate) fn new(state: State, slot: Slot, stack_size: usize) -> Self {
        Self {
            state,
            slot,
            stack_size,
            fibers: Fibers::default(),
            yielders: Vec::new(),
            current: ThreadId::new(0),
        }
    }

    /// Room for one more thread.
    pub(crate) fn room(&mut self) -> Result<ArenaStack, Failure> {
        self.bear()?;
        if self.state.threads.len() >= self.state.limits.threads {
            return Err(Failure::Threads { limit: self.state.limits.threads });
        }
        self.stack()
    }

    /// Makes a thread that runs `body` on `stack`, which is from [`room`](Self::room). If that
    /// panics, the run fails.
    pub(crate) fn create(
        &mut self,
        stack: ArenaStack,
        (name, pinned): (Option<String>, Option<usize>),
        at: Time,
        body: Box<dyn FnOnce()>,
    ) -> ThreadId {
        self.fiber(stack, body);
        self.state.create(name, pinned, at)
    }

    /// Makes the coroutines of the activations that the kernel has made. Their numbers are the
    /// next.
    fn bear(&mut self) -> Result<(), Failure> {
        for (id, body) in core::mem::take(&mut self.state.spaces.births) {
            debug_assert_eq!(
                id.index(),
                self.fibers.0.len(),
                "threads have their coroutines in order"
            );
            let stack = self.stack()?;
            self.fiber(stack, body);
        }
        Ok(())
    }

    fn stack(&self) -> Result<ArenaStack, Failure> {
        self.slot.stack(self.stack_size).map_err(|error| Failure::Memory {
            threads: self.fibers.0.len(),
            error: error.to_string(),
        })
    }

    /// Makes the coroutine of the next thread.
    fn fiber(&mut self, stack: ArenaStack, body: Box<dyn FnOnce()>) {
        let fiber = Fiber::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
            let yielder = ptr::from_ref(yielder);
            with(|world, id| world.yielders[id.index()] = yielder);
            let end = AssertUnwindSafe(|| {
                body();
                locals::drop_all(with_locals);
            });
            if let Err(payload) = catch_unwind(end) {
                with(|world, id| {
                    world.state.failure = Some(Failure::panicked(&world.state, id, &*payload))
                });
                // Its destructor is user code, and may panic again.
                core::mem::forget(payload);
            }
            // The last access may lie ahead of what others do.
            with(|world, id| world.state.queue_up(id));
            suspend();
        });
        self.fibers.0.push(Some(fiber));
        self.yielders.push(ptr::null());
    }

    /// Runs until all threads have ended, or nothing can happen any more.
    pub(crate) fn run(mut self) -> Result<State, Failure> {
        self.turn()?;
        let mut globals = core::mem::take(&mut self.state.globals);
        globals.drop_all().map_err(|payload| {
            let failure = Failure::of_a_static(&self.state, &*payload);
            // As a thread's.
            core::mem::forget(payload);
            failure
        })?;
        Ok(self.state)
    }

    fn turn(&mut self) -> Result<(), Failure> {
        while let Some((at, what)) = self.state.events.pop() {
            if self.state.is_stale(what) {
                continue;
            }
            self.state.now = at;
            if at >= self.state.limits.time {
                if self.state.has_ended() {
                    // Some processors are still away.
                    break;
                }
                return Err(Failure::time(&self.state));
            }
            match what {
                What::Run(id, _) => self.resume(id),
                other => self.state.happen(at, other),
            }
            if let Some(failure) = self.state.failure.take() {
                return Err(failure);
            }
        }
        if self.state.has_ended() { Ok(()) } else { Err(Failure::deadlock(&self.state)) }
    }

    fn resume(&mut self, id: ThreadId) {
        if let Err(failure) = self.bear() {
            self.state.failure = Some(failure);
            return;
        }
        self.current = id;
        let Some(mut fiber) = self.fibers.0[id.index()].take() else { return };
        let inside = self.slot.enter();
        let turn = Turn::of(self);
        let result = fiber.resume(());
        drop(turn);
        drop(inside);
        match result {
            CoroutineResult::Yield(()) => self.fibers.0[id.index()] = Some(fiber),
            CoroutineResult::Return(()) => self.state.end(id),
        }
        debug_assert!(
            self.state.threads.iter().all(|thread| {
                !matches!(thread.status, Status::Running | Status::Spinning)
                    || self.state.processors[thread.processor].current.is_some()
            }),
            "a thread on a processor is its current one"
        );
    }
}
