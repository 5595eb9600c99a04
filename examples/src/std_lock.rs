//! `std::sync::Mutex` as a peer.

use lock_api::RawMutex;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// `std::sync::Mutex` in the shape of `lock_api`: the state of an acquisition is std's own guard.
pub struct Std(Mutex<()>);

impl Std {
    /// Lets a guard outlive the borrow it came from.
    fn keep(guard: MutexGuard<'_, ()>) -> MutexGuard<'static, ()> {
        // SAFETY: only the lifetime changes. lock_api keeps the guard inside its own, which borrows
        // the lock for as long as it lives; a guard that is forgotten is never used again.
        unsafe { core::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) }
    }
}

// SAFETY: exclusion, acquire and release are those of `std::sync::Mutex`.
unsafe impl RawMutex for Std {
    const INIT: Self = Self(Mutex::new(()));
    type Guard = MutexGuard<'static, ()>;

    fn lock(&self) -> Self::Guard {
        // There is no data to be poisoned: `lock_api` locks do not know poison.
        Self::keep(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        match self.0.try_lock() {
            Ok(guard) => Some(Self::keep(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(Self::keep(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    unsafe fn unlock(&self, guard: Self::Guard) {
        drop(guard);
    }

    fn is_locked(&self) -> bool {
        matches!(self.0.try_lock(), Err(TryLockError::WouldBlock))
    }
}
