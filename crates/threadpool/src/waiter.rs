//! Who waits for a latch, and how it is told.

use std::sync::Arc;

use machine::bomb::AbortOnUnwind;

use crate::sync::latch::Latch;
use crate::workers::core::Core;
use crate::workers::pool_state::Common;
use crate::workers::wait::{Awaited, UNWOUND};
use crate::workers::worker::Worker;

/// Who waits for a latch, and how he is told.
pub(crate) enum Owner {
    /// A worker of the pool whose tasks set it.
    Worker(usize),
    /// A worker of another one.
    Stranger(Arc<dyn Core>, usize),
    /// A thread that sleeps on the latch itself.
    Outside,
}

impl Owner {
    /// Who the calling thread is to a pool that it is no worker of.
    pub(crate) fn visitor(current: Option<&Worker>) -> Self {
        match current.and_then(|worker| Some((worker.core().arc()?, worker.index()))) {
            Some((core, index)) => Self::Stranger(core, index),
            None => Self::Outside,
        }
    }

    /// Waits for a latch that workers of `core` set. `listed` is for one of those: the level of the
    /// scope that it waits for.
    pub(crate) fn wait(
        core: &dyn Core,
        current: Option<&Worker>,
        latch: &Latch,
        listed: Option<usize>,
    ) {
        match current {
            Some(worker) if worker.belongs_to(core.common()) => {
                worker.wait_for(latch, listed.map_or(Awaited::Anywhere, Awaited::Scope));
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
    /// owner may be gone by now. `common` is that of the pool whose tasks set the latch.
    pub(crate) fn tell(self, latch: *const Latch, common: &Common) {
        match self {
            Self::Worker(index) => {
                common.sleeping.tell_only(index);
            }
            Self::Stranger(core, index) => {
                core.common().sleeping.tell_only(index);
            }
            Self::Outside => Latch::wake(latch),
        }
    }
}

/// Sets a latch and tells its owner.
///
/// # Safety
///
/// As for [`Latch::set`]; `common` is the pool's.
pub(crate) unsafe fn set(latch: *const Latch, owner: Owner, common: &Common) {
    // SAFETY: the caller's promise. Nothing of the owner's is touched afterwards, but through what
    // was had before.
    if unsafe { Latch::set(latch) } {
        owner.tell(latch, common);
    }
}

/// A pointer that is sent to a worker.
pub(crate) struct Sent<T: ?Sized>(pub(crate) *const T);

// SAFETY: who unpacks it answers for what it does with the pointer.
unsafe impl<T: ?Sized> Send for Sent<T> {}

impl<T: ?Sized> Sent<T> {
    /// The pointer; a method, so that a closure captures all of it.
    pub(crate) fn get(&self) -> *const T {
        self.0
    }
}
