//! The waiter of a latch: which thread waits, and how to wake it.

use std::sync::Arc;

use stanchion_machine::bomb::AbortOnUnwind;

use crate::sync::Latch;
use crate::workers::{Awaited, Core, PoolState, UNWOUND, Worker};

/// The thread that waits for a latch.
#[derive(Clone)]
pub(crate) enum Waiter {
    /// A worker of the pool that sets the latch.
    Worker(usize),
    /// A worker of another pool.
    OtherPool(Arc<dyn Core>, usize),
    /// A thread that sleeps on the latch itself.
    Outside,
}

impl Waiter {
    /// Returns the calling thread, with its worker `current`, as a waiter for workers of `pool`.
    pub(crate) fn current(current: Option<&Worker>, pool: &PoolState) -> Self {
        match current {
            Some(worker) if worker.belongs_to(pool) => Self::Worker(worker.index()),
            Some(worker) => {
                let core = worker.core().to_arc();
                core.map_or(Self::Outside, |core| Self::OtherPool(core, worker.index()))
            }
            None => Self::Outside,
        }
    }

    /// Waits for a latch that workers of `core` set. `level` is for a worker of the same pool: the
    /// level of the scope that it waits for.
    pub(crate) fn wait(
        core: &dyn Core,
        current: Option<&Worker>,
        latch: &Latch,
        level: Option<usize>,
    ) {
        match current {
            Some(worker) if worker.belongs_to(core.pool()) => {
                worker.wait_for(latch, level.map_or(Awaited::Anywhere, Awaited::Scope));
            }
            Some(worker) => worker.wait_for_another_pool(latch),
            None => {
                let bomb = AbortOnUnwind::armed(UNWOUND);
                latch.wait();
                bomb.defuse();
            }
        }
    }

    /// Wakes the waiter of this latch, which was set while the waiter slept, or was about to. The
    /// waiter may be gone by now. `pool` is the pool that sets the latch.
    pub(crate) fn wake(self, latch: *const Latch, pool: &PoolState) {
        match self {
            Self::Worker(index) => {
                pool.sleep.notify_worker(index);
            }
            Self::OtherPool(core, index) => {
                core.pool().sleep.notify_worker(index);
            }
            Self::Outside => Latch::wake(latch),
        }
    }
}

/// Sets a latch and wakes its waiter.
///
/// # Safety
///
/// As for [`Latch::set`]. `pool` is the pool that sets the latch.
pub(crate) unsafe fn set_and_wake(latch: *const Latch, waiter: Waiter, pool: &PoolState) {
    // SAFETY: the caller's promise. Nothing on the waiter's stack is touched afterwards.
    if unsafe { Latch::set(latch) } {
        waiter.wake(latch, pool);
    }
}

/// A pointer that is sent to a worker.
pub(crate) struct SendPtr<T: ?Sized>(pub(crate) *const T);

// SAFETY: the worker that unpacks it answers for its use of the pointer.
unsafe impl<T: ?Sized> Send for SendPtr<T> {}

impl<T: ?Sized> SendPtr<T> {
    /// Returns the pointer. A method, so that a closure captures the whole value.
    pub(crate) fn get(&self) -> *const T {
        self.0
    }
}
