//! The locks in code written for `lock_api` 0.4.
#![cfg(feature = "lock_api_04")]

use std::time::{Duration, Instant};

use lock_api_04::{
    Mutex, MutexGuard, RawMutexFair, RawMutexTimed, RawRwLockUpgradeTimed, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
use stanchion_competitive::policy::{AlwaysBlock, FixedSpin};
use stanchion_competitive::{RawFairMutex, RawPolicyMutex, RawRwLock};
use static_assertions::assert_not_impl_any;

mod common;
use common::within;

// The lock knows its holder. Version 0.4 has one marker for readers and writers.
assert_not_impl_any!(MutexGuard<'static, RawPolicyMutex, u32>: Send);
assert_not_impl_any!(RwLockWriteGuard<'static, RawRwLock, u32>: Send);
assert_not_impl_any!(RwLockReadGuard<'static, RawRwLock, u32>: Send);

fn mutex_works<R>()
where
    R: RawMutexFair + RawMutexTimed<Duration = Duration, Instant = Instant> + Send + Sync + 'static,
{
    within(Duration::from_secs(60), || {
        let mutex = Mutex::<R, _>::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        *mutex.lock() += 1;
                        let mut guard = mutex.lock();
                        *guard += 1;
                        MutexGuard::unlock_fair(guard);
                    }
                });
            }
        });
        let mut held = mutex.try_lock().expect("free");
        assert_eq!(*held, 600);
        assert!(mutex.is_locked() && mutex.try_lock().is_none());
        assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
        assert!(mutex.try_lock_until(Instant::now()).is_none());
        MutexGuard::bump(&mut held);
        drop(held);
        assert!(!mutex.is_locked());
    });
}

#[test]
fn mutexes_work() {
    mutex_works::<RawPolicyMutex>();
    mutex_works::<RawPolicyMutex<AlwaysBlock>>();
    mutex_works::<RawFairMutex>();
}

fn rw_lock_works<R>()
where
    R: RawRwLockUpgradeTimed<Duration = Duration, Instant = Instant>
        + lock_api_04::RawRwLockUpgradeFair
        + lock_api_04::RawRwLockUpgradeDowngrade
        + Send
        + Sync
        + 'static,
{
    within(Duration::from_secs(60), || {
        let lock = RwLock::<R, _>::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        *lock.write() += 1;
                        RwLockReadGuard::unlock_fair(lock.read());
                        RwLockWriteGuard::unlock_fair(lock.write());
                        let upgradable = lock.upgradable_read();
                        let before = *upgradable;
                        let mut write = RwLockUpgradableReadGuard::upgrade(upgradable);
                        assert_eq!(*write, before);
                        *write += 1;
                        let read = RwLockWriteGuard::downgrade(write);
                        assert_eq!(*read, before + 1);
                    }
                });
            }
        });
        assert_eq!(*lock.read(), 300);
        let write = lock.try_write().expect("free");
        assert!(lock.is_locked_exclusive() && lock.try_read().is_none());
        let short = Duration::from_millis(1);
        let refused = std::thread::scope(|scope| {
            let other =
                || lock.try_read_for(short).is_none() && lock.try_write_for(short).is_none();
            scope.spawn(other).join().unwrap()
        });
        assert!(refused);
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
        let reader = lock.try_read().expect("no writer");
        let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
            panic!("upgraded beside a reader")
        };
        let Err(upgradable) = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, short) else {
            panic!("upgraded beside a reader")
        };
        drop(reader);
        let Ok(write) = RwLockUpgradableReadGuard::try_upgrade(upgradable) else {
            panic!("refused without a reader")
        };
        let upgradable = RwLockWriteGuard::downgrade_to_upgradable(write);
        let read = RwLockUpgradableReadGuard::downgrade(upgradable);
        assert!(lock.is_locked() && !lock.is_locked_exclusive());
        drop(read);
        assert!(!lock.is_locked());
    });
}

#[test]
fn rw_locks_work() {
    rw_lock_works::<RawRwLock>();
    rw_lock_works::<RawRwLock<RawPolicyMutex<FixedSpin>>>();
}

#[test]
fn a_reader_reads_again_while_a_writer_waits() {
    within(Duration::from_secs(60), || {
        let lock = RwLock::<RawRwLock, _>::new(0);
        std::thread::scope(|scope| {
            let outer = lock.read();
            scope.spawn(|| *lock.write() += 1);
            while lock.try_read().is_some() {
                std::thread::yield_now();
            }
            // The writer waits for `outer`.
            assert_eq!(*lock.read_recursive(), *outer);
            assert!(lock.try_read_recursive().is_some());
        });
        assert_eq!(*lock.read(), 1);
    });
}

/// `unlocked` acquires the lock again when its closure has ended. If that panicked, the guard would
/// live on without the lock.
#[test]
fn a_lock_that_cannot_be_acquired_again_ends_the_process() {
    let end = stanchion_alone::end("a_lock_that_cannot_be_acquired_again_ends_the_process", || {
        let mutex = Mutex::<RawPolicyMutex, _>::new(1);
        let mut guard = mutex.lock();
        let mut kept = None;
        let unlocked = std::panic::AssertUnwindSafe(|| {
            MutexGuard::unlocked(&mut guard, || kept = Some(mutex.lock()));
        });
        // Panics with the old code, and leaves two guards.
        assert!(std::panic::catch_unwind(unlocked).is_err());
    });
    let Some(end) = end else { return };
    assert!(!end.status.success(), "the guard lives on: {}", end.err);
    end.saying("may still be used");
}
