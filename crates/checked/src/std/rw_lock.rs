//! `std::sync::RwLock`.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, TryLockResult};

use stanchion_order::{Identity, Mode};

use super::held::{Held, attempt, map, take};

/// A `std::sync::RwLock` that reports the order in which it is taken.
///
/// ```
/// use stanchion_checked::std::RwLock;
///
/// static NAME: RwLock<&str> = RwLock::new("old");
///
/// *NAME.write().unwrap() = "new";
/// assert_eq!(*NAME.read().unwrap(), "new");
/// ```
pub struct RwLock<T: ?Sized> {
    /// The lock's identity in the record.
    identity: Identity,
    /// The lock.
    inner: sync::RwLock<T>,
}

/// The guard of a reader of a [`RwLock`].
///
/// ```
/// use stanchion_checked::std::{RwLock, RwLockReadGuard};
///
/// let lock = RwLock::new(1);
/// let guard: RwLockReadGuard<'_, i32> = lock.read().unwrap();
/// assert_eq!(*guard, 1);
/// ```
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    /// The acquisition, which ends before the lock is free.
    _held: Held<'a>,
    /// The guard of the lock.
    inner: sync::RwLockReadGuard<'a, T>,
}

/// The guard of a writer of a [`RwLock`].
///
/// ```
/// use stanchion_checked::std::{RwLock, RwLockWriteGuard};
///
/// let lock = RwLock::new(1);
/// let mut guard: RwLockWriteGuard<'_, i32> = lock.write().unwrap();
/// *guard = 2;
/// ```
#[must_use = "if unused the RwLock will immediately unlock"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    /// The acquisition, which ends before the lock is free.
    held: Held<'a>,
    /// The guard of the lock.
    inner: sync::RwLockWriteGuard<'a, T>,
}

impl<T> RwLock<T> {
    /// Makes a lock. Costs nothing, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// let lock = RwLock::new("value");
    /// # drop(lock);
    /// ```
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self { identity: Identity::new(), inner: sync::RwLock::new(value) }
    }

    /// Returns the value. Costs nothing, and never panics.
    ///
    /// # Errors
    ///
    /// If a writer has panicked. The error has the value.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// assert_eq!(RwLock::new(3).into_inner().unwrap(), 3);
    /// ```
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Takes the lock beside other readers, and blocks until there is no writer.
    ///
    /// # Errors
    ///
    /// If a writer has panicked. The error has the guard.
    ///
    /// # Panics
    ///
    /// Where that of `std` panics: perhaps if the thread holds the lock.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// assert_eq!(*RwLock::new(3).read().unwrap(), 3);
    /// ```
    #[inline]
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_read(), || self.inner.read());
        let (held, result) = take(&self.identity, Mode::Shared, attempt, block);
        map(result, |inner| RwLockReadGuard { _held: held, inner })
    }

    /// Takes the lock beside other readers if there is no writer. Never blocks.
    ///
    /// # Errors
    ///
    /// If there is a writer. If a writer has panicked, in which case the error has the guard.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// let lock = RwLock::new(());
    /// let _guard = lock.write().unwrap();
    /// assert!(lock.try_read().is_err());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let guard = |held, inner| RwLockReadGuard { _held: held, inner };
        attempt(self.inner.try_read(), &self.identity, Mode::Shared, guard)
    }

    /// Takes the lock alone, and blocks until it is free.
    ///
    /// # Errors
    ///
    /// If a writer has panicked. The error has the guard.
    ///
    /// # Panics
    ///
    /// Where that of `std` panics: perhaps if the thread holds the lock.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// *RwLock::new(3).write().unwrap() = 4;
    /// ```
    #[inline]
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let (attempt, block) = (|| self.inner.try_write(), || self.inner.write());
        let (held, result) = take(&self.identity, Mode::Exclusive, attempt, block);
        map(result, |inner| RwLockWriteGuard { held, inner })
    }

    /// Takes the lock alone if it is free. Never blocks.
    ///
    /// # Errors
    ///
    /// If the lock is held. If a writer has panicked, in which case the error has the guard.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// let lock = RwLock::new(());
    /// let _guard = lock.read().unwrap();
    /// assert!(lock.try_write().is_err());
    /// ```
    #[inline]
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let guard = |held, inner| RwLockWriteGuard { held, inner };
        attempt(self.inner.try_write(), &self.identity, Mode::Exclusive, guard)
    }

    /// Returns true if a writer has panicked. Costs a load, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// assert!(!RwLock::new(()).is_poisoned());
    /// ```
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a writer has panicked. Costs a store, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// RwLock::new(()).clear_poison();
    /// ```
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// Returns the value, without a lock. Costs nothing, and never panics.
    ///
    /// # Errors
    ///
    /// If a writer has panicked. The error has the value.
    ///
    /// ```
    /// use stanchion_checked::std::RwLock;
    ///
    /// let mut lock = RwLock::new(1);
    /// *lock.get_mut().unwrap() = 2;
    /// assert_eq!(*lock.read().unwrap(), 2);
    /// ```
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Becomes a reader, without a release in between. Costs what that of `std` does, and never
    /// panics.
    ///
    /// ```
    /// use stanchion_checked::std::{RwLock, RwLockWriteGuard};
    ///
    /// let lock = RwLock::new(1);
    /// let guard = RwLockWriteGuard::downgrade(lock.write().unwrap());
    /// assert!(lock.try_read().is_ok());
    /// # drop(guard);
    /// ```
    pub fn downgrade(s: Self) -> RwLockReadGuard<'a, T> {
        let Self { held, inner } = s;
        let identity = held.into_identity();
        identity.changed(Mode::Exclusive, Mode::Shared);
        let held = Held::noted(identity, Mode::Shared);
        RwLockReadGuard { _held: held, inner: sync::RwLockWriteGuard::downgrade(inner) }
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Implements what both guards have.
macro_rules! guard {
    ($guard:ident) => {
        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.inner
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}

guard!(RwLockReadGuard);
guard!(RwLockWriteGuard);

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
