//! The condition variable with real threads, over every policy.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use stanchion_competitive::{Condvar, Mutex, Policy, PolicyMutex, RawCondvar, lock_api};
use stanchion_spin::{Mcs, TestAndSetMutex};
use static_assertions::{assert_impl_all, const_assert};

use crate::common::within;

assert_impl_all!(Condvar: Send, Sync, Default);
// It holds nothing of what its mutex protects, not even of a mutex that stays with its thread.
assert_impl_all!(RawCondvar<*const ()>: Send, Sync);
const_assert!(cfg!(not(target_pointer_width = "64")) || size_of::<Condvar>() == 40);

/// A channel of one slot: every item passes two waits.
fn hand_over<P: Policy + 'static>() {
    within(Duration::from_secs(60), || {
        const ITEMS: usize = 2_000;
        let slot = PolicyMutex::<Option<usize>, P>::new(None);
        let (filled, emptied) = (Condvar::new(), Condvar::new());
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for item in 1..=ITEMS {
                        let mut slot = slot.lock();
                        emptied.wait_while(&mut slot, |slot| slot.is_some());
                        *slot = Some(item);
                        drop(slot);
                        filled.notify_one();
                    }
                });
                scope.spawn(|| {
                    for _ in 1..=ITEMS {
                        let mut slot = slot.lock();
                        filled.wait_while(&mut slot, |slot| slot.is_none());
                        sum.fetch_add(slot.take().expect("waited for"), Relaxed);
                        emptied.notify_one();
                    }
                });
            }
        });
        assert_eq!(sum.load(Relaxed), ITEMS * (ITEMS + 1));
        assert_eq!(filled.waiting() + emptied.waiting(), 0);
    });
}

macro_rules! over_policies {
    ([] $({ $test:ident: $policy:ty, $($rest:tt)* })+) => {$(
        #[test]
        fn $test() {
            hand_over::<$policy>();
        }
    )+};
}

stanchion_competitive::__policies!(over_policies);

/// Three, four and five threads wait, time out and are notified at once. A thread that returns that
/// it was notified was counted, and the other way round.
fn notifications_are_exact(waiters: usize) {
    within(Duration::from_secs(60), move || {
        const ROUNDS: usize = 400;
        let mutex = Mutex::new(0_usize);
        let changed = Condvar::new();
        let (running, notified) = (AtomicUsize::new(waiters), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for waiter in 0..waiters {
                let (mutex, changed, running, notified) = (&mutex, &changed, &running, &notified);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mut guard = mutex.lock();
                        let timeout = Duration::from_micros((round * 7 + waiter * 13) as u64 % 90);
                        if !changed.wait_for(&mut guard, timeout).timed_out() {
                            notified.fetch_add(1, Relaxed);
                        }
                        *guard += 1;
                    }
                    running.fetch_sub(1, Relaxed);
                });
            }
            let mut counted = 0;
            while running.load(Relaxed) > 0 {
                counted += usize::from(changed.notify_one());
                counted += changed.notify_all();
                std::thread::yield_now();
            }
            // All have come back, and so all are counted.
            assert_eq!(notified.load(Relaxed), counted);
        });
        assert_eq!(*mutex.lock(), waiters * ROUNDS);
        assert_eq!(changed.waiting(), 0);
    });
}

#[test]
fn three_waiters_are_counted_exactly() {
    notifications_are_exact(3);
}

#[test]
fn four_waiters_are_counted_exactly() {
    notifications_are_exact(4);
}

#[test]
fn five_waiters_are_counted_exactly() {
    notifications_are_exact(5);
}

#[test]
fn all_of_many_are_woken() {
    within(Duration::from_secs(60), || {
        const WAITERS: usize = 40;
        let (go, changed) = (Mutex::new(false), Condvar::new());
        std::thread::scope(|scope| {
            for _ in 0..WAITERS {
                scope.spawn(|| changed.wait_while(&mut go.lock(), |go| !*go));
            }
            while changed.waiting() < WAITERS {
                std::thread::yield_now();
            }
            // A counted thread holds the mutex until it is in the queue.
            *go.lock() = true;
            assert_eq!(changed.notify_all(), WAITERS);
            assert_eq!(changed.notify_all(), 0);
            assert!(!changed.notify_one());
        });
    });
}

#[test]
fn each_wait_takes_its_own_mutex_back() {
    within(Duration::from_secs(60), || {
        let (one, other) = (Mutex::new(false), Mutex::new(false));
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for mutex in [&one, &other] {
                let changed = &changed;
                scope.spawn(move || {
                    let mut guard = mutex.lock();
                    changed.wait_while(&mut guard, |ready| !*ready);
                    assert!(mutex.is_locked());
                });
            }
            while changed.waiting() < 2 {
                std::thread::yield_now();
            }
            *one.lock() = true;
            *other.lock() = true;
            assert_eq!(changed.notify_all(), 2);
        });
        assert!(!one.is_locked() && !other.is_locked());
    });
}

#[test]
fn it_works_with_spin_locks() {
    within(Duration::from_secs(60), || {
        let ready = TestAndSetMutex::new(false);
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            scope.spawn(|| changed.wait_while(&mut ready.lock(), |ready| !*ready));
            *ready.lock() = true;
            changed.notify_one();
        });
    });
    // A mutex with a guard that carries something gets a new one.
    let queued = lock_api::Mutex::<Mcs, u32>::new(1);
    let changed = Condvar::new();
    within(Duration::from_secs(60), move || {
        std::thread::scope(|scope| {
            scope.spawn(|| changed.wait_while(&mut queued.lock(), |value| *value == 1));
            *queued.lock() = 2;
            changed.notify_all();
        });
    });
}

#[test]
fn one_condition_variable_serves_mutexes_of_several_types() {
    within(Duration::from_secs(60), || {
        let (blocking, queued) = (Mutex::new(false), lock_api::Mutex::<Mcs, bool>::new(false));
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            scope.spawn(|| changed.wait_while(&mut blocking.lock(), |ready| !*ready));
            scope.spawn(|| changed.wait_while(&mut queued.lock(), |ready| !*ready));
            while changed.waiting() < 2 {
                std::thread::yield_now();
            }
            *blocking.lock() = true;
            *queued.lock() = true;
            assert_eq!(changed.notify_all(), 2);
        });
        // `Mcs` has no deadlines. A wait with one does not need them.
        let timeout = changed.wait_for(&mut queued.lock(), Duration::from_millis(1));
        assert!(timeout.timed_out());
    });
}

#[test]
fn the_raw_one_works_in_a_condvar_of_lock_api() {
    within(Duration::from_secs(60), || {
        let ready = TestAndSetMutex::<bool>::new(false);
        let changed: lock_api::Condvar<RawCondvar<_>> = lock_api::Condvar::new();
        assert!(changed.wait_for(&mut ready.lock(), Duration::ZERO).timed_out());
        std::thread::scope(|scope| {
            scope.spawn(|| changed.wait_while(&mut ready.lock(), |ready| !*ready));
            *ready.lock() = true;
            changed.notify_one();
        });
    });
}

#[test]
fn timeouts_of_every_length() {
    let (mutex, changed) = (Mutex::new(()), Condvar::new());
    for timeout in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(5)] {
        let start = Instant::now();
        assert!(changed.wait_for(&mut mutex.lock(), timeout).timed_out());
        assert!(start.elapsed() >= timeout);
    }
    let long_ago = Instant::now();
    assert!(changed.wait_until(&mut mutex.lock(), long_ago).timed_out());
    // The longest there is never ends, and does not panic.
    within(Duration::from_secs(60), || {
        let (ready, changed) = (Mutex::new(false), Condvar::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut ready = ready.lock();
                changed.wait_while_for(&mut ready, |ready| !*ready, Duration::MAX);
                assert!(*ready);
            });
            *ready.lock() = true;
            changed.notify_one();
        });
    });
}

#[test]
fn a_panic_of_the_condition_releases_the_mutex() {
    let (mutex, changed) = (Mutex::new(1), Condvar::new());
    let panics = std::panic::AssertUnwindSafe(|| {
        changed.wait_while(&mut mutex.lock(), |_| panic!("looking at the condition"));
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    assert_eq!(*mutex.lock(), 1);
    assert_eq!(changed.waiting(), 0);
}
