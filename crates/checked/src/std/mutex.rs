//! `std::sync::Mutex`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, TryLockResult};

use stanchion_order::{Identity, Mode};

use super::held::{Held, attempt, map, take};

/// A `std::sync::Mutex` that reports the order in which it is taken.
///
/// ```
/// use stanchion_checked::std::Mutex;
///
/// static COUNT: Mutex<u32> = Mutex::new(0);
///
/// *COUNT.lock().unwrap() += 1;
/// assert_eq!(*COUNT.lock().unwrap(), 1);
/// ```
pub struct Mutex<T: ?Sized> {
    /// The mutex's identity in the record.
    identity: Identity,
    /// The mutex.
    inner: sync::Mutex<T>,
}

/// The guard of a [`Mutex`], which is released when this is dropped.
///
/// ```
/// use stanchion_checked::std::{Mutex, MutexGuard};
///
/// let mutex = Mutex::new(1);
/// let guard: MutexGuard<'_, i32> = mutex.lock().unwrap();
/// assert_eq!(*guard, 1);
/// ```
#[must_use = "if unused the Mutex will immediately unlock"]
pub struct MutexGuard<'a, T: ?Sized> {
    /// The acquisition, which ends before the mutex is free.
    held: Held<'a>,
    /// The guard of the mutex.
    inner: sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex. Costs nothing, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// let mutex = Mutex::new("value");
    /// # drop(mutex);
    /// ```
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self { identity: Identity::new(), inner: sync::Mutex::new(value) }
    }

    /// Returns the value. Costs nothing, and never panics.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the value.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// assert_eq!(Mutex::new(3).into_inner().unwrap(), 3);
    /// ```
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the mutex, and blocks until it is free.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the guard.
    ///
    /// # Panics
    ///
    /// Where that of `std` panics: perhaps if the thread holds the mutex.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// assert_eq!(*Mutex::new(3).lock().unwrap(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_lock(), || self.inner.lock());
        let (held, result) = take(&self.identity, Mode::Exclusive, attempt, block);
        map(result, |inner| MutexGuard { held, inner })
    }

    /// Takes the mutex if it is free. Never blocks.
    ///
    /// # Errors
    ///
    /// If the mutex is held. If a thread has panicked with the mutex held, in which case the error
    /// has the guard.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// let mutex = Mutex::new(());
    /// let _guard = mutex.try_lock().unwrap();
    /// assert!(mutex.try_lock().is_err());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let guard = |held, inner| MutexGuard { held, inner };
        attempt(self.inner.try_lock(), &self.identity, Mode::Exclusive, guard)
    }

    /// Returns true if a thread has panicked with the mutex held. Costs a load, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// assert!(!Mutex::new(()).is_poisoned());
    /// ```
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a thread has panicked with the mutex held. Costs a store, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// Mutex::new(()).clear_poison();
    /// ```
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the value, without a lock. Costs nothing, and never panics.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the value.
    ///
    /// ```
    /// use stanchion_checked::std::Mutex;
    ///
    /// let mut mutex = Mutex::new(1);
    /// *mutex.get_mut().unwrap() = 2;
    /// assert_eq!(*mutex.lock().unwrap(), 2);
    /// ```
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// Takes the guard apart, with the mutex held on.
    pub(super) fn into_parts(self) -> (Held<'a>, sync::MutexGuard<'a, T>) {
        (self.held, self.inner)
    }

    /// Makes a guard of its parts.
    pub(super) fn from_parts(held: Held<'a>, inner: sync::MutexGuard<'a, T>) -> Self {
        Self { held, inner }
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
