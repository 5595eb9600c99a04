//! A lock and what it protects, in a cell that the machine can check: [`lock_api::Mutex`] alone would hide races from a model and accesses from a
//! simulation.

use lock_api::{Mutex, RawMutex};
use machine::cell::UnsafeCell;

/// A value of which the holder of the lock has the only reference.
pub(crate) struct Locked<L, T>(Mutex<L, UnsafeCell<T>>);

impl<L: RawMutex, T> Locked<L, T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(Mutex::new(UnsafeCell::new(value)))
    }

    /// What `section` makes of the value, under the lock.
    #[inline]
    pub(crate) fn with<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        let held = self.0.lock();
        held.with_mut(|value| {
            // SAFETY: the lock is held until the closure has returned, and there is no way here without it.
            let value = unsafe { &mut *value };
            section(value)
        })
    }

    /// What `section` makes of the value, if nobody has the lock.
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
