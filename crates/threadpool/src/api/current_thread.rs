//! A thread that becomes a worker of a pool which it builds: `use_current_thread`.
//!
//! It has the first seat, and does not run the loop of the others. It runs tasks while it waits for
//! some of them, while it yields, and while it shuts the pool down. For the rest of its life it
//! does what the program does. So it is not counted among the threads for whose rest a closed pool
//! waits (`closing.rs`), but for the time of a shutdown. It is counted among those that may still
//! use their places (`ending.rs`).
//!
//! Why it keeps the seat until it ends: references to the worker may lie in any frame of its stack.
//!
//! # Invariants
//!
//! 1. `CURRENT` points to the worker of the guest, but inside of `Worker::enter`, until the guest
//!    is dropped, at the thread's end. No frame has a reference to it then.
//! 2. The guest's registry lives longer than its worker: it is dropped after that.

use core::cell::Cell;
use std::sync::Arc;

use machine::atomic::Ordering;

use crate::registry::Registry;
use crate::strategy::Strategy;
use crate::workers::pool_state::CURRENT_THREAD_SLOT;
use crate::workers::worker::Worker;

machine::thread_local! {
    /// The pool of which the thread is a guest, if it is one.
    static CURRENT_THREAD: Cell<Option<CurrentThread>> = Cell::new(None);
}

/// A thread's seat in a pool that it has built.
struct CurrentThread {
    /// Frees the seat. Owns the registry (Invariant 2), in which the worker lies.
    leave: Option<Box<dyn FnOnce()>>,
}

impl Drop for CurrentThread {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            leave();
        }
    }
}

/// Returns whether the calling thread is a worker of some pool.
pub(crate) fn is_worker() -> bool {
    Worker::with_current(|worker| worker.is_some())
}

/// The calling thread has the first seat of a pool that is being built. If that fails, it gives the
/// seat up: no frame has a reference to the worker yet.
pub(crate) struct Bound(());

impl Bound {
    /// The pool has been built: the thread stays.
    pub(crate) fn stay(self) {
        core::mem::forget(self);
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        CURRENT_THREAD.with(|current| drop(current.take()));
    }
}

/// Makes the calling thread, which is no worker, the worker of the first seat.
///
/// # Safety
///
/// The seat is free, and no thread is started for it.
pub(crate) unsafe fn bind<S: Strategy>(registry: &Arc<Registry<S>>) -> Bound {
    let pool = registry.pool();
    pool.drain.register();
    // Relaxed: a hint.
    pool.active_threads.fetch_add(1, Ordering::Relaxed);
    let owned = registry.clone();
    // SAFETY: the caller's promise. The guest owns the registry, and drops it after it has left the
    // seat (Invariant 2).
    unsafe { pool.info(CURRENT_THREAD_SLOT).bind_worker(&raw const *owned) }.set_current(true);
    let leave = move || {
        // SAFETY: the seat is this thread's until it leaves it below.
        let worker = unsafe { owned.pool().info(CURRENT_THREAD_SLOT).worker() };
        worker.set_current(false);
        owned.leave_slot(worker);
    };
    CURRENT_THREAD
        .with(|current| current.set(Some(CurrentThread { leave: Some(Box::new(leave)) })));
    Bound(())
}
