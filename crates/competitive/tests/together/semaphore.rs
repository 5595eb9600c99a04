//! The semaphore with real threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use stanchion_competitive::policy::{AlwaysBlock, AlwaysSpin};
use stanchion_competitive::{Permits, Policy, RawPolicyMutex, Semaphore};
use static_assertions::{assert_impl_all, assert_not_impl_any, const_assert};

use crate::common::within;

assert_impl_all!(Semaphore: Send, Sync);
assert_impl_all!(Permits<'static>: Send, Sync);
assert_not_impl_any!(Semaphore: Copy, Clone);
const_assert!(size_of::<Semaphore>() <= 24);

/// Never more inside than there are permits, whatever each takes.
fn never_too_many<P: Policy + 'static>() {
    within(Duration::from_secs(60), || {
        const PERMITS: u32 = 3;
        let semaphore = Semaphore::with_gate(RawPolicyMutex::<P>::with_policy(P::INIT), PERMITS);
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for thread in 0..5_u32 {
                let (semaphore, inside) = (&semaphore, &inside);
                scope.spawn(move || {
                    for round in 0..1_500_u32 {
                        let wanted = (round + thread) % (PERMITS + 1);
                        let permits = if thread == 0 {
                            let timeout = Duration::from_micros(u64::from(round % 30));
                            semaphore.try_acquire_many_for(wanted, timeout)
                        } else {
                            Some(semaphore.acquire_many(wanted))
                        };
                        if let Some(permits) = permits {
                            let before = inside.fetch_add(permits.count(), Relaxed);
                            assert!(before + permits.count() <= PERMITS);
                            std::hint::spin_loop();
                            inside.fetch_sub(permits.count(), Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(semaphore.available_permits(), PERMITS);
    });
}

#[test]
fn never_too_many_by_default() {
    never_too_many::<stanchion_competitive::policy::Adaptive>();
}

#[test]
fn never_too_many_when_waiters_block() {
    never_too_many::<AlwaysBlock>();
}

#[test]
fn never_too_many_when_waiters_spin() {
    never_too_many::<AlwaysSpin>();
}

/// Each permit is a message: as many are taken as were sent.
#[test]
fn messages_arrive() {
    within(Duration::from_secs(60), || {
        const EACH: u32 = 3_000;
        let sent = Semaphore::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..EACH).for_each(|_| sent.add_permits(1)));
                scope.spawn(|| (0..EACH).for_each(|_| sent.acquire().forget()));
            }
        });
        assert_eq!(sent.available_permits(), 0);
    });
}

/// A thread that wants both permits gets them, though another thread takes one before it gives the
/// other back, for as long as it can.
#[test]
fn a_thread_that_wants_many_does_not_starve() {
    within(Duration::from_secs(60), || {
        let (semaphore, stop) = (Semaphore::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut held = Some(semaphore.acquire());
                while !stop.load(Relaxed) {
                    match semaphore.try_acquire() {
                        Some(next) => held = Some(next),
                        None => {
                            drop(held.take());
                            held = Some(semaphore.acquire());
                        }
                    }
                }
            });
            for _ in 0..5 {
                assert_eq!(semaphore.acquire_many(2).count(), 2);
            }
            stop.store(true, Relaxed);
        });
        assert_eq!(semaphore.available_permits(), 2);
    });
}

/// A thread that gives its permit back takes it again, although another one waits for it: that one
/// has not waited for long.
#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_permit_does_not_wait_for_a_sleeper() {
    within(Duration::from_secs(60), || {
        let (semaphore, waiters) = (Semaphore::new(1), stanchion_alone::Sleepers::new());
        let (had, mut rounds, mut overtaken) = (AtomicU32::new(0), 0, 0);
        // The sleeper may be quicker, and a busy machine may let 10 ms pass.
        while overtaken < 3 {
            rounds += 1;
            let held = semaphore.acquire();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    waiters.arrive();
                    let _permit = semaphore.acquire();
                    had.fetch_add(1, Relaxed);
                });
                waiters.until_asleep(rounds as usize);
                drop(held);
                let again = semaphore.try_acquire();
                overtaken += u32::from(again.is_some() && had.load(Relaxed) < rounds);
            });
        }
    });
}

#[test]
fn deadlines_pass_and_leave_nothing_behind() {
    let semaphore = Semaphore::new(1);
    for timeout in [Duration::ZERO, Duration::from_millis(2)] {
        let start = Instant::now();
        assert!(semaphore.try_acquire_many_for(2, timeout).is_none());
        assert!(start.elapsed() >= timeout);
        // The one there is was not kept.
        assert_eq!(semaphore.try_acquire().expect("it is free").count(), 1);
    }
    assert!(semaphore.try_acquire_many_until(2, Instant::now()).is_none());
    assert!(semaphore.try_acquire_until(Instant::now()).is_some());
    assert!(semaphore.try_acquire_for(Duration::MAX).is_some());
    std::thread::scope(|scope| {
        scope.spawn(|| drop(semaphore.try_acquire_many_for(2, Duration::MAX).expect("in time")));
        std::thread::sleep(Duration::from_millis(5));
        semaphore.add_permits(1);
    });
    assert_eq!(semaphore.available_permits(), 2);
}

#[test]
fn the_ends_of_counting() {
    const MOST: u32 = Semaphore::<RawPolicyMutex>::MAX_PERMITS;
    let semaphore = Semaphore::new(MOST);
    let all = semaphore.acquire_many(MOST);
    assert!(semaphore.try_acquire().is_none());
    assert!(semaphore.try_acquire_many(0).is_some(), "nothing is always there");
    drop(all);
    assert!(semaphore.try_acquire_many(MOST + 1).is_none());
    assert!(semaphore.try_acquire_many(u32::MAX).is_none());
    let refusals: [(&dyn Fn(), &str); 4] = [
        (&|| semaphore.add_permits(1), "more were added than taken"),
        (&|| semaphore.add_permits(u32::MAX), "more were added than taken"),
        (&|| drop(semaphore.acquire_many(MOST + 1)), "it would wait for ever"),
        (&|| _ = semaphore.try_acquire_many_for(u32::MAX, Duration::ZERO), "for ever"),
    ];
    for (refused, why) in refusals {
        let panic = catch_unwind(AssertUnwindSafe(refused)).unwrap_err();
        let message = panic.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains(why), "{message}");
        assert_eq!(semaphore.available_permits(), MOST);
    }
    assert!(catch_unwind(|| Semaphore::new(MOST + 1)).is_err());
}

#[test]
fn a_panic_gives_permits_back_and_a_thread_may_too() {
    let semaphore = Semaphore::new(2);
    let panics = AssertUnwindSafe(|| {
        let _permits = semaphore.acquire_many(2);
        panic!("while it has them");
    });
    assert!(catch_unwind(panics).is_err());
    let permit = semaphore.acquire();
    std::thread::scope(|scope| {
        scope.spawn(move || drop(permit));
    });
    assert_eq!(semaphore.available_permits(), 2);
}
