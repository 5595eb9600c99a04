//! Tests of traits that all types of the crate have, and of the names that users of `parking_lot`
//! write.

use std::panic::{RefUnwindSafe, UnwindSafe};

use stanchion_competitive as parking_lot;
use stanchion_competitive::policy::{Adaptive, HolderAware};
use stanchion_competitive::waits::Recorder;
use stanchion_competitive::{
    Condvar, EventCount, LazyLock, Mutex, Once, OnceLock, OnceState, RawCondvar, RawFairMutex,
    RawPolicyMutex, RawRwLock, RawThreadId, ReentrantMutex, RwLock, Semaphore, WaitTimeoutResult,
};
use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert};

macro_rules! assert_shared_and_unwind_safe {
    ($($type:ty),+ $(,)?) => {
        $(assert_impl_all!($type: Send, Sync, UnwindSafe, RefUnwindSafe);)+
    };
}

assert_shared_and_unwind_safe!(
    RawPolicyMutex,
    RawPolicyMutex<HolderAware>,
    RawFairMutex,
    RawRwLock,
    RawCondvar,
    Condvar,
    Once,
    OnceState,
    OnceLock<u32>,
    LazyLock<u32>,
    Semaphore,
    EventCount,
    RawThreadId,
    WaitTimeoutResult,
);

// These are types of `lock_api`, which do not implement it, with `parking_lot` neither.
assert_not_impl_any!(Mutex<u32>: RefUnwindSafe);
assert_not_impl_any!(RwLock<u32>: RefUnwindSafe);

macro_rules! assert_default {
    ($($type:ty),+ $(,)?) => { $(assert_impl_all!($type: Default);)+ };
}

/// Asserts it of each policy of the table.
macro_rules! assert_policies_default {
    ([] $({ $test:ident: $policy:ty, $($rest:tt)* })+) => { assert_default!($($policy),+); };
}

stanchion_competitive::__policies!(assert_policies_default);

assert_default!(
    Recorder<Adaptive>,
    RawPolicyMutex,
    RawFairMutex,
    RawRwLock,
    RawCondvar,
    Condvar,
    Once,
    OnceLock<u32>,
    LazyLock<u32>,
    EventCount,
    Mutex<u32>,
    RwLock<u32>,
    ReentrantMutex<u32>,
);

// The sizes that the guide's page of this crate compares.
const_assert!(size_of::<Mutex<()>>() == 16);
const_assert!(size_of::<RwLock<()>>() == 28);

/// Code as users of `parking_lot` write it. That it compiles is the test.
mod written_for_parking_lot {
    use super::parking_lot::lock_api::{self, GetThreadId, RawMutex as _};
    use super::parking_lot::{
        Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, MappedMutexGuard,
        MappedReentrantMutexGuard, MappedRwLockReadGuard, MappedRwLockWriteGuard, Mutex,
        MutexGuard, Once, OnceState, RawFairMutex, RawMutex, RawRwLock, RawThreadId,
        ReentrantMutex, ReentrantMutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
        RwLockWriteGuard, WaitTimeoutResult, const_fair_mutex, const_mutex, const_reentrant_mutex,
        const_rwlock,
    };

    static MUTEX: Mutex<u32> = const_mutex(1);
    static FAIR: FairMutex<u32> = const_fair_mutex(1);
    static REENTRANT: ReentrantMutex<u32> = const_reentrant_mutex(1);
    static LOCK: RwLock<u32> = const_rwlock(1);
    static RAW: lock_api::Mutex<RawMutex, u32> = lock_api::Mutex::from_raw(RawMutex::INIT, 1);
    static RAW_LOCK: lock_api::RwLock<RawRwLock, u32> = lock_api::RwLock::new(1);
    static ONCE: Once = Once::new();
    static CHANGED: Condvar = Condvar::new();

    #[test]
    fn names_and_guards_are_those_of_parking_lot() {
        let guard: MutexGuard<'_, u32> = MUTEX.lock();
        let mapped: MappedMutexGuard<'_, u32> = MutexGuard::map(guard, |value| value);
        let fair: FairMutexGuard<'_, u32> = FAIR.lock();
        let fair: MappedFairMutexGuard<'_, u32> = FairMutexGuard::map(fair, |value| value);
        let again: ReentrantMutexGuard<'_, u32> = REENTRANT.lock();
        let again: MappedReentrantMutexGuard<'_, u32> =
            ReentrantMutexGuard::map(again, |value| value);
        let reader: RwLockReadGuard<'_, u32> = LOCK.read();
        let reader: MappedRwLockReadGuard<'_, u32> = RwLockReadGuard::map(reader, |value| value);
        assert_eq!((*mapped, *fair, *again, *reader), (1, 1, 1, 1));
        drop(reader);
        let upgradable: RwLockUpgradableReadGuard<'_, u32> = LOCK.upgradable_read();
        let writer: RwLockWriteGuard<'_, u32> = RwLockUpgradableReadGuard::upgrade(upgradable);
        let writer: MappedRwLockWriteGuard<'_, u32> = RwLockWriteGuard::map(writer, |value| value);
        assert_eq!((*writer, *RAW.lock(), *RAW_LOCK.read()), (1, 1, 1));
        let fair = lock_api::Mutex::<RawFairMutex, u32>::new(1);
        let soon = std::time::Duration::from_millis(1);
        let result: WaitTimeoutResult = CHANGED.wait_for(&mut fair.lock(), soon);
        assert!(result.timed_out());
        ONCE.call_once_force(|state: OnceState| assert!(!state.poisoned()));
        assert!(ONCE.state().done());
        assert_eq!(RawThreadId.nonzero_thread_id(), RawThreadId::INIT.nonzero_thread_id());
    }
}
