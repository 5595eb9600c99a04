#![doc = include_str!("../README.md")]

mod condvar;
mod event_count;
mod lot;
mod mutex;
mod once;
mod owner;
mod rw_lock;
mod semaphore;
mod sleepers;

pub mod cost;
#[doc(hidden)]
pub mod list;
pub mod policy;
pub mod waits;

pub use lock_api;

pub use condvar::{Condvar, RawCondvar, WaitTimeoutResult};
pub use event_count::{EventCount, Key};
pub use lot::after_fork;
pub use mutex::{
    MappedMutexGuard, MappedPolicyMutexGuard, Mutex, MutexGuard, PolicyMutex, PolicyMutexGuard,
    RawPolicyMutex,
};
pub use once::{Once, OnceLock};
pub use policy::Policy;
pub use rw_lock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, PolicyRwLock, RawRwLock, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use semaphore::{Permits, Semaphore};
