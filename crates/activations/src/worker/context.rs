//! The calling worker, and how the thread that runs on it leaves it.
//!
//! Why functions that are not inlined: a thread that may migrate continues on another kernel thread
//! after it has parked, and the compiler keeps addresses of thread-locals across calls that it sees
//! into.
//!
//! # Invariants
//!
//! 1. `WORKER` points to the calling kernel thread's [`Worker`] while that lies on its stack.
//! 2. A closure does not keep what this file hands to it across a switch.

use core::cell::Cell;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use stanchion_machine::clock::Deadline;
use stanchion_machine::stack::Label;

use super::state::Worker;
use crate::runtime::state::RuntimeState;
use crate::thread::fiber::{Resume, Suspended, Suspender};
use crate::thread::handle::Thread;
use crate::thread::kernel_thread;
use crate::thread::park_state::Pause;

stanchion_machine::thread_local! {
    static WORKER: Cell<*const Worker> = Cell::new(core::ptr::null());
}

/// Runs `body` on the calling kernel thread as this worker.
pub(super) fn enter(worker: &Worker, body: impl FnOnce()) {
    WORKER.with(|place| place.set(worker));
    body();
    WORKER.with(|place| place.set(core::ptr::null()));
}

#[inline(never)]
fn address() -> *const Worker {
    WORKER.with(Cell::get)
}

/// Calls `body` with the calling worker; with `None` if the caller is not on one.
pub(crate) fn with<R>(body: impl FnOnce(Option<&Worker>) -> R) -> R {
    // SAFETY: Invariant 1.
    body(unsafe { address().as_ref() })
}

/// Returns the runtime of the calling worker.
pub(crate) fn runtime() -> Option<Arc<RuntimeState>> {
    with(|worker| worker.map(|worker| worker.runtime.clone()))
}

/// Returns the address of the calling thread's runtime, in its worker; null if the caller is not a
/// user-level thread.
pub(crate) fn runtime_pointer() -> *const Arc<RuntimeState> {
    with(|worker| {
        let worker = worker.filter(|worker| !worker.current().is_null());
        worker.map_or(core::ptr::null(), |worker| &raw const worker.runtime)
    })
}

/// Calls `body` with the calling thread: the user-level one, or else the kernel thread.
pub(crate) fn with_current<R>(body: impl FnOnce(&Thread) -> R) -> R {
    let current = with(|worker| worker.map_or(core::ptr::null(), Worker::current));
    let current = if current.is_null() { kernel_thread::current() } else { current };
    // SAFETY: a thread that calls is alive, and its handle stays where it is while it runs. The
    // handle of a kernel thread stays until that ends.
    body(unsafe { &*current })
}

/// Returns the calling thread: the user-level one, or else the kernel thread.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let inside = runtime.spawn(|| stanchion_activations::current().id()).join().unwrap();
/// assert_ne!(inside, stanchion_activations::current().id());
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[must_use]
pub fn current() -> Thread {
    with_current(Thread::clone)
}

/// Runs a thread on a fiber, and then others that may use the same fiber.
pub(super) fn run_threads(label: &Label, suspender: &Suspender<Thread>, thread: Thread) {
    let mut next = Some(thread);
    while let Some(thread) = next {
        label.set(thread.name());
        next = run_thread(suspender, thread);
    }
}

fn run_thread(suspender: &Suspender<Thread>, thread: Thread) -> Option<Thread> {
    // The own reference travels with the thread, and goes with its end (`thread/completion.rs`).
    let thread = ManuallyDrop::new(thread);
    with(|worker| {
        let Some(worker) = worker else { unreachable!("fibers run on workers") };
        worker.begin(suspender, &thread);
    });
    // SAFETY: it was taken out of its queue, where it was once.
    let notice = unsafe { thread.run() };
    // Perhaps on another kernel thread than before.
    with(|worker| {
        let Some(worker) = worker else { unreachable!("fibers run on workers") };
        worker.thread_ended(notice);
        worker.next_to_begin()
    })
}

/// Suspends the calling thread, until the deadline at most if it waits. Returns `false` if the
/// caller is not a user-level thread. A thread that panics waits on its fiber for as long as it
/// may.
fn suspend(mut reason: Suspended, deadline: Deadline) -> bool {
    let suspender = with(|worker| worker.map_or(core::ptr::null(), Worker::suspender_to_leave));
    // SAFETY: null, or that of the fiber that this runs on, where it lies at the base.
    let Some(suspender) = (unsafe { suspender.as_ref() }) else { return false };
    let panics = stanchion_machine::thread::panicking();
    if panics {
        match with(|worker| worker.and_then(|worker| worker.wait_in_panic(reason, deadline))) {
            Some(leaves) => reason = leaves,
            // The wait is over, on the same fiber.
            None => return true,
        }
    }
    let Resume::Continue = suspender.suspend(reason) else {
        unreachable!("a thread that was laid aside continues")
    };
    with(|worker| {
        if let Some(worker) = worker {
            worker.suspender.set(suspender);
            if panics {
                worker.continues_in_panic();
            }
        }
    });
    true
}

/// Parks the calling thread until it is unparked; returns `None` if it is not a user-level thread.
pub(crate) fn park_thread() -> Option<()> {
    // Without a reference to the thread, which would cost more than the rest.
    let has_token = with(|worker| {
        worker.and_then(|worker| {
            worker.with_current(|thread| thread.header().park_state().take_token())
        })
    })?;
    if !has_token {
        suspend(Suspended::Paused(Pause::Park), Deadline::NEVER);
    }
    Some(())
}

/// Pauses the calling thread until it is unparked or notified, or the deadline passes. Returns
/// `false` if it is not a user-level thread.
pub(super) fn pause_thread(deadline: Deadline) -> bool {
    let pause = Suspended::Paused(Pause::Wait);
    if deadline == Deadline::NEVER {
        // Without a reference to the thread, which would cost more than the rest.
        return suspend(pause, Deadline::NEVER);
    }
    let thread = with(|worker| worker.and_then(|worker| worker.with_current(Thread::clone)));
    let Some(thread) = thread else { return false };
    let Some(runtime) = thread.header().runtime::<RuntimeState>() else {
        unreachable!("a worker runs threads of its runtime")
    };
    // SAFETY: the thread that calls has not ended, and its cell was made for a `RuntimeState`.
    let runtime = unsafe { runtime.as_ref() };
    let key = runtime.add_timer(deadline, thread.clone());
    suspend(pause, deadline);
    runtime.ready.timers.remove(key);
    true
}

/// Lets threads of a higher priority run first, if the caller is a user-level thread and any are
/// ready; but not in the middle of unwinding.
#[inline]
pub(crate) fn give_way() {
    if with(|worker| worker.is_some_and(Worker::should_give_way))
        && !stanchion_machine::thread::panicking()
    {
        suspend(Suspended::Yielded, Deadline::NEVER);
    }
}

/// Lets other threads run first. Returns `false` if the caller is not a user-level thread.
pub(crate) fn yield_thread() -> bool {
    suspend(Suspended::Yielded, Deadline::NEVER)
}
