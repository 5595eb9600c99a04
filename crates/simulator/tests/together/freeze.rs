//! Threads that are stopped for ever: exactly after the given access, with the run's report on the
//! threads that wait for them.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Presence};
use stanchion_simulator::{Failure, Simulation, ThreadId, Time, machines, os::freeze};
use std::cell::Cell;
use std::rc::Rc;

fn spawn(name: &str, body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(Some(name.to_owned()), None, Box::new(body))
}

fn on(processors: usize) -> Simulation {
    Simulation::new(machines::modern(processors)).time(Time::millis(10))
}

#[test]
fn a_thread_is_frozen_after_as_many_accesses_as_were_said_and_done() {
    for accesses in 0..8 {
        let run = on(2).run(move || {
            let word = Rc::new(Word::new(0));
            let count = word.clone();
            let victim = spawn("victim", move || {
                freeze::after(accesses, || (0..5).for_each(|_| _ = count.add(1)));
                // Not limited any more.
                (0..5).for_each(|_| _ = count.add(100));
            });
            (freeze::wait(victim), word.raw())
        });
        let (frozen, count) = run.unwrap().result;
        if accesses < 5 {
            assert_eq!((frozen, count), (true, accesses));
        } else {
            assert_eq!((frozen, count), (false, 505), "{accesses}: it has ended before");
        }
    }
}

/// Code between the last access and the next one has no effect. Code after a look that waits has
/// none either.
#[test]
fn a_frozen_thread_does_nothing_else() {
    let ways: [fn(); 6] = [
        || inside::work(1),
        || inside::pause(1),
        inside::fence,
        inside::yield_now,
        || inside::sleep(1),
        || _ = inside::wake(core::ptr::null(), 1),
    ];
    for way in ways {
        let run = on(1).run(move || {
            let went_on = Rc::new(Cell::new(0));
            let (word, seen) = (Word::new(0), went_on.clone());
            let victim = spawn("victim", move || {
                freeze::after(1, || {
                    word.add(1);
                    seen.set(1);
                    (0..100).for_each(|_| way());
                    word.add(1);
                    seen.set(2);
                });
            });
            assert!(freeze::wait(victim));
            assert_eq!(inside::presence(victim.index()), Presence::Preempted);
            went_on.get()
        });
        assert_eq!(run.unwrap().result, 1);
    }
}

#[test]
fn its_processor_goes_to_the_others() {
    let run = on(1).run(|| {
        let word = Rc::new(Word::new(0));
        let own = word.clone();
        let victim =
            spawn("victim", move || freeze::after(3, || (0..9).for_each(|_| _ = own.add(1))));
        assert!(freeze::wait(victim));
        let others = [(); 3].map(|()| {
            let word = word.clone();
            spawn("other", move || (0..50).for_each(|_| _ = word.add(1)))
        });
        others.into_iter().for_each(inside::join);
        word.raw()
    });
    assert_eq!(run.unwrap().result, 153);
}

/// A lock with a frozen holder: a spinning waiter is found at the limit, a sleeping one by the
/// deadlock, and the report names both.
#[test]
fn a_thread_that_waits_for_a_frozen_thread_is_reported() {
    type Way = (fn(&Word), &'static str);
    let ways: [Way; 3] = [
        (
            |word| {
                while word.load() != 0 {
                    inside::watch(word.address(), u64::MAX);
                }
            },
            "thread 2 'waiter' spins on processor",
        ),
        (
            |word| {
                while word.load() != 0 {
                    inside::pause(100);
                }
            },
            "thread 2 'waiter' runs on processor",
        ),
        (
            |word| _ = inside::park(word.address(), || word.raw() == 0, u64::MAX),
            "thread 2 'waiter' is parked on",
        ),
    ];
    for (wait, said) in ways {
        let run = on(2).run(move || {
            let word = Rc::new(Word::new(0));
            let (held, waited) = (word.clone(), word);
            let holder = spawn("holder", move || {
                freeze::after(1, || {
                    held.store(1);
                    held.store(0);
                });
            });
            freeze::wait(holder);
            inside::join(spawn("waiter", move || wait(&waited)));
        });
        let Err(failure) = run else { panic!("no thread releases") };
        assert!(matches!(failure, Failure::Deadlock { .. } | Failure::Time { .. }), "{failure}");
        let text = failure.to_string();
        assert!(text.contains("thread 1 'holder' is frozen") && text.contains(said), "{text}");
    }
}

/// A thread that is frozen on its way to sleep takes the wake-up with it; the next one is
/// another's.
#[test]
fn a_wake_up_that_was_its_own_is_lost() {
    let run = on(4).run(|| {
        let word = Rc::new(Word::new(0));
        let sleep = |word: &Rc<Word>, accesses| {
            let word = word.clone();
            spawn("sleeper", move || {
                freeze::after(accesses, || inside::park(word.address(), || false, u64::MAX));
            })
        };
        let victim = sleep(&word, 1);
        assert!(freeze::wait(victim));
        let other = sleep(&word, 100);
        inside::sleep(100_000);
        let woken = [(); 3].map(|()| inside::wake(word.address(), 1));
        inside::join(other);
        (woken, freeze::is_frozen(victim))
    });
    assert_eq!(run.unwrap().result, ([1, 1, 0], true));
}
