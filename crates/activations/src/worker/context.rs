//! The calling kernel thread, if it is a worker: what a thread's own operations find it by.
//!
//! Why functions that are not inlined: a thread that may migrate goes on on another kernel thread
//! after it has parked, and the compiler keeps addresses of thread-locals across calls that it sees
//! into.
//!
//! # Invariants
//!
//! 1. `LOCAL` points to the worker's [`Worker`] while that lies on its stack.
//! 2. What this file hands to a closure is not kept across a switch.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use machine::clock::Deadline;

use crate::thread::fiber::{Suspender, Resume, Suspended};
use crate::thread::home::ThreadHome;
use crate::runtime::state::RuntimeState;
use crate::thread::park_state::Pause;
use crate::thread::header::Thread;
use crate::worker::scheduler_loop::Worker;

machine::thread_local! {
    static LOCAL: Cell<*const Worker> = Cell::new(core::ptr::null());
}

/// Runs `body` with the calling thread known to be this worker.
pub(crate) fn enter(local: &Worker, body: impl FnOnce()) {
    LOCAL.with(|place| place.set(local));
    body();
    LOCAL.with(|place| place.set(core::ptr::null()));
}

#[inline(never)]
fn address() -> *const Worker {
    LOCAL.with(Cell::get)
}

/// Calls `body` with the worker that the calling thread is, if it is one.
pub(crate) fn with<R>(body: impl FnOnce(Option<&Worker>) -> R) -> R {
    // SAFETY: Invariant 1.
    body(unsafe { address().as_ref() })
}

/// The runtime whose worker calls.
pub(crate) fn runtime() -> Option<Arc<RuntimeState>> {
    with(|local| local.map(|local| local.runtime.clone()))
}

/// The handle of the user-level thread that calls; null if it is none.
pub(crate) fn current_pointer() -> *const Thread {
    with(|local| local.map_or(core::ptr::null(), Worker::current))
}

/// The runtime of the user-level thread that calls, as its worker has it; null if the caller is
/// none.
pub(crate) fn home_pointer() -> *const Arc<RuntimeState> {
    with(|local| {
        let local = local.filter(|local| !local.current().is_null());
        local.map_or(core::ptr::null(), |local| &raw const local.runtime)
    })
}

/// Runs a thread on the fiber that `exit` leaves, then says which other one may use the fiber.
pub(crate) fn run(exit: &Suspender, thread: Thread) -> Option<Thread> {
    // Its own share goes around with it, and goes with its end (`completion.rs`).
    let thread = ManuallyDrop::new(thread);
    with(|local| {
        let Some(local) = local else { unreachable!("fibers run on workers") };
        local.begin(exit, &thread);
    });
    // SAFETY: it is out of its queue, where it was once.
    let notice = unsafe { thread.run() };
    // Perhaps on another kernel thread than before.
    with(|local| {
        let Some(local) = local else { unreachable!("fibers run on workers") };
        local.thread_ended(notice);
        local.next_to_begin()
    })
}

/// Leaves the calling thread's fiber, until the deadline at most if it waits; `false` if it is no
/// user-level thread. A thread that panics waits on its fiber, as long as it may.
fn leave(left: Suspended, deadline: Deadline) -> bool {
    let exit = with(|local| local.map_or(core::ptr::null(), Worker::exit_to_leave));
    // SAFETY: null, or that of the fiber that this runs on, at whose base it lies.
    let Some(exit) = (unsafe { exit.as_ref() }) else { return false };
    let mut left = left;
    let panics = machine::thread::panicking();
    if panics {
        match with(|local| local.and_then(|local| local.wait_in_panic(left, deadline))) {
            Some(leaves) => left = leaves,
            None => return true,
        }
    }
    let Resume::Continue = exit.suspend(left) else {
        unreachable!("a thread that was laid aside goes on")
    };
    with(|local| {
        if let Some(local) = local {
            local.on_fiber(exit);
            if panics {
                local.goes_on_in_panic();
            }
        }
    });
    true
}

/// Parks the calling thread until it is unparked; `None` if it is no user-level thread.
pub(crate) fn park_thread() -> Option<()> {
    // Without a share of the handle, which would cost more than the rest.
    let has_token = with(|local| {
        local.and_then(|local| local.with_current(|thread| thread.header().state().take_token()))
    })?;
    if !has_token {
        leave(Suspended::Paused(Pause::Park), Deadline::NEVER);
    }
    Some(())
}

/// Pauses the calling thread until it is unparked or called, or the deadline has passed; `false` if
/// it is no user-level thread.
pub(crate) fn pause_thread(deadline: Deadline) -> bool {
    if deadline == Deadline::NEVER {
        // Without a share of the handle, which would cost more than the rest.
        return leave(Suspended::Paused(Pause::Wait), Deadline::NEVER);
    }
    let thread = with(|local| local.and_then(|local| local.with_current(Thread::clone)));
    let Some(thread) = thread else { return false };
    let ThreadHome::Runtime(home) = thread.header().home() else {
        unreachable!("a worker runs threads of its runtime")
    };
    // SAFETY: it is the thread that calls.
    let runtime = unsafe { home.runtime() };
    let key = runtime.add_timer(deadline, thread.clone());
    leave(Suspended::Paused(Pause::Wait), deadline);
    runtime.remove_timer(key);
    true
}

/// Lets more urgent threads run first, if the caller is a user-level thread and any are ready; but
/// not in the middle of unwinding.
#[inline]
pub(crate) fn give_way() {
    if with(|local| local.is_some_and(Worker::should_give_way)) && !machine::thread::panicking() {
        leave(Suspended::Yielded, Deadline::NEVER);
    }
}

/// Lets others run first; `false` if the caller is no user-level thread.
pub(crate) fn yield_thread() -> bool {
    leave(Suspended::Yielded, Deadline::NEVER)
}
