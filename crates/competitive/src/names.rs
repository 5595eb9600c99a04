//! Names that code written for `parking_lot` uses, for what this crate calls otherwise.

use crate::mutex::{Mutex, RawPolicyMutex};
use crate::policy::Adaptive;
use crate::rw_lock::RwLock;

#[cfg(feature = "arc_lock")]
pub use lock_api::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};

/// The raw lock of a [`Mutex`].
pub type RawMutex = RawPolicyMutex<Adaptive>;

/// Creates a free [`Mutex`].
///
/// It is [`Mutex::new`], under the name that `parking_lot` has for it.
///
/// ```
/// use stanchion_competitive::{Mutex, RwLock, const_mutex, const_rwlock};
/// static COUNT: Mutex<u32> = const_mutex(1);
/// static NAMES: RwLock<Vec<&str>> = const_rwlock(Vec::new());
/// assert_eq!(*COUNT.lock() as usize, NAMES.read().len() + 1);
/// ```
#[must_use]
pub const fn const_mutex<T>(value: T) -> Mutex<T> {
    Mutex::new(value)
}

/// Creates a free [`RwLock`].
///
/// It is [`RwLock::new`], under the name that `parking_lot` has for it.
#[must_use]
pub const fn const_rwlock<T>(value: T) -> RwLock<T> {
    RwLock::new(value)
}
