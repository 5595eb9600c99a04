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

use crate::arena::{self, ArenaStack, Slot};
use crate::failure::Failure;
use crate::locals::{self, Locals};
use crate::scheduler::What;
use crate::services::{Kernel, NewActivation};
use crate::statistics::Activity;
use crate::{ThreadId, Time};
use core::cell::Cell;
use core::ptr;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Fiber = Coroutine<(), (), (), ArenaStack>;

pub(crate) struct World {
    /// The state of the run.
    pub(crate) kernel: Kernel,
    /// The statics of the run.
    globals: Locals,
    /// The values of each thread's own statics.
    locals: Vec<Locals>,
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
    with(|world, id| body(&mut world.locals[id.index()]))
        .unwrap_or_else(|| outside("a thread-local value"));
}

pub(crate) fn with_globals(body: &mut dyn FnMut(&mut Locals)) {
    with(|world, _| body(&mut world.globals)).unwrap_or_else(|| outside("a static of the run"));
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
        let ahead = world.kernel.is_ahead(id);
        if ahead {
            world.kernel.scheduler.queue_up(id);
        }
        ahead
    });
    if ahead == Some(true) {
        suspend();
    }
    if with(|world, id| world.kernel.thread(id).is_to_freeze() && freeze(world, id)) == Some(true) {
        suspend();
    }
    // Being taken off its processor, it comes back at the beginning of a slice, and as the
    // earliest.
    let leaves = with(|world, id| {
        let kernel = &mut world.kernel;
        kernel.scheduler.is_out_of_time(id) && kernel.end_slice(id)
    });
    if leaves == Some(true) {
        suspend();
    }
}

#[cold]
fn freeze(world: &mut World, id: ThreadId) -> bool {
    world.kernel.freeze(id);
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
            let scheduler = &mut world.kernel.scheduler;
            (scheduler.threads[id].time, scheduler.spend_slice(id, left, activity))
        });
        let Some((began, done)) = part else { return };
        // It cannot know yet, because interrupts of other processors come.
        let done = done.unwrap_or_else(|| compute(left, activity));
        with(|world, id| {
            let Kernel { memory, scheduler, .. } = &mut world.kernel;
            memory.serve_interrupts(scheduler, id, began, began + done);
        });
        left = left - done;
        if left == Time::ZERO {
            return;
        }
        synchronize();
    }
}

/// The running thread does `activity` for `left`, or until its slice ends or an interrupt comes.
/// Returns for how long it did.
fn compute(left: Time, activity: Activity) -> Time {
    let alone = with(|world, id| world.kernel.scheduler.compute(id, left, activity));
    if let Some(Some(done)) = alone {
        return done;
    }
    let begin = with(|world, id| world.kernel.thread(id).time).unwrap_or_default();
    suspend();
    with(|world, id| world.kernel.scheduler.end_computation(id, begin)).unwrap_or(left)
}

/// Calls the body of a thread.
///
/// Not inlined: the frames below a body decide where its variables lie on the thread's stack, and
/// which of them share a line.
#[inline(never)]
fn call(body: Box<dyn FnOnce()>) {
    body();
}

impl World {
    pub(crate) fn new(kernel: Kernel, slot: Slot, stack_size: usize) -> Self {
        Self {
            kernel,
            globals: Locals::default(),
            locals: Vec::new(),
            slot,
            stack_size,
            fibers: Fibers::default(),
            yielders: Vec::new(),
            current: ThreadId::new(0),
        }
    }

    /// Room for one more thread.
    pub(crate) fn room(&mut self) -> Result<ArenaStack, Failure> {
        self.add_activations()?;
        let limit = self.kernel.limits.threads;
        if self.kernel.threads().len() >= limit {
            return Err(Failure::Threads { limit });
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
        self.kernel.scheduler.threads.create(name, pinned, at)
    }

    /// Makes the coroutines of the activations that the kernel has made. Their numbers are the
    /// next.
    fn add_activations(&mut self) -> Result<(), Failure> {
        for NewActivation { id, handler, upcalls } in self.kernel.spaces.take_new() {
            debug_assert_eq!(
                id.index(),
                self.fibers.0.len(),
                "threads have their coroutines in order"
            );
            let stack = self.stack()?;
            let body = move || {
                let next = handler(&upcalls);
                with(|world, id| {
                    let Kernel { spaces, scheduler, .. } = &mut world.kernel;
                    spaces.finish(&mut scheduler.threads, id, next);
                });
            };
            self.fiber(stack, Box::new(body));
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
                call(body);
                locals::drop_all(with_locals);
            });
            if let Err(payload) = catch_unwind(end) {
                with(|world, id| {
                    let kernel = &mut world.kernel;
                    kernel.failure = Some(Failure::panicked(kernel.threads(), id, &*payload));
                });
                // Its destructor is user code, and may panic again.
                core::mem::forget(payload);
            }
            // The last access may lie ahead of what others do.
            with(|world, id| world.kernel.scheduler.queue_up(id));
            suspend();
        });
        self.fibers.0.push(Some(fiber));
        self.yielders.push(ptr::null());
        self.locals.push(Locals::default());
    }

    /// Runs until all threads have ended, or nothing can happen any more.
    pub(crate) fn run(mut self) -> Result<Kernel, Failure> {
        self.turn()?;
        self.globals.drop_all().map_err(|payload| {
            let failure = Failure::of_a_static(self.kernel.threads(), &*payload);
            // As a thread's.
            core::mem::forget(payload);
            failure
        })?;
        Ok(self.kernel)
    }

    fn turn(&mut self) -> Result<(), Failure> {
        while let Some((at, what)) = self.kernel.scheduler.events.pop() {
            if self.kernel.scheduler.is_stale(what) {
                continue;
            }
            let limit = self.kernel.limits.time;
            if at >= limit {
                if self.kernel.threads().have_ended() {
                    // Some processors are still away.
                    break;
                }
                return Err(Failure::time(limit, self.kernel.threads()));
            }
            match what {
                What::Run(id, _) => self.resume(id),
                other => self.kernel.happen(at, other),
            }
            if let Some(failure) = self.kernel.failure.take() {
                return Err(failure);
            }
        }
        let threads = self.kernel.threads();
        if threads.have_ended() { Ok(()) } else { Err(Failure::deadlock(threads)) }
    }

    fn resume(&mut self, id: ThreadId) {
        if let Err(failure) = self.add_activations() {
            self.kernel.failure = Some(failure);
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
            CoroutineResult::Return(()) => self.kernel.end(id),
        }
        debug_assert!(
            self.kernel.scheduler.is_sound(),
            "a thread on a processor is its current one"
        );
    }
}
