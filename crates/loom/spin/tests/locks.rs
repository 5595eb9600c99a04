//! Models of every lock. Each lock has the same models.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `two_threads` | 2, of which one locks twice | none |
//! | `two_threads_twice_bounded` | 2, each locks twice | 3 preemptions |
//! | `three_threads_bounded` | 3 | 3 preemptions |
//! | `a_try_meets_a_holder` | 2 | none |
//! | `a_guard_is_released_elsewhere`, if a guard may be sent | 2 | none |
//! | `requests_are_taken_back`, if the lock asks not to be preempted | 2 | none |
//! | `a_forgotten_guard_keeps_a_moved_lock` | 2 | none |
//! | `deadlines::…` | 2 | none |
//! | `deadlines::two_clh_waiters_give_up_bounded` | 3 | 3 preemptions, 2 when brief |
//!
//! Exceptions: in `two_threads` of the recovering lock each thread locks once. The bounded models
//! of the recovering and the time-published locks have 2 preemptions.
//!
//! The payload is a checked cell. So a lock that excludes but does not synchronize fails too. Every
//! model prints `model NAME: N executions`.

#[path = "../../../spin/tests/common/mod.rs"]
mod common;

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use common::{Addressed, Racy};
use lock_api::{GuardSend, Mutex, RawMutex, RawMutexTimed};
use stanchion_machine::atomic::{AtomicBool, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::wait::{Patient, Spin, WaitPolicy};
use stanchion_machine::{Model, preemption, thread};
use stanchion_models::{brief, explore};
use stanchion_spin_loom::contention::MEASURED;
use stanchion_spin_loom::{Anderson, Clh, PreemptionSafe, TestAndSet, Ticket, TimePublishedMcs};

/// The protected count. Threads change it without atomics, under loom's race checker.
struct Payload(UnsafeCell<u32>);

// SAFETY: the mutex lets one thread at a time use the cell. The models check this.
unsafe impl Send for Payload {}

impl Payload {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    fn add_one(&self) {
        // SAFETY: the caller holds the lock. If the lock does not exclude, the cell reports it.
        self.0.with_mut(|count| unsafe { *count += 1 });
    }

    fn count(&self) -> u32 {
        // SAFETY: as in `add_one`.
        self.0.with(|count| unsafe { *count })
    }
}

fn lock_and_count<R: RawMutex>(mutex: &Mutex<R, Payload>, times: u32) {
    for _ in 0..times {
        mutex.lock().add_one();
    }
}

/// Runs a thread for each number of `times`. The thread locks that many times. The last number is
/// for the calling thread.
fn count_with<R>(times: &'static [u32])
where
    R: RawMutex + Send + Sync + 'static,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    let (mine, others) = times.split_last().expect("a number for the calling thread");
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

/// One thread locks, and another tries to lock. The lock then counts each thread that got it, and
/// is free.
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
    assert_eq!(mutex.try_lock().expect("all threads have released the lock").count(), 1 + got);
    assert!(!mutex.is_locked());
}

/// One thread acquires a guard, and another thread releases it.
fn send_the_guard<R>()
where
    R: RawMutex + Send + Sync + 'static,
    R::Guard: Send,
{
    let mutex = Arc::new(Mutex::<R, _>::new(Payload::new()));
    // SAFETY: the thread that gets the guard releases it below.
    let guard = unsafe { mutex.raw() }.lock();
    let releaser = {
        let mutex = mutex.clone();
        thread::spawn(move || {
            // SAFETY: this thread has the guard, so it holds the lock.
            unsafe { &*mutex.data_ptr() }.add_one();
            // SAFETY: this thread releases the lock once, with the guard of its acquisition.
            let raw = unsafe { mutex.raw() };
            // SAFETY: the guard is from this lock, which is held.
            unsafe { raw.unlock(guard) }
        })
    };
    mutex.lock().add_one();
    releaser.join().unwrap();
    assert_eq!(mutex.lock().count(), 2);
}

/// A forgotten guard leaves the mutex locked for ever, for all threads, also after the mutex has
/// moved.
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

/// A thread has one request not to be preempted for each lock that it holds. Waiting for a lock,
/// and trying in vain to lock, leave no request behind.
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

/// Declares the model of a guard that may be sent. A guard that stays with its thread has no such
/// model. If its lock asks not to be preempted, the lock has a model of these requests.
macro_rules! guard_models {
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
    ($sent:ident) => {
        #[test]
        fn a_guard_is_released_elsewhere() {
            explore(&name("a_guard_is_released_elsewhere"), model(), send_the_guard::<Lock>);
        }
    };
}

/// Sets the number of choices that are explored of each thread. The recovering lock has one: a
/// waiter may see the holder preempted once.
macro_rules! with_choices {
    (asks, $model:expr) => {
        $model.choices(0)
    };
    (stays, $model:expr) => {
        $model.choices(1)
    };
    ($sent:ident, $model:expr) => {
        $model
    };
}

/// The number of times that each of two threads locks in an unbounded model. In the recovering lock
/// each locks once: a hand-over makes so many interleavings that more would take minutes.
macro_rules! times {
    (stays) => {
        &[1, 1]
    };
    ($guard:ident) => {
        &[1, 2]
    };
}

macro_rules! models {
    ($($module:ident: $lock:ty, $guard:ident, $preemptions:literal;)+) => {$(
        mod $module {
            use super::*;

            type Lock = $lock;

            /// Makes room for a lock and its payload. Queue nodes need none: `fresh` makes them.
            fn model() -> Model {
                with_choices!($guard, Model::new().objects(6))
            }

            fn name(model: &str) -> String {
                format!("{}::{model}", stringify!($module))
            }

            #[test]
            fn two_threads() {
                explore(&name("two_threads"), model(), || count_with::<Lock>(times!($guard)));
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

            guard_models!($guard);

            #[test]
            fn a_forgotten_guard_keeps_a_moved_lock() {
                explore(&name("a_forgotten_guard_keeps_a_moved_lock"), model(), forget_and_move::<Lock>);
            }
        }
    )+};
}

/// Defines the models of each lock of the table.
macro_rules! of_the_table {
    ([] $({
        $module:ident: $lock:ty,
        command: $command:literal,
        name: $written:literal,
        public: $public:tt,
        guard: $guard:ident,
        deadline: $deadline:ident,
        preemptions: $preemptions:literal,
        $($rest:tt)*
    })+) => {
        models! { $($module: $lock, $guard, $preemptions;)+ }
    };
}

stanchion_spin_loom::__locks! { of_the_table [], wait: Patient, slots: 4, delay_ns: MEASURED }

// Other parameters than the table's.
models! {
    anderson_shared_slots: Anderson<2, Patient>, carries, 3;
    time_published_mcs_struck_once: TimePublishedMcs<Patient, 1>, plain, 2;
}

/// One thread locks without a deadline, and `timed` others with a deadline that may pass. Each
/// thread that got the lock has counted.
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
    assert_eq!(mutex.try_lock().expect("all threads have released the lock").count(), 1 + in_time);
    assert!(!mutex.is_locked());
}

/// A count of a ticket lock's threads is never too large, while another thread locks and unlocks.
#[test]
fn ticket_counts_holders_and_waiters() {
    explore("ticket_counts_holders_and_waiters", Model::new().objects(6), || {
        let lock = Arc::new(<Ticket>::new());
        let other = {
            let lock = lock.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let guard = lock.lock();
                    // SAFETY: this thread has acquired the lock above.
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

/// Locks that are broken on purpose. Each model fails for a lock with the fault that it looks for.
mod broken_on_purpose {
    use super::*;

    /// A lock that excludes but orders nothing. A holder may not see what the holder before it
    /// wrote.
    struct Unordered(AtomicBool);

    // SAFETY: none, on purpose. The models must report it.
    unsafe impl RawMutex for Unordered {
        const INIT: Self = Self(AtomicBool::new(false));
        type Guard = GuardSend;

        fn lock(&self) -> GuardSend {
            stanchion_machine::wait::retry_until(|| self.try_lock(), &mut Spin::start())
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
