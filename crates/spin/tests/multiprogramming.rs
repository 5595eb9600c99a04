//! Tests of locks with threads that the pseudo-scheduler stops at any point.
//!
//! The locks exclude, every thread ends, and no request is left open. The study measures how much
//! time is lost.
#![cfg(all(target_os = "linux", not(miri)))]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use lock_api::{Mutex, RawMutex};
use stanchion_machine::wait::Spin;
use stanchion_machine::{preemption, presence};
use stanchion_multiprogramming::Multiprogramming;
use stanchion_spin::contention::Polling;
use stanchion_spin::{Mcs, PreemptionSafe, Recovering, TestAndSet};

/// Lets two threads lock until each has been stopped three times. Returns how often a thread was
/// granted more time.
fn stopped_everywhere<R: RawMutex + Send + Sync>() -> u64 {
    let scheduler =
        Multiprogramming::level(2).quantum(Duration::from_millis(2)).start().expect("Linux");
    let mutex = Mutex::<R, _>::new((0, 0));
    let (sections, graces) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let member = scheduler.join().unwrap();
                let _seen = presence::register();
                let mut mine = 0;
                while member.account().stops < 3 {
                    let mut pair = mutex.lock();
                    pair.0 += 1;
                    assert_eq!(pair.0, pair.1 + 1, "two threads were inside at once");
                    pair.1 += 1;
                    drop(pair);
                    mine += 1;
                }
                assert_eq!(preemption::requests(), 0);
                sections.fetch_add(mine, Relaxed);
                graces.fetch_add(member.account().graces, Relaxed);
            });
        }
    });
    assert_eq!(*mutex.lock(), (sections.load(Relaxed), sections.load(Relaxed)));
    graces.load(Relaxed)
}

#[test]
fn a_lock_that_does_not_ask_is_not_let_stay() {
    assert_eq!(stopped_everywhere::<TestAndSet<Polling, Spin>>(), 0);
    assert_eq!(stopped_everywhere::<Mcs>(), 0);
    assert_eq!(stopped_everywhere::<Recovering>(), 0);
}

#[test]
fn a_lock_that_asks_is_let_stay_now_and_then() {
    // The threads are inside the lock most of the time. It is unlikely, but possible, that none of
    // many stops meets a critical section.
    let met = (0..50).any(|_| stopped_everywhere::<PreemptionSafe<Polling, Spin>>() > 0);
    assert!(met, "no holder was ever granted more time");
}
