//! Who waits for a latch, and how it is told.

use std::sync::Arc;

use machine::bomb::AbortOnUnwind;

use crate::sync::latch::Latch;
use crate::workers::core::Core;
use crate::workers::pool_state::PoolState;
use crate::workers::wait::{Awaited, UNWOUND};
use crate::workers::worker::Worker;

/// Who waits for a latch, and how he is told.
pub(crate) enum Waiter {
    /// A worker of the pool whose tasks set it.
    Worker(usize),
    /// A worker of another one.
    OtherPool(Arc<dyn Core>, usize),
    /// A thread that sleeps on the latch itself.
    Outside,
}

impl Waiter {
    /// Who the calling thread is to a pool that it is no worker of.
    pub(crate) fn outsider(current: Option<&Worker>) -> Self {
        match current.and_then(|worker| Some((worker.core().to_arc()?, worker.index()))) {
            Some((core, index)) => Self::OtherPool(core, index),
            None => Self::Outside,
        }
    }

    /// Waits for a latch that workers of `core` set. `level` is for one of those: the level of the
    /// scope that it waits for.
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

    /// Wakes the owner of this latch, which was set while the owner slept, or was about to. The
    /// owner may be gone by now. `pool` is that of the pool whose tasks set the latch.
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

/// Sets a latch and tells its owner.
///
/// # Safety
///
/// As for [`Latch::set`]; `pool` is the pool's.
pub(crate) unsafe fn set_and_wake(latch: *const Latch, waiter: Waiter, pool: &PoolState) {
    // SAFETY: the caller's promise. Nothing of the owner's is touched afterwards, but through what
    // was had before.
    if unsafe { Latch::set(latch) } {
        waiter.wake(latch, pool);
    }
}

/// A pointer that is sent to a worker.
pub(crate) struct SendPtr<T: ?Sized>(pub(crate) *const T);

// SAFETY: who unpacks it answers for what it does with the pointer.
unsafe impl<T: ?Sized> Send for SendPtr<T> {}

impl<T: ?Sized> SendPtr<T> {
    /// The pointer; a method, so that a closure captures all of it.
    pub(crate) fn get(&self) -> *const T {
        self.0
    }
}
