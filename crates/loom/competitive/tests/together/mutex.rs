//! Models of the mutex: with every policy, there is one holder at a time, and no wake-up is lost.
//!
//! A bounded spin is one look here: a policy looks once and sleeps ([`Sleeps`]), spins for as long
//! as it takes ([`AlwaysSpin`]), or does either by choice ([`Either`]). The machine's choices are
//! wake-ups for no reason, passed deadlines, and the end of a sleeper's patience.
//!
//! | model | threads | bound |
//! | --- | --- | --- |
//! | `two_threads…`, `deadlines::…`, `a_try_…`, `a_forgotten_guard_…` | 2 | none |
//! | `…_bounded`, all choices | 2, each locking twice; or 3 | 2 to 4 preemptions, as they say |
//!
//! In `cargo test` some have a smaller bound, and so have the two longest without one ([`brief`]).
//! The payload is a checked cell, so that a lock which excludes but does not synchronize fails too.
//! A thread that sleeps for ever is a deadlock.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use lock_api::MutexGuard;
use stanchion_competitive_loom::policy::{
    AlwaysSpin, Contention, OptimalOnlineApproximation, Policy, Wait,
};
use stanchion_competitive_loom::{PolicyMutex, RawPolicyMutex, cost};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::sync::Arc;
use stanchion_machine::thread::JoinHandle;
use stanchion_machine::wait::{Spin, WaitPolicy as _, retry_until};
use stanchion_machine::{Model, thread};
use stanchion_models::{brief, explore};

/// Looks once, then sleeps.
struct Sleeps;

impl Policy for Sleeps {
    const INIT: Self = Self;
    fn threshold(&self, _contention: &Contention) -> u64 {
        0
    }
}

/// Spins for as long as it takes or sleeps, by choice.
struct Either;

impl Policy for Either {
    const INIT: Self = Self;
    fn threshold(&self, _contention: &Contention) -> u64 {
        if stanchion_machine::choice() { u64::MAX } else { 0 }
    }
}

/// The data under the lock: counted without atomics, under loom's race checker.
struct Payload(UnsafeCell<u32>);

// SAFETY: a mutex is for that: one thread at a time reaches it, which the models check.
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

type Shared<P> = Arc<PolicyMutex<Payload, P>>;

fn shared<P: Policy>() -> Shared<P> {
    // The first guess at C, eight system calls, is made where no other thread multiplies them.
    let _ = cost::current();
    Arc::new(PolicyMutex::new(Payload::new()))
}

/// No choices: nothing happens without a reason.
fn plain() -> Model {
    Model::new().choices(0)
}

/// Starts a thread that locks `times` times. It returns the number of times that it had the lock.
fn locker<P: Policy + 'static>(mutex: &Shared<P>, times: u32) -> JoinHandle<u32> {
    let mutex = mutex.clone();
    thread::spawn(move || {
        (0..times).for_each(|_| mutex.lock().add_one());
        times
    })
}

/// A kind of deadline.
#[derive(Clone, Copy)]
enum Until {
    /// Past when the wait begins.
    Past,
    /// It passes, or not, by choice.
    Soon,
}

fn lock_until<P: Policy>(mutex: &PolicyMutex<Payload, P>, until: Until) -> u32 {
    let guard = match until {
        Until::Past => mutex.try_lock_until(Instant::now()),
        Until::Soon => mutex.try_lock_for(Duration::from_millis(1)),
    };
    guard.map_or(0, |payload| {
        payload.add_one();
        1
    })
}

/// Starts a thread that locks with a deadline. It returns the number of times that it had the lock.
fn timed<P: Policy + 'static>(mutex: &Shared<P>, until: Until) -> JoinHandle<u32> {
    let mutex = mutex.clone();
    thread::spawn(move || lock_until(&mutex, until))
}

/// Checks that the counts of all threads add up, that the lock is free, and that no thread sleeps.
fn adds_up<P: Policy>(mutex: &Shared<P>, mine: u32, others: Vec<JoinHandle<u32>>) {
    let theirs: u32 = others.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(mutex.try_lock().expect("all threads have unlocked").count(), mine + theirs);
    assert!(!mutex.is_locked());
}

/// A thread for each of `times`, the last of them this one, locking so many times.
fn count_with<P: Policy + 'static>(times: &'static [u32]) {
    let mutex = shared::<P>();
    let (mine, others) = times.split_last().expect("at least this thread");
    let others = others.iter().map(|&times| locker(&mutex, times)).collect();
    (0..*mine).for_each(|_| mutex.lock().add_one());
    adds_up(&mutex, *mine, others);
}

/// This thread holds the lock when the others come, and releases it once, in turn or not.
fn held_then<P: Policy + 'static>(fair: bool, others: impl Fn(&Shared<P>) -> Vec<JoinHandle<u32>>) {
    let mutex = shared::<P>();
    let guard = mutex.lock();
    let others = others(&mutex);
    guard.add_one();
    if fair {
        MutexGuard::unlock_fair(guard)
    } else {
        drop(guard)
    }
    adds_up(&mutex, 1, others);
}

#[test]
fn two_threads() {
    explore("two_threads", plain(), || count_with::<Sleeps>(&[1, 1]));
}

#[test]
fn two_threads_that_spin() {
    explore("two_threads_that_spin", plain(), || count_with::<AlwaysSpin>(&[1, 2]));
}

/// A wake-up for no reason, and patience that ends at the first release.
#[test]
fn a_holder_and_a_sleeper_with_choices() {
    let model = brief::bounded(Model::new().choices(1), 5, None);
    explore("a_holder_and_a_sleeper_with_choices", model, || {
        held_then::<Sleeps>(false, |mutex| vec![locker(mutex, 1)]);
    });
}

#[test]
fn two_threads_twice_bounded() {
    let model = plain().preemptions(4);
    explore("two_threads_twice_bounded", model, || count_with::<Sleeps>(&[2, 2]));
}

/// Spinners and sleepers on one lock, and all that the machine may do.
#[test]
fn two_threads_of_either_kind_twice_bounded() {
    let model = Model::new().choices(3).preemptions(2);
    explore("two_threads_of_either_kind_twice_bounded", model, || count_with::<Either>(&[2, 2]));
}

#[test]
fn three_threads_bounded() {
    let model = brief::bounded(plain(), 2, 3);
    explore("three_threads_bounded", model, || count_with::<Sleeps>(&[1, 1, 1]));
}

#[test]
fn three_threads_of_either_kind_bounded() {
    let model = brief::bounded(Model::new().choices(2), 1, 2);
    explore("three_threads_of_either_kind_bounded", model, || count_with::<Either>(&[1, 1, 1]));
}

#[test]
fn a_holder_and_two_that_wait_bounded() {
    let model = brief::bounded(plain(), 2, 3);
    explore("a_holder_and_two_that_wait_bounded", model, || {
        held_then::<Sleeps>(false, |mutex| vec![locker(mutex, 1), locker(mutex, 1)]);
    });
}

/// One thread locks, the other tries.
#[test]
fn a_try_meets_a_holder() {
    explore("a_try_meets_a_holder", plain(), || {
        let mutex = shared::<Sleeps>();
        let other = {
            let mutex = mutex.clone();
            thread::spawn(move || {
                let got = mutex.try_lock().map(|payload| payload.add_one()).is_some();
                u32::from(got)
            })
        };
        mutex.lock().add_one();
        adds_up(&mutex, 1, vec![other]);
    });
}

/// Sleeps at first, and spins for as long as it takes once it was woken.
struct SleepsOnce;

impl Policy for SleepsOnce {
    const INIT: Self = Self;
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() == 0 { 0 } else { u64::MAX }
    }
}

/// A quicker thread releases in turn to the woken one, which must see its number in the word.
#[test]
fn a_release_in_turn_to_one_that_spins_again_bounded() {
    let model = plain().preemptions(3);
    explore("a_release_in_turn_to_one_that_spins_again_bounded", model, || {
        let mutex = shared::<SleepsOnce>();
        let guard = mutex.lock();
        let other = locker(&mutex, 1);
        guard.add_one();
        drop(guard);
        let mut mine = 1;
        if let Some(again) = mutex.try_lock() {
            again.add_one();
            mine += 1;
            MutexGuard::unlock_fair(again);
        }
        adds_up(&mutex, mine, vec![other]);
    });
}

/// A forgotten guard leaves the mutex locked, wherever it is moved.
#[test]
fn a_forgotten_guard_keeps_a_moved_lock() {
    explore("a_forgotten_guard_keeps_a_moved_lock", plain(), || {
        let mutex = PolicyMutex::<_, Sleeps>::new(Payload::new());
        mem::forget(mutex.lock());
        let mutex = Arc::new(mutex);
        let other = timed(&mutex, Until::Past);
        // No guard is dropped while an assertion unwinds: a second panic would end the process.
        let got = mutex.try_lock().map(mem::forget).is_some();
        let other_got = other.join().unwrap();
        assert!(!got && other_got == 0 && mutex.is_locked());
    });
}

/// A holder that asks for the lock again panics, or gives up if it has a deadline.
#[test]
fn a_holder_that_asks_again() {
    // Each panic is printed, which takes its time: so the other one only looks in.
    explore("a_holder_that_asks_again", plain(), || {
        let mutex = shared::<Sleeps>();
        let guard = mutex.lock();
        let other = {
            let mutex = mutex.clone();
            thread::spawn(move || {
                u32::from(mutex.try_lock().map(|payload| payload.add_one()).is_some())
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(|| mutex.lock().add_one())).is_err());
        assert_eq!(lock_until(&mutex, Until::Past), 0);
        guard.add_one();
        drop(guard);
        adds_up(&mutex, 1, vec![other]);
    });
}

mod deadlines {
    use super::*;

    /// It passes, or not, before, while and after the lock is released.
    #[test]
    fn beside_a_holder() {
        let model = brief::bounded(Model::new().choices(2), 5, None);
        explore("deadlines::beside_a_holder", model, || {
            held_then::<Sleeps>(false, |mutex| vec![timed(mutex, Until::Soon)]);
        });
    }

    /// Woken or handed the lock, the waiter finds its deadline past.
    #[test]
    fn past_beside_a_holder() {
        for fair in [false, true] {
            explore(&format!("deadlines::past_beside_a_holder_fair_{fair}"), plain(), move || {
                held_then::<Sleeps>(fair, |mutex| vec![timed(mutex, Until::Past)]);
            });
        }
    }

    #[test]
    fn of_a_spinner() {
        let model = Model::new().choices(1);
        explore("deadlines::of_a_spinner", model, || {
            held_then::<AlwaysSpin>(false, |mutex| vec![timed(mutex, Until::Soon)]);
        });
    }

    #[test]
    fn beside_a_sleeper_bounded() {
        let model = brief::bounded(Model::new().choices(2), 1, 2);
        explore("deadlines::beside_a_sleeper_bounded", model, || {
            held_then::<Sleeps>(false, |mutex| vec![timed(mutex, Until::Soon), locker(mutex, 1)]);
        });
    }

    /// A waiter that gives up leaves its place to a sleeper just when the lock is released.
    #[test]
    fn past_beside_a_sleeper_bounded() {
        let model = brief::bounded(plain(), 2, 3);
        explore("deadlines::past_beside_a_sleeper_bounded", model, || {
            held_then::<Sleeps>(false, |mutex| vec![timed(mutex, Until::Past), locker(mutex, 1)]);
        });
    }

    /// A waiter that is woken in vain gives up: the sleeper behind it gets the wake-up.
    #[test]
    fn past_and_woken_in_vain_bounded() {
        let model = plain().preemptions(2);
        explore("deadlines::past_and_woken_in_vain_bounded", model, || {
            let mutex = shared::<Sleeps>();
            let guard = mutex.lock();
            let others = vec![timed(&mutex, Until::Past), locker(&mutex, 1)];
            drop(guard);
            if let Some(payload) = mutex.try_lock() {
                payload.add_one();
                drop(payload);
                return adds_up(&mutex, 1, others);
            }
            adds_up(&mutex, 0, others);
        });
    }

    #[test]
    fn of_two_beside_a_holder_bounded() {
        let model = Model::new().choices(1).preemptions(2);
        explore("deadlines::of_two_beside_a_holder_bounded", model, || {
            let two = |mutex: &_| vec![timed(mutex, Until::Soon), timed(mutex, Until::Soon)];
            held_then::<Sleeps>(false, two);
        });
    }
}

mod in_turn {
    use super::*;

    #[test]
    fn to_a_sleeper() {
        explore("in_turn::to_a_sleeper", plain(), || {
            held_then::<Sleeps>(true, |mutex| vec![locker(mutex, 1)]);
        });
    }

    #[test]
    fn to_a_spinner() {
        explore("in_turn::to_a_spinner", plain(), || {
            held_then::<AlwaysSpin>(true, |mutex| vec![locker(mutex, 1)]);
        });
    }

    #[test]
    fn to_a_sleeper_at_its_deadline() {
        let model = Model::new().choices(2);
        explore("in_turn::to_a_sleeper_at_its_deadline", model, || {
            held_then::<Sleeps>(true, |mutex| vec![timed(mutex, Until::Soon)]);
        });
    }

    #[test]
    fn to_two_that_sleep_bounded() {
        let model = plain().preemptions(2);
        explore("in_turn::to_two_that_sleep_bounded", model, || {
            held_then::<Sleeps>(true, |mutex| vec![locker(mutex, 1), locker(mutex, 1)]);
        });
    }

    /// A release hands the lock to a sleeper that has waited too long. It remembers the next one.
    #[test]
    fn to_a_sleeper_that_waited_too_long_bounded() {
        let model = Model::new().choices(1).preemptions(2);
        explore("in_turn::to_a_sleeper_that_waited_too_long_bounded", model, || {
            held_then::<Sleeps>(false, |mutex| vec![locker(mutex, 1), locker(mutex, 1)]);
        });
    }

    /// The lock is released, taken again and handed over while the sleeper is on its way.
    #[test]
    fn to_one_on_its_way_bounded() {
        let model = plain().preemptions(3);
        explore("in_turn::to_one_on_its_way_bounded", model, || {
            released_and_handed_over::<Sleeps>(attempt);
        });
    }

    /// The sleeper has looked for the last time: it has the lock, and does not leave it behind.
    #[test]
    fn to_one_that_gives_up_bounded() {
        let model = plain().preemptions(3);
        explore("in_turn::to_one_that_gives_up_bounded", model, || {
            released_and_handed_over::<Sleeps>(|mutex| lock_until(mutex, Until::Past));
        });
    }
}

/// Releases the lock, takes it again and hands it over, while another thread waits by `attempt`.
fn released_and_handed_over<P: Policy + 'static>(attempt: fn(&PolicyMutex<Payload, P>) -> u32) {
    let mutex = shared::<P>();
    let guard = mutex.lock();
    let other = {
        let mutex = mutex.clone();
        thread::spawn(move || attempt(&mutex))
    };
    guard.add_one();
    drop(guard);
    let guard = lock_or_again(&mutex);
    guard.add_one();
    MutexGuard::unlock_fair(guard);
    adds_up(&mutex, 2, vec![other]);
}

/// The lock for good; 0 if the policy panics.
fn attempt<P: Policy>(mutex: &PolicyMutex<Payload, P>) -> u32 {
    u32::from(catch_unwind(AssertUnwindSafe(|| mutex.lock().add_one())).is_ok())
}

/// The lock, however often its policy panics.
fn lock_or_again<P: Policy>(
    mutex: &PolicyMutex<Payload, P>,
) -> MutexGuard<'_, RawPolicyMutex<P>, Payload> {
    loop {
        if let Ok(guard) = catch_unwind(AssertUnwindSafe(|| mutex.lock())) {
            return guard;
        }
    }
}

/// A policy that panics gives up the lock and its position in the queue: the others go on.
mod a_policy_that_panics {
    use super::*;

    const AT_ONCE: u8 = 0;
    const WHEN_WOKEN: u8 = 1;
    const WHILE_SPINNING: u8 = 2;
    const AT_THE_END: u8 = 3;

    /// Panics in one of its calls.
    struct Faulty<const WHERE: u8>;

    impl<const WHERE: u8> Policy for Faulty<WHERE> {
        const INIT: Self = Self;

        fn threshold(&self, contention: &Contention) -> u64 {
            panics_if(WHERE == AT_ONCE || (WHERE == WHEN_WOKEN && contention.blocks() > 0));
            u64::from(WHERE == WHILE_SPINNING)
        }

        fn keep_spinning(&self, _contention: &Contention) -> bool {
            panics_if(WHERE == WHILE_SPINNING);
            true
        }

        fn adjust(&self, _wait: &Wait) {
            panics_if(WHERE == AT_THE_END);
        }
    }

    /// A panic that prints nothing: there are thousands.
    fn panics_if(wrong: bool) {
        if wrong {
            resume_unwind(Box::new("the policy's"));
        }
    }

    fn attempts<const WHERE: u8>(threads: usize) {
        let mutex = shared::<Faulty<WHERE>>();
        let others = (1..threads)
            .map(|_| {
                let mutex = mutex.clone();
                thread::spawn(move || attempt(&mutex))
            })
            .collect();
        let mine = attempt(&mutex);
        adds_up(&mutex, mine, others);
    }

    macro_rules! calls {
        ($($name:ident: $where:ident;)+) => {$(
            #[test]
            fn $name() {
                let name = stringify!($name);
                explore(&format!("a_policy_that_panics::{name}"), plain(), || attempts::<$where>(2));
                let model = plain().preemptions(2);
                explore(&format!("a_policy_that_panics::{name}_of_three_bounded"), model, || attempts::<$where>(3));
            }
        )+};
    }

    calls! {
        at_once: AT_ONCE;
        when_woken: WHEN_WOKEN;
        while_spinning: WHILE_SPINNING;
        at_the_end: AT_THE_END;
    }

    /// The lock is handed to a thread that is on its way to a policy that panics.
    #[test]
    fn with_the_lock_handed_over_bounded() {
        let model = plain().preemptions(3);
        explore("a_policy_that_panics::with_the_lock_handed_over_bounded", model, || {
            released_and_handed_over::<Faulty<WHEN_WOKEN>>(attempt);
        });
    }

    /// A releaser hands the lock over so late that a third thread has had it meanwhile. A thread
    /// that comes after the one that panics sees the writes of that one.
    #[test]
    fn with_the_lock_handed_over_late_bounded() {
        let model = brief::bounded(Model::new().choices(1), 2, 3);
        explore("a_policy_that_panics::with_the_lock_handed_over_late_bounded", model, || {
            let mutex = shared::<Faulty<WHEN_WOKEN>>();
            let guard = mutex.lock();
            let faulty = {
                let mutex = mutex.clone();
                thread::spawn(move || attempt(&mutex))
            };
            let between = {
                let mutex = mutex.clone();
                thread::spawn(move || {
                    let got = mutex.try_lock().map(|payload| payload.add_one());
                    u32::from(got.is_some())
                })
            };
            guard.add_one();
            drop(guard);
            // Comes last, after either of the others.
            retry_until(|| mutex.try_lock(), &mut Spin::start()).add_one();
            adds_up(&mutex, 2, vec![faulty, between]);
        });
    }
}

/// Two locks share a queue of sleepers: each release wakes a sleeper of its own lock.
#[test]
fn two_locks_in_one_bucket_bounded() {
    for fair in [false, true] {
        let model = plain().preemptions(2);
        explore(&format!("two_locks_in_one_bucket_bounded_fair_{fair}"), model, move || {
            let (one, two) = (shared::<Sleeps>(), shared::<Sleeps>());
            let (first, second) = (one.lock(), two.lock());
            let waiters = [locker(&one, 1), locker(&two, 1)];
            for guard in [second, first] {
                if fair { MutexGuard::unlock_fair(guard) } else { drop(guard) }
            }
            for waiter in waiters {
                waiter.join().unwrap();
            }
            assert_eq!((one.lock().count(), two.lock().count()), (1, 1));
        });
    }
}

/// A table with room for one histogram: the second lock goes without until it comes back.
#[test]
fn two_locks_that_want_a_histogram_bounded() {
    let model = plain().preemptions(2).objects(64);
    explore("two_locks_that_want_a_histogram_bounded", model, || {
        let locks: [Shared<OptimalOnlineApproximation>; 2] = [shared(), shared()];
        for mutex in locks {
            let guard = mutex.lock();
            let waiters = vec![locker(&mutex, 1), locker(&mutex, 1)];
            drop(guard);
            adds_up(&mutex, 0, waiters);
        }
    });
}
