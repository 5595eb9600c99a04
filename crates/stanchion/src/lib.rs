#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "activations")]
pub use stanchion_activations as activations;
#[cfg(feature = "competitive")]
pub use stanchion_competitive as competitive;
#[cfg(feature = "formulas")]
pub use stanchion_formulas as formulas;
#[cfg(feature = "gang")]
pub use stanchion_gang as gang;
#[cfg(feature = "linearizability")]
pub use stanchion_linearizability as linearizability;
#[cfg(feature = "lockfree")]
pub use stanchion_lockfree as lockfree;
pub use stanchion_machine as machine;
#[cfg(feature = "simulator")]
pub use stanchion_simulator as simulator;
#[cfg(feature = "spin")]
pub use stanchion_spin as spin;
#[cfg(feature = "threadpool")]
pub use stanchion_threadpool as threadpool;

#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{
    Condvar, EventCount, FairMutex, FairMutexGuard, LazyLock, MappedFairMutexGuard,
    MappedMutexGuard, MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard,
    Mutex, MutexGuard, Once, OnceLock, OnceState, ReentrantMutex, ReentrantMutexGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore, WaitTimeoutResult,
};
