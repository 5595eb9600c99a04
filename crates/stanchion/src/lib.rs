#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

/// User-level threads that learn when the kernel blocks or takes their processor.
#[cfg(feature = "activations")]
pub use stanchion_activations as activations;
/// Locks with waiters that spin, then sleep, by a policy; recorded waits.
#[cfg(feature = "competitive")]
pub use stanchion_competitive as competitive;
/// Formulas of waiting, scanning and queueing, as pure functions.
#[cfg(feature = "formulas")]
pub use stanchion_formulas as formulas;
/// Barriers, and gangs of threads that run together.
#[cfg(feature = "gang")]
pub use stanchion_gang as gang;
/// Histories of threads on a structure, checked against a sequential model: for tests.
#[cfg(feature = "linearizability")]
pub use stanchion_linearizability as linearizability;
/// Stacks, queues, heaps, counters and channels, without locks and with any.
#[cfg(feature = "lockfree")]
pub use stanchion_lockfree as lockfree;
/// Atomics, cells, waiting, parking, clocks, topology and presence; real, under loom, simulated.
pub use stanchion_machine as machine;
/// A multiprocessor in virtual time: caches, bus or directory, and scheduler.
#[cfg(feature = "simulator")]
pub use stanchion_simulator as simulator;
/// Spin locks, and backoff.
#[cfg(feature = "spin")]
pub use stanchion_spin as spin;
/// A pool for fork-join and small tasks, and six ways to manage its ready work.
#[cfg(feature = "threadpool")]
pub use stanchion_threadpool as threadpool;

/// The mutex to use if you do not know which to use, and its guards.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{MappedMutexGuard, Mutex, MutexGuard};

/// A mutex that hands itself to the thread that has slept longest, and its guards.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{FairMutex, FairMutexGuard, MappedFairMutexGuard};

/// A mutex that its holder may lock again, and its guards.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{MappedReentrantMutexGuard, ReentrantMutex, ReentrantMutexGuard};

/// A lock for many readers or one writer, and its guards.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{
    MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};

/// A condition variable for the guards of any `lock_api` mutex, and the result of its timed waits.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{Condvar, WaitTimeoutResult};

/// Code that runs once, and values that are made once.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::{LazyLock, Once, OnceLock, OnceState};

/// A count of permits, for which threads sleep.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::Semaphore;

/// A place to sleep until one of several sources may have something.
#[cfg(feature = "competitive")]
#[doc(no_inline)]
pub use stanchion_competitive::EventCount;
