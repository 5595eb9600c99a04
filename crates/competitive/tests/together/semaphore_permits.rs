//! Semaphores that are closed, and permits that are owned, split, merged and taken away.

use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use stanchion_competitive::policy::{Adaptive, AlwaysBlock, AlwaysSpin};
use stanchion_competitive::{Closed, OwnedPermits, Permits, Policy, RawPolicyMutex, Semaphore};
use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::common::within;

assert_impl_all!(Semaphore: UnwindSafe, RefUnwindSafe);
assert_impl_all!(OwnedPermits: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Permits<'static>: UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(OwnedPermits: Clone);
assert_impl_all!(Closed: std::error::Error, Send, Sync, Copy);

/// Threads that wait for different numbers of permits, the first in line and those behind it.
fn closing_ends_all_waits<P: Policy + 'static>() {
    within(Duration::from_secs(60), || {
        for round in 0..100 {
            let gate = RawPolicyMutex::<P>::with_policy(P::INIT);
            let semaphore = Arc::new(Semaphore::with_gate(gate, 1));
            std::thread::scope(|scope| {
                let waits = |wanted| {
                    let semaphore = semaphore.clone();
                    scope.spawn(move || match wanted % 3 {
                        0 => semaphore.acquire_many_unless_closed(wanted).is_err(),
                        1 => semaphore.try_acquire_many_for(wanted, Duration::MAX).is_none(),
                        _ => semaphore.clone().acquire_many_owned_unless_closed(wanted).is_err(),
                    })
                };
                let waiters = [2, 3, 4, 5].map(waits);
                if round % 2 == 0 {
                    std::thread::yield_now();
                }
                semaphore.close();
                assert!(waiters.into_iter().all(|waiter| waiter.join().unwrap()));
            });
            // The one permit that there is was not kept, and no thread gets it.
            assert_eq!(semaphore.available_permits(), 1);
            assert!(semaphore.is_closed());
        }
    });
}

#[test]
fn closing_ends_all_waits_whatever_the_policy() {
    closing_ends_all_waits::<Adaptive>();
    closing_ends_all_waits::<AlwaysBlock>();
    closing_ends_all_waits::<AlwaysSpin>();
}

#[test]
fn a_closed_semaphore_gives_nothing_and_takes_everything_back() {
    let semaphore = Arc::new(Semaphore::new(3));
    assert!(!semaphore.is_closed());
    let (one, owned) = (semaphore.acquire(), semaphore.clone().acquire_owned());
    semaphore.close();
    semaphore.close();
    assert_eq!(semaphore.acquire_unless_closed().unwrap_err(), Closed);
    assert_eq!(semaphore.acquire_many_unless_closed(0).unwrap_err(), Closed);
    assert!(semaphore.clone().acquire_many_owned_unless_closed(1).is_err());
    assert!(semaphore.try_acquire().is_none() && semaphore.try_acquire_many(0).is_none());
    assert!(semaphore.clone().try_acquire_owned().is_none());
    assert!(semaphore.try_acquire_for(Duration::MAX).is_none());
    for wants in
        [&|| drop(semaphore.acquire()) as _, &|| drop(semaphore.clone().acquire_owned()) as _]
            as [&dyn Fn(); 2]
    {
        let panic = catch_unwind(AssertUnwindSafe(wants)).unwrap_err();
        let message = panic.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("closed"), "{message}");
    }
    drop((one, owned));
    semaphore.add_permits(1);
    assert_eq!(semaphore.available_permits(), 4);
    assert_eq!(semaphore.forget_permits(4), 4);
}

#[test]
fn owned_permits_keep_the_semaphore_alive() {
    within(Duration::from_secs(60), || {
        let semaphore = Arc::new(Semaphore::new(2));
        let inside = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..6)
            .map(|_| {
                let permit = semaphore.clone().acquire_owned();
                let inside = inside.clone();
                std::thread::spawn(move || {
                    assert!(inside.fetch_add(1, Relaxed) < 2);
                    std::thread::yield_now();
                    inside.fetch_sub(1, Relaxed);
                    drop(permit);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((Arc::strong_count(&semaphore), semaphore.available_permits()), (1, 2));

        let last = semaphore.clone().try_acquire_many_owned(2).expect("all are there");
        assert!(Arc::ptr_eq(last.semaphore(), &semaphore));
        assert!(semaphore.clone().try_acquire_owned().is_none());
        assert!(semaphore.clone().try_acquire_many_owned(u32::MAX).is_none());
        last.forget();
        assert_eq!((Arc::strong_count(&semaphore), semaphore.available_permits()), (1, 0));
        let panics = AssertUnwindSafe(|| {
            semaphore.add_permits(2);
            let _permits = semaphore.clone().acquire_many_owned(2);
            panic!("while it has them");
        });
        assert!(catch_unwind(panics).is_err());
        assert_eq!((Arc::strong_count(&semaphore), semaphore.available_permits()), (1, 2));
    });
}

#[test]
fn permits_are_split_and_merged() {
    let (semaphore, stranger) = (Arc::new(Semaphore::new(6)), Semaphore::new(2));
    let mut permits = semaphore.acquire_many(4);
    let two = permits.split(2).expect("there are four");
    assert!(permits.split(3).is_none());
    assert_eq!((permits.count(), two.count(), semaphore.available_permits()), (2, 2, 2));
    assert_eq!(permits.split(0).expect("nothing is always there").count(), 0);
    permits.merge(two);
    assert_eq!(permits.count(), 4);
    assert!(std::ptr::eq(permits.semaphore(), &*semaphore));
    let other = stranger.acquire();
    let merges = AssertUnwindSafe(|| permits.merge(other));
    assert!(catch_unwind(merges).is_err());
    assert_eq!((permits.count(), stranger.available_permits()), (4, 2));
    drop(permits);
    assert_eq!(semaphore.available_permits(), 6);

    let mut owned = semaphore.clone().acquire_many_owned(5);
    let part = owned.split(3).expect("there are five");
    assert!(owned.split(3).is_none());
    owned.merge(part);
    assert_eq!((owned.count(), Arc::strong_count(&semaphore)), (5, 2));
    assert_eq!(format!("{owned:?}"), "OwnedPermits { count: 5, .. }");
    drop(owned);
    assert_eq!(semaphore.available_permits(), 6);

    // More than can be counted, of a semaphore that was given permits which were never taken back.
    const MOST: u32 = Semaphore::<RawPolicyMutex>::MAX_PERMITS;
    let full = Semaphore::new(MOST);
    let mut all = full.acquire_many(MOST);
    full.add_permits(1);
    let one = full.acquire();
    assert!(catch_unwind(AssertUnwindSafe(|| all.merge(one))).is_err());
    assert_eq!((all.count(), full.available_permits()), (MOST, 1));
    all.forget();
}

#[test]
fn permits_that_no_thread_has_are_taken_away() {
    within(Duration::from_secs(60), || {
        let semaphore = Semaphore::new(5);
        let two = semaphore.acquire_many(2);
        assert_eq!(semaphore.forget_permits(1), 1);
        assert_eq!(semaphore.forget_permits(u32::MAX), 2);
        assert_eq!(semaphore.forget_permits(1), 0);
        std::thread::scope(|scope| {
            // The first in line loses a permit that it has not got yet, and gets it later.
            let waiter = scope.spawn(|| semaphore.acquire_many(3).count());
            semaphore.add_permits(2);
            let taken = semaphore.forget_permits(2);
            semaphore.add_permits(1 + taken);
            assert_eq!(waiter.join().unwrap(), 3);
        });
        drop(two);
        assert_eq!(semaphore.available_permits(), 5);
    });
}
