//! A lock together with the value that it protects.
//!
//! The value lies in a cell of `machine`. Why not [`lock_api::Mutex`] alone: it would hide races
//! from a model, and accesses from a simulation.

use lock_api::{Mutex, RawMutex};
use stanchion_machine::cell::UnsafeCell;

/// A value that only the holder of the lock can reach.
pub(crate) struct Locked<L, T>(Mutex<L, UnsafeCell<T>>);

impl<L: RawMutex, T> Locked<L, T> {
    /// Creates an unlocked value.
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(UnsafeCell::new(value)))
    }

    /// Runs `section` with the value, under the lock.
    #[inline]
    pub(crate) fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        let held = self.0.lock();
        held.with_mut(|value| {
            // SAFETY: the lock is held until the closure has returned, and nothing else leads here.
            let value = unsafe { &mut *value };
            section(value)
        })
    }

    /// Runs `section` with the value, if the lock is free.
    #[inline]
    pub(crate) fn try_with<R>(&self, section: impl FnOnce(&mut T) -> R) -> Option<R> {
        let held = self.0.try_lock()?;
        Some(held.with_mut(|value| {
            // SAFETY: as in `with`.
            let value = unsafe { &mut *value };
            section(value)
        }))
    }
}
