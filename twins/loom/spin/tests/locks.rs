//! Models of every lock: the same questions, asked of each.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `two_threads` | 2, one locking twice (once: the recovering lock) | none |
//! | `two_threads_twice_bounded` | 2, each locking twice | 3 preemptions |
//! | `three_threads_bounded` | 3 | 3 preemptions, 2 for the time-published and the recovering lock |
//! | `a_try_meets_a_holder` | 2 | none |
//! | `a_guard_is_released_elsewhere`, where a guard may be sent | 2 | none |
//! | `requests_are_taken_back`, where the lock asks not to be preempted | 2 | none |
//! | `a_forgotten_guard_keeps_a_moved_lock` | 2 | none |
//! | `deadlines::…` | 2 | none; with two waiters that give up, 3 preemptions, 2 when brief |
//!
//! The payload is a checked cell, so that a lock which excludes but does not synchronize fails too. Every model prints
//! `model NAME: N executions`.

#[path = "../../../../crates/spin/tests/common/mod.rs"]
mod common;

#[path = "../../brief.rs"]
mod brief;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use common::{Addressed, Racy};
use lock_api::{GuardSend, Mutex, RawMutex, RawMutexTimed};
use machine::atomic::{AtomicBool, Ordering};
use machine::cell::UnsafeCell;
use machine::sync::Arc;
use machine::wait::{Patient, Spin, WaitPolicy};
use machine::{Model, preemption, thread};
use stanchion_spin_loom::contention::{Ethernet, Exchange, Polling, Read};
use stanchion_spin_loom::{
    Anderson, Clh, Mcs, PreemptionSafe, Recovering, TestAndSet, Ticket, TimePublishedMcs,
};

/// What the lock protects: counted without atomics, under loom's race checker.
struct Payload(UnsafeCell<u32>);

// SAFETY: it is what a mutex is for: sent, and reached by one thread at a time. The models check that.
unsafe impl Send for Payload {}

impl Payload {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: the caller holds the lock; if that is not enough, the cell reports it.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> u32 {
        // SAFETY: as in `add_one`.
        self.0.with(|count| unsafe { *count })
    }
}

/// Checks `body`, says how much there was to check.
fn explore(name: &str, model: Model, body: impl Fn() + Send + Sync + 'static) {
    println!("model {name}: {}", model.check(body));
}

fn lock_and_count<R: RawMutex>(mutex: &Mutex<R, Payload>, times: u32) {
    for _ in 0..times {
        mutex.lock().add_one();
    }
}

/// A thread for each of `times`, the last of them this one, locking so many times.
fn count_with<R>(times: &'static [u32])
where
    R: RawMutex + Send + Sync + 'static,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    let (mine, others) = times.split_last().expect("at least this thread");
    let others: Vec<_> = others
        .iter()
        .map(|&times| {
            let mutex = mutex.clone();
            thread::spawn(move || lock_and_count(&mutex, times))
        })
        .collect();
    lock_and_count(&mutex, *mine);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(mutex.lock().count(), times.iter().sum());
}

/// One thread locks, the other tries, and both then lock for good.
fn try_against_lock<R>()
where
    R: RawMutex + Send + Sync + 'static,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    let other = {
        let mutex = mutex.clone();
        thread::spawn(move || {
            let got = mutex.try_lock().map(|payload| payload.add_one()).is_some();
            u32::from(got)
        })
    };
    mutex.lock().add_one();
    let got = other.join().unwrap();
    assert_eq!(mutex.try_lock().expect("everyone is done").count(), 1 + got);
    assert!(!mutex.is_locked());
}

/// A guard acquired by one thread and released by another.
fn send_the_guard<R>()
where
    R: RawMutex + Send + Sync + 'static,
    R::Guard: Send,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    // SAFETY: released below, by the thread that the guard is sent to.
    let guard = unsafe { mutex.raw() }.lock();
    let releaser = {
        let mutex = mutex.clone();
        thread::spawn(move || {
            // SAFETY: the lock is held for this thread.
            unsafe { &*mutex.data_ptr() }.add_one();
            // SAFETY: the lock below is released once, with the guard of its acquisition.
            let raw = unsafe { mutex.raw() };
            // SAFETY: the guard is this lock's, held.
            unsafe { raw.unlock(guard) }
        })
    };
    mutex.lock().add_one();
    releaser.join().unwrap();
    assert_eq!(mutex.lock().count(), 2);
}

/// A forgotten guard leaves the mutex locked, for good and for all, wherever it is moved.
fn forget_and_move<R>()
where
    R: RawMutex + Send + Sync + 'static,
{
    let mutex = Mutex::<R, _>::new(Payload::new());
    mem::forget(mutex.lock());
    let mutex = Arc::new(Box::new(mutex));
    let other = {
        let mutex = mutex.clone();
        thread::spawn(move || mutex.try_lock().map(mem::forget).is_some())
    };
    // No guard is dropped while an assertion unwinds: a second panic would end the process.
    let got = mutex.try_lock().map(mem::forget).is_some();
    let other_got = other.join().unwrap();
    assert!(!got && !other_got && mutex.is_locked());
}

/// Whoever waits, tries in vain or holds has as many requests not to be preempted as it holds locks.
fn requests_are_taken_back<R>()
where
    R: RawMutex + Send + Sync + 'static,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    let other = {
        let mutex = mutex.clone();
        thread::spawn(move || {
            let held = mutex.try_lock();
            assert_eq!(preemption::requests(), u32::from(held.is_some()));
            drop(held);
            assert_eq!(preemption::requests(), 0);
        })
    };
    let held = mutex.lock();
    assert_eq!(preemption::requests(), 1);
    assert!(mutex.try_lock().is_none());
    assert_eq!(preemption::requests(), 1);
    drop(held);
    assert_eq!(preemption::requests(), 0);
    other.join().unwrap();
}

/// What can be done with a guard that may be sent; or with one that stays with its thread, for its lock has made a request there.
macro_rules! guard_models {
    () => {
        #[test]
        fn a_guard_is_released_elsewhere() {
            explore(&name("a_guard_is_released_elsewhere"), model(), send_the_guard::<Lock>);
        }
    };
    (stays) => {};
    (asks) => {
        #[test]
        fn requests_are_taken_back() {
            explore(
                &name("requests_are_taken_back"),
                model(),
                super::requests_are_taken_back::<Lock>,
            );
        }
    };
}

/// How many choices of a thread are explored: one look of each that sees the holder preempted, where a lock asks for that.
macro_rules! choices {
    (asks) => {
        0
    };
    (stays) => {
        1
    };
}

/// How often each of two threads locks in an unbounded model: once, where a hand-over makes so many interleavings that more would take minutes.
macro_rules! times {
    () => {
        &[1, 2]
    };
    (asks) => {
        &[1, 2]
    };
    (stays) => {
        &[1, 1]
    };
}

macro_rules! models {
    ($($module:ident: $lock:ty, $preemptions:literal $(, $guard:ident)?;)+) => {$(
        mod $module {
            use super::*;

            type Lock = $lock;

            /// Enough for a lock and its payload; nodes are made fresh.
            fn model() -> Model {
                Model::new().objects(6)$(.choices(choices!($guard)))?
            }

            fn name(model: &str) -> String {
                format!("{}::{model}", stringify!($module))
            }

            #[test]
            fn two_threads() {
                explore(&name("two_threads"), model(), || count_with::<Lock>(times!($($guard)?)));
            }

            #[test]
            fn two_threads_twice_bounded() {
                let model = model().preemptions($preemptions);
                explore(&name("two_threads_twice_bounded"), model, || count_with::<Lock>(&[2, 2]));
            }

            #[test]
            fn three_threads_bounded() {
                let model = model().preemptions($preemptions);
                explore(&name("three_threads_bounded"), model, || count_with::<Lock>(&[1, 1, 1]));
            }

            #[test]
            fn a_try_meets_a_holder() {
                explore(&name("a_try_meets_a_holder"), model(), try_against_lock::<Lock>);
            }

            guard_models!($($guard)?);

            #[test]
            fn a_forgotten_guard_keeps_a_moved_lock() {
                explore(&name("a_forgotten_guard_keeps_a_moved_lock"), model(), forget_and_move::<Lock>);
            }
        }
    )+};
}

models! {
    exchange: TestAndSet<Exchange, Spin>, 3;
    read: TestAndSet<Read>, 3;
    ethernet: TestAndSet<Ethernet>, 3;
    polling: TestAndSet<Polling>, 3;
    ticket: Ticket, 3;
    anderson: Anderson<4>, 3;
    anderson_shared_slots: Anderson<2, Patient>, 3;
    mcs: Mcs, 3;
    clh: Clh, 3;
    preemption_safe: PreemptionSafe, 3, asks;
    recovering: Recovering, 2, stays;
    time_published_mcs: TimePublishedMcs, 2;
    time_published_mcs_struck_once: TimePublishedMcs<Patient, 1>, 2;
}

/// One thread locks for good, `timed` others with a deadline that may pass. Whoever got in counted.
fn count_with_deadlines<R>(timed: u32)
where
    R: RawMutexTimed<Duration = Duration> + Send + Sync + 'static,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    let timed: Vec<_> = (0..timed)
        .map(|_| {
            let mutex = mutex.clone();
            thread::spawn(move || {
                let got = mutex.try_lock_for(Duration::from_millis(1));
                got.map_or(0, |payload| {
                    payload.add_one();
                    1
                })
            })
        })
        .collect();
    mutex.lock().add_one();
    let in_time: u32 = timed.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(mutex.try_lock().expect("everyone is done").count(), 1 + in_time);
    assert!(!mutex.is_locked());
}

/// Whoever counts a ticket lock's threads while others come and go never counts too many.
#[test]
fn ticket_counts_those_there() {
    explore("ticket_counts_those_there", Model::new().objects(6), || {
        let lock = Arc::new(<Ticket>::new());
        let other = {
            let lock = lock.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let guard = lock.lock();
                    // SAFETY: acquired above.
                    unsafe { lock.unlock(guard) };
                }
            })
        };
        assert!(lock.holders_and_waiters() <= 2);
        assert!(lock.holders_and_waiters() <= 2);
        other.join().unwrap();
        assert_eq!(lock.holders_and_waiters(), 0);
    });
}

mod deadlines {
    use super::*;

    #[test]
    fn test_and_set_gives_up() {
        let model = Model::new().objects(6);
        explore("deadlines::test_and_set_gives_up", model, || {
            count_with_deadlines::<TestAndSet>(1)
        });
    }

    #[test]
    fn preemption_safe_gives_up() {
        let model = Model::new().objects(6);
        explore("deadlines::preemption_safe_gives_up", model, || {
            count_with_deadlines::<PreemptionSafe>(1)
        });
    }

    #[test]
    fn clh_gives_up() {
        let model = Model::new().objects(6);
        explore("deadlines::clh_gives_up", model, || count_with_deadlines::<Clh>(1));
    }

    #[test]
    fn two_clh_waiters_give_up_bounded() {
        let model = brief::bounded(Model::new().objects(6), 2, 3);
        explore("deadlines::two_clh_waiters_give_up_bounded", model, || {
            count_with_deadlines::<Clh>(2)
        });
    }
}

/// Every model fails for a lock that is broken in the way that it looks for.
mod broken_on_purpose {
    use super::*;

    /// Excludes, but orders nothing: what one holder wrote the next may not see.
    struct Unordered(AtomicBool);

    // SAFETY: none; the models must say so.
    unsafe impl RawMutex for Unordered {
        const INIT: Self = Self(AtomicBool::new(false));
        type Guard = GuardSend;

        fn lock(&self) -> GuardSend {
            machine::wait::retry_until(|| self.try_lock(), &mut Spin::start())
        }

        fn try_lock(&self) -> Option<GuardSend> {
            self.0
                .compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
                .then(GuardSend::new)
        }

        unsafe fn unlock(&self, _guard: GuardSend) {
            self.0.store(false, Ordering::Relaxed);
        }

        fn is_locked(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn fails(body: impl Fn() + Send + Sync + 'static) -> bool {
        let model = Model::new().objects(6);
        catch_unwind(AssertUnwindSafe(|| model.check(body))).is_err()
    }

    #[test]
    fn a_lock_that_looks_before_it_takes() {
        assert!(fails(|| count_with::<Racy>(&[1, 2])));
        assert!(fails(|| count_with::<Racy>(&[2, 2])));
        assert!(fails(|| count_with::<Racy>(&[1, 1, 1])));
        assert!(fails(try_against_lock::<Racy>));
    }

    #[test]
    fn a_lock_that_orders_nothing() {
        assert!(fails(|| count_with::<Unordered>(&[1, 2])));
        assert!(fails(|| count_with::<Unordered>(&[2, 2])));
        assert!(fails(|| count_with::<Unordered>(&[1, 1, 1])));
        assert!(fails(try_against_lock::<Unordered>));
    }

    #[test]
    fn a_lock_that_is_its_address() {
        assert!(fails(forget_and_move::<Addressed>));
    }

    #[test]
    fn a_lock_whose_release_orders_nothing() {
        assert!(fails(send_the_guard::<Unordered>));
    }
}
