//! The fair mutex with real threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use stanchion_alone::Sleepers;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock, AlwaysSpin, Policy};
use stanchion_competitive::{
    Condvar, FairMutex, FairMutexGuard, MappedFairMutexGuard, RawFairMutex, const_fair_mutex,
    lock_api,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::common::within;

assert_impl_all!(FairMutex<u32>: Send, Sync, Default);
assert_impl_all!(RawFairMutex: Send, Sync, Default, std::panic::RefUnwindSafe);
assert_impl_all!(FairMutex<std::cell::Cell<u32>>: Send, Sync);
assert_not_impl_any!(FairMutex<std::rc::Rc<u32>>: Send, Sync);
assert_impl_all!(FairMutexGuard<'static, u32>: Sync);
// The lock knows its holder.
assert_not_impl_any!(FairMutexGuard<'static, u32>: Send);
assert_not_impl_any!(MappedFairMutexGuard<'static, u32>: Send);

type PolicyFairMutex<T, P> = lock_api::Mutex<RawFairMutex<P>, T>;

fn excludes<P: Policy + 'static>() {
    within(Duration::from_secs(60), || {
        let mutex = PolicyFairMutex::<usize, P>::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| *mutex.lock() += 1));
            }
        });
        assert_eq!(mutex.into_inner(), 2_000);
    });
}

#[test]
fn one_thread_at_a_time_holds_it() {
    excludes::<Adaptive>();
    excludes::<AlwaysBlock>();
    excludes::<AlwaysSpin>();
}

#[cfg(target_os = "linux")]
#[test]
fn a_sleeper_is_not_overtaken() {
    within(Duration::from_secs(60), || {
        const ROUNDS: usize = 30;
        static MUTEX: PolicyFairMutex<(), AlwaysBlock> = PolicyFairMutex::new(());
        static WAITERS: Sleepers = Sleepers::new();
        static WANTED: AtomicUsize = AtomicUsize::new(0);
        static GOT: AtomicUsize = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    while WANTED.load(Relaxed) < round {
                        std::hint::spin_loop();
                    }
                    WAITERS.arrive();
                    let _guard = MUTEX.lock();
                    GOT.store(round, Relaxed);
                }
            });
            for round in 1..=ROUNDS {
                let guard = MUTEX.lock();
                WANTED.store(round, Relaxed);
                WAITERS.until_asleep(round);
                drop(guard);
                // Either the sleeper holds it still, or it has had it.
                let free = MUTEX.try_lock();
                assert!(free.is_none() || GOT.load(Relaxed) == round, "overtaken");
                drop(free);
                while GOT.load(Relaxed) < round {
                    std::thread::yield_now();
                }
            }
        });
    });
}

#[test]
fn a_panic_releases_it_and_a_forgotten_guard_does_not() {
    let mutex = const_fair_mutex(1);
    let panics = AssertUnwindSafe(|| {
        let _guard = mutex.lock();
        panic!("in the section");
    });
    assert!(catch_unwind(panics).is_err());
    assert_eq!(*mutex.lock(), 1);
    std::mem::forget(mutex.lock());
    assert!(mutex.is_locked() && mutex.try_lock().is_none());
    assert!(mutex.try_lock_for(Duration::from_millis(1)).is_none());
    // SAFETY: this thread holds it, and its guard was forgotten.
    unsafe { mutex.force_unlock(lock_api::GuardNoSend::new()) };
    assert!(!mutex.is_locked());
}

#[test]
fn guards_can_be_mapped_bumped_and_waited_with() {
    within(Duration::from_secs(60), || {
        let (mutex, changed) = (FairMutex::new((1, "one")), Condvar::new());
        {
            let mut guard = mutex.lock();
            FairMutexGuard::bump(&mut guard);
            FairMutexGuard::unlock_fair(guard);
        }
        assert_eq!(*FairMutexGuard::map(mutex.lock(), |pair| &mut pair.1), "one");
        std::thread::scope(|scope| {
            scope.spawn(|| changed.wait_while(&mut mutex.lock(), |pair| pair.0 == 1));
            mutex.lock().0 = 2;
            changed.notify_one();
        });
        assert!(format!("{:?}", mutex).contains("(2, \"one\")"));
    });
}
