//! The thread that builds a pool and becomes its worker: `use_current_thread`.
//!
//! It has the first slot, and does not run the loop of the other threads. It runs tasks while it
//! waits for some of them, while it yields, and while it shuts the pool down. For the rest of its
//! life it does what the program does. So a closed pool does not wait until it is idle
//! (`termination.rs`), except during a shutdown. It is counted among the threads that may still use
//! their slots (`drain.rs`).
//!
//! Why it keeps the slot until it ends: any frame of its stack may have a reference to the worker.
//!
//! # Invariants
//!
//! 1. `CURRENT` points to the thread's worker, except inside of `Worker::enter`, until the
//!    [`CurrentThread`] is dropped at the thread's end. No frame has a reference to the worker
//!    then.
//! 2. The registry of a `CurrentThread` lives longer than its worker: it is dropped after that.

use core::cell::Cell;
use std::sync::Arc;

use stanchion_machine::atomic::Ordering;

use crate::registry::Registry;
use crate::strategy::Strategy;
use crate::workers::{CURRENT_THREAD_SLOT, Worker};

stanchion_machine::thread_local! {
    /// The pool that the thread has built and is a worker of, if any. Written by the thread itself.
    static CURRENT_THREAD: Cell<Option<CurrentThread>> = Cell::new(None);
}

/// A thread's slot in a pool that it has built.
struct CurrentThread {
    /// Frees the slot. Owns the registry (Invariant 2), in which the worker lies.
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

/// A thread that has the first slot of a pool which is being built. If building fails, dropping
/// this frees the slot: no frame has a reference to the worker yet.
pub(crate) struct Bound(());

impl Bound {
    /// Keeps the slot: the pool has been built.
    pub(crate) fn stay(self) {
        core::mem::forget(self);
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        CURRENT_THREAD.with(|current| drop(current.take()));
    }
}

/// Makes the calling thread, which is no worker, the worker of the first slot.
///
/// # Safety
///
/// The slot is free, and no thread is started for it.
pub(crate) unsafe fn bind<S: Strategy>(registry: &Arc<Registry<S>>) -> Bound {
    let pool = registry.pool();
    pool.drain.register();
    // Relaxed: a hint.
    pool.active_threads.fetch_add(1, Ordering::Relaxed);
    let owned = registry.clone();
    // SAFETY: the caller's promise. The `CurrentThread` owns the registry, and drops it after it
    // has left the slot (Invariant 2).
    unsafe { pool.info(CURRENT_THREAD_SLOT).bind_worker(&raw const *owned) }.set_current(true);
    let leave = move || {
        // SAFETY: the slot is this thread's until it leaves it below.
        let worker = unsafe { owned.pool().info(CURRENT_THREAD_SLOT).worker() };
        worker.set_current(false);
        owned.leave_slot(worker);
    };
    CURRENT_THREAD
        .with(|current| current.set(Some(CurrentThread { leave: Some(Box::new(leave)) })));
    Bound(())
}
