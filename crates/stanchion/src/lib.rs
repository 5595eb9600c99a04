#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

// Inlined, because rustdoc shows the line of a re-export only then.

/// User-level threads that learn when the kernel blocks or takes their processor.
#[cfg(feature = "activations")]
#[doc(inline)]
pub use stanchion_activations as activations;
/// Locks with waiters that spin, then sleep, by a policy; recorded waits.
#[cfg(feature = "competitive")]
#[doc(inline)]
pub use stanchion_competitive as competitive;
/// Formulas of waiting, scanning and queueing, as pure functions.
#[cfg(feature = "formulas")]
#[doc(inline)]
pub use stanchion_formulas as formulas;
/// Barriers, and gangs of threads that run together.
#[cfg(feature = "gang")]
#[doc(inline)]
pub use stanchion_gang as gang;
/// Histories of threads on a structure, checked against a sequential model: for tests.
#[cfg(feature = "linearizability")]
#[doc(inline)]
pub use stanchion_linearizability as linearizability;
/// Stacks, queues, heaps, counters and channels, without locks and with any.
#[cfg(feature = "lockfree")]
#[doc(inline)]
pub use stanchion_lockfree as lockfree;
/// Atomics, cells, waiting, parking, clocks, topology and presence; real, under loom, simulated.
#[doc(inline)]
pub use stanchion_machine as machine;
/// A multiprocessor in virtual time: caches, bus or directory, and scheduler.
#[cfg(feature = "simulator")]
#[doc(inline)]
pub use stanchion_simulator as simulator;
/// Spin locks, and backoff.
#[cfg(feature = "spin")]
#[doc(inline)]
pub use stanchion_spin as spin;
/// A pool for fork-join and small tasks, and six ways to manage its ready work.
#[cfg(feature = "threadpool")]
#[doc(inline)]
pub use stanchion_threadpool as threadpool;

#[cfg(feature = "competitive")]
#[doc(inline)]
pub use stanchion_competitive::{
    Condvar, EventCount, FairMutex, FairMutexGuard, LazyLock, MappedFairMutexGuard,
    MappedMutexGuard, MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard,
    Mutex, MutexGuard, Once, OnceLock, OnceState, ReentrantMutex, ReentrantMutexGuard, RwLock,
    RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard, Semaphore, WaitTimeoutResult,
};
