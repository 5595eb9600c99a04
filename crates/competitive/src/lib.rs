#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bucket;
mod condvar;
mod event_count;
mod fair_mutex;
mod fork_lock;
mod lazy_lock;
#[cfg(feature = "lock_api_04")]
mod lock_api_04;
mod mutex;
mod names;
mod once;
mod once_lock;
mod owner;
mod parking;
mod queues;
mod readers;
mod reentrant_mutex;
mod rw_lock;
mod semaphore;
mod sleepers;
mod turns;

pub mod cost;
#[doc(hidden)]
pub mod list;
pub mod policy;
pub mod waits;

pub use lock_api;

pub use condvar::{Condvar, RawCondvar, WaitTimeoutResult};
pub use event_count::{EventCount, Key};
pub use fair_mutex::{
    FairMutex, FairMutexGuard, MappedFairMutexGuard, PolicyFairMutex, PolicyFairMutexGuard,
    RawFairMutex, const_fair_mutex,
};
pub use lazy_lock::LazyLock;
pub use mutex::{
    MappedMutexGuard, MappedPolicyMutexGuard, Mutex, MutexGuard, PolicyMutex, PolicyMutexGuard,
    RawPolicyMutex,
};
#[cfg(feature = "arc_lock")]
pub use names::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard,
};
pub use names::{RawMutex, const_mutex, const_rwlock};
pub use once::{Once, OnceState};
pub use once_lock::OnceLock;
pub use policy::Policy;
pub use reentrant_mutex::{
    MappedReentrantMutexGuard, RawThreadId, ReentrantMutex, ReentrantMutexGuard,
    const_reentrant_mutex,
};
pub use rw_lock::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, PolicyRwLock, RawRwLock, ReadRecursive, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use semaphore::{Closed, OwnedPermits, Permits, Semaphore};
