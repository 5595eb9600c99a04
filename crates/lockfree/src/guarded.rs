//! A value under any lock, of which a loom model sees each access.
//!
//! # Invariants
//!
//! 1. The value is touched only by the holder of the lock, or by the only owner.

use lock_api::{Mutex, MutexGuard, RawMutex};
use stanchion_machine::cell::UnsafeCell;

/// A value under a lock.
pub(crate) struct Guarded<V, L>(Mutex<L, UnsafeCell<V>>);

impl<V, L: RawMutex> Guarded<V, L> {
    /// Puts `value` under `lock`, which must be free.
    pub(crate) const fn new(lock: L, value: V) -> Self {
        Self(Mutex::from_raw(lock, UnsafeCell::new(value)))
    }

    /// Calls `operation` with the value, under the lock.
    #[inline]
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut V) -> R) -> R {
        self.0.lock().with_mut(|value| {
            // SAFETY: the lock is held (Invariant 1).
            let value = unsafe { &mut *value };
            operation(value)
        })
    }

    /// Calls `look` with the value, under the lock.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&V) -> R) -> R {
        Self::look_in(&self.0.lock(), look)
    }

    /// Calls `look` with the value, if the lock is free.
    pub(crate) fn try_look<R>(&self, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.0.try_lock().as_ref().map(|held| Self::look_in(held, look))
    }

    fn look_in<R>(held: &MutexGuard<'_, L, UnsafeCell<V>>, look: impl FnOnce(&V) -> R) -> R {
        held.with(|value| {
            // SAFETY: the lock is held (Invariant 1).
            let value = unsafe { &*value };
            look(value)
        })
    }

    /// Returns the value, for the only owner.
    pub(crate) fn get_mut(&mut self) -> &mut V {
        self.0.get_mut().get_mut()
    }
}
