//! Programs that are wrong, each with the report of the run, and programs that are right, in ways
//! that a simulator could get wrong.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Local, Parked, Presence};
use stanchion_simulator::{Activity, Failure, Machine, Simulation, ThreadId, Time, machines};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::rc::Rc;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// Returns the failure of a run on so many processors, with a body that does not come to its end.
fn fails(processors: usize, body: impl FnOnce() + 'static) -> Failure {
    let simulation = Simulation::new(machines::modern(processors)).time(Time::millis(100));
    match simulation.run(body) {
        Ok(_) => panic!("the run has ended"),
        Err(failure) => failure,
    }
}

fn says(failure: &Failure, parts: &[&str]) {
    let text = failure.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

/// A body that stands still when it gets a word that no thread writes.
type Stuck = fn(&Rc<Word>);

#[test]
fn machines_with_no_processor_and_with_too_many_are_refused() {
    for (processors, said) in [
        (0, "processors is 0: give it 1 to 1024"),
        (4_096, "processors is 4096: give it 1 to 1024"),
    ] {
        let machine = Machine { processors, ..machines::modern(1) };
        let failure = Simulation::new(machine).run(|| ()).unwrap_err();
        assert!(matches!(failure, Failure::Machine(_)), "{failure}");
        says(&failure, &["the machine cannot be built", said]);
    }
}

#[test]
fn every_way_to_wait_for_ever_is_a_deadlock_with_its_reason() {
    let ways: [(Stuck, &str); 6] = [
        (
            |word| {
                inside::park(word.address(), || false, u64::MAX);
            },
            "thread 0 'main' is parked on the word at 0x",
        ),
        (
            |word| {
                while word.load() == 0 {
                    inside::watch(word.address(), u64::MAX);
                }
            },
            "thread 0 'main' spins on processor 0 until the word at 0x",
        ),
        (|_| inside::sleep(u64::MAX), "thread 0 'main' sleeps"),
        (
            |_| inside::join(inside::current()),
            "thread 0 'main' waits for the end of thread 0 'main'",
        ),
        (
            |_| {
                let main = inside::current();
                inside::join(spawn(move || inside::join(main)));
            },
            "thread 1 waits for the end of thread 0 'main'",
        ),
        (
            |word| {
                let other = Rc::clone(word);
                let body = move || {
                    while other.load() == 0 {
                        inside::watch(other.address(), u64::MAX);
                    }
                };
                inside::spawn(Some("watcher".to_owned()), None, Box::new(body));
            },
            "thread 1 'watcher' spins on processor 0 until the word at 0x",
        ),
    ];
    for (way, said) in ways {
        let failure = fails(1, move || way(&Rc::new(Word::new(0))));
        assert!(matches!(failure, Failure::Deadlock { .. }), "{failure}");
        says(&failure, &["deadlock at", "nothing can happen any more", said, ", since"]);
    }
}

#[test]
fn two_threads_that_take_two_locks_in_two_orders_are_named_with_both() {
    fn lock(word: &Word) {
        while word.swap(1) == 1 {
            inside::park(word.address(), || word.raw() == 0, u64::MAX);
        }
    }
    let failure = fails(2, || {
        let locks = Rc::new([Word::new(0), Word::new(0)]);
        let others = Rc::clone(&locks);
        let other = spawn(move || {
            lock(&others[1]);
            inside::work(100_000);
            lock(&others[0]);
        });
        lock(&locks[0]);
        inside::work(100_000);
        lock(&locks[1]);
        inside::join(other);
    });
    assert!(matches!(failure, Failure::Deadlock { count: 2, .. }), "{failure}");
    says(
        &failure,
        &["2 threads have not ended", "thread 0 'main' is parked", "thread 1 is parked"],
    );
}

#[test]
fn a_long_list_of_waiters_is_cut() {
    let failure = fails(4, || {
        let word = Rc::new(Word::new(0));
        for _ in 0..40 {
            let word = Rc::clone(&word);
            spawn(move || {
                inside::park(word.address(), || false, u64::MAX);
            });
        }
    });
    says(&failure, &["40 threads have not ended", "and 16 more"]);
    assert_eq!(failure.to_string().lines().count(), 1 + 24 + 1);
}

#[test]
fn every_way_to_spin_for_ever_is_stopped() {
    let ways: [(&str, Stuck); 11] = [
        ("a pause", |_| {
            loop {
                inside::pause(100);
            }
        }),
        ("no pause", |_| {
            loop {
                inside::pause(0);
            }
        }),
        ("no work", |_| {
            loop {
                inside::work(0);
            }
        }),
        ("the clock", |_| while inside::now() > 0 {}),
        ("presence", |_| while inside::presence(0) == Presence::Running {}),
        ("the end of itself", |_| while !inside::has_ended(inside::current()) {}),
        ("waking no thread", |word| while inside::wake(word.address(), 1) == 0 {}),
        ("a fence", |_| {
            loop {
                inside::fence();
            }
        }),
        ("no sleep", |_| {
            loop {
                inside::sleep(0);
            }
        }),
        ("giving way", |_| {
            loop {
                inside::yield_now();
            }
        }),
        ("a word that it does not read", |word| {
            while word.raw() == 0 {
                inside::watch(word.address(), u64::MAX);
            }
        }),
    ];
    for (name, way) in ways {
        let simulation = Simulation::new(machines::modern(2)).time(Time::millis(2));
        let failure = simulation.run(move || way(&Rc::new(Word::new(0)))).unwrap_err();
        assert!(matches!(failure, Failure::Time { .. }), "{name}: {failure}");
        says(
            &failure,
            &["the run is at 2 ms of virtual time", "thread 0 'main' runs on processor 0"],
        );
    }
}

#[test]
fn two_spinners_that_take_turns_on_one_processor_are_stopped() {
    let failure = fails(1, || {
        let word = Rc::new(Word::new(0));
        for _ in 0..2 {
            let word = Rc::clone(&word);
            spawn(move || {
                while word.load() == 0 {
                    inside::watch(word.address(), u64::MAX);
                }
            });
        }
    });
    assert!(matches!(failure, Failure::Time { .. }), "{failure}");
    says(&failure, &["on processor 0", "waits for a processor"]);
}

#[test]
fn a_panic_in_a_thread_that_is_never_joined_ends_the_run() {
    let failure = fails(2, || {
        let body = || {
            inside::work(1_000);
            panic!("lost {}", "it");
        };
        inside::spawn(Some("careless".to_owned()), None, Box::new(body));
        inside::work(1_000_000);
    });
    assert!(
        matches!(&failure, Failure::Panicked { thread, .. } if thread == "thread 1 'careless'")
    );
    says(&failure, &["thread 1 'careless' panicked at", "lost it"]);
    assert!(!inside::is_running());
}

#[test]
fn a_panic_with_any_payload_ends_the_run() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("the payload is dropped");
        }
    }
    says(&fails(1, || panic_any(7)), &["the body panicked at 0 ns: a panic without a message"]);
    says(&fails(1, || panic_any(Bomb)), &["a panic without a message"]);
    says(&fails(1, || resume_unwind(Box::new("quietly"))), &["the body panicked at 0 ns: quietly"]);
}

#[test]
fn a_thread_local_destructor_that_panics_ends_the_run() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("no end");
        }
    }
    static BOMB: Local<Bomb> = Local::new(|| Bomb);
    says(&fails(1, || BOMB.with(|_| ())), &["the body panicked at", "no end"]);
}

#[test]
fn threads_outlive_the_body() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        let done = Rc::new(Word::new(0));
        let shared = Rc::clone(&done);
        spawn(move || {
            inside::sleep(1_000_000);
            shared.store(1);
        });
        done
    });
    let run = run.unwrap();
    assert_eq!(run.result.raw(), 1);
    assert!(run.statistics.elapsed > Time::micros(1_000));
    assert!(run.statistics.threads[0].life.1 < Time::micros(1_000));
}

#[test]
fn a_simulation_inside_another_is_refused_and_harms_no_run() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        let inner = Simulation::new(machines::modern(1)).run(|| ()).unwrap_err();
        says(&inner, &["a simulation was begun inside a simulation"]);
        let other = spawn(|| {
            assert!(Simulation::new(machines::modern(1)).run(|| ()).is_err());
        });
        inside::join(other);
        inside::current().index()
    });
    assert_eq!(run.unwrap().result, 0);
}

#[test]
fn simulations_side_by_side_do_not_meet() {
    let run = |seed: u64| {
        let body = move || {
            let word = Rc::new(Word::new(seed));
            let made: Vec<_> = (0..4)
                .map(|_| {
                    let word = Rc::clone(&word);
                    spawn(move || {
                        for _ in 0..200 {
                            word.add(1);
                            inside::work(inside::entropy() % 1_000);
                        }
                    })
                })
                .collect();
            made.into_iter().for_each(inside::join);
            word.raw()
        };
        let run = Simulation::new(machines::modern(2)).seed(seed).run(body).unwrap();
        (run.result, run.statistics)
    };
    let alone: Vec<_> = (0..4).map(run).collect();
    let together: Vec<_> = (0..4).map(|seed| std::thread::spawn(move || run(seed))).collect();
    for (alone, other) in alone.into_iter().zip(together) {
        assert_eq!(alone, other.join().unwrap());
    }
}

#[test]
fn thread_local_destructors_may_wait() {
    struct Last(Rc<Word>);
    impl Drop for Last {
        fn drop(&mut self) {
            inside::sleep(5_000);
            inside::yield_now();
            inside::join(spawn(|| inside::work(1_000)));
            self.0.add(1);
            inside::wake(self.0.address(), 1);
        }
    }
    static LAST: Local<RefCell<Vec<Last>>> = Local::new(|| RefCell::new(Vec::new()));
    let run = Simulation::new(machines::modern(1)).run(|| {
        let word = Rc::new(Word::new(0));
        for _ in 0..3 {
            let word = Rc::clone(&word);
            spawn(move || LAST.with(|last| last.borrow_mut().push(Last(word))));
        }
        while word.load() < 3 {
            let seen = word.raw();
            inside::park(word.address(), || word.raw() != seen, u64::MAX);
        }
    });
    let statistics = run.unwrap().statistics;
    assert_eq!(statistics.threads.len(), 1 + 3 + 3);
}

#[test]
fn unwinding_may_wait_and_others_may_panic_meanwhile() {
    struct Slow(Rc<Word>);
    impl Drop for Slow {
        fn drop(&mut self) {
            // Others run, and panic, while this thread unwinds.
            inside::sleep(10_000);
            self.0.add(1);
        }
    }
    let run = Simulation::new(machines::modern(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let made: Vec<_> = (0..4)
            .map(|number| {
                let word = Rc::clone(&word);
                spawn(move || {
                    let result = catch_unwind(AssertUnwindSafe(|| {
                        let _slow = Slow(Rc::clone(&word));
                        inside::work(number * 3_000);
                        panic!("{number}");
                    }));
                    let payload = result.map(|()| "no panic").unwrap_err();
                    assert_eq!(*payload.downcast_ref::<String>().unwrap(), number.to_string());
                })
            })
            .collect();
        made.into_iter().for_each(inside::join);
        word.raw()
    });
    assert_eq!(run.unwrap().result, 4);
    assert!(!std::thread::panicking());
}

#[test]
fn a_thread_of_another_run_cannot_be_joined() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        spawn(|| ());
        spawn(|| ())
    });
    let stranger = run.unwrap().result;
    let failure = fails(1, move || inside::join(stranger));
    says(&failure, &["thread 2 was to be joined, and the run has 1"]);
    let outside = catch_unwind(AssertUnwindSafe(|| inside::join(stranger))).unwrap_err();
    let text = outside.downcast_ref::<String>().unwrap();
    assert!(text.starts_with("JoinHandle::join was used outside a simulation"), "{text}");
}

#[test]
fn ten_thousand_threads_live_at_once() {
    const THREADS: u64 = 10_000;
    let run = Simulation::new(machines::modern(8)).stack_size(16 << 10).run(|| {
        let (gate, arrived) = (Rc::new(Word::new(0)), Rc::new(Word::new(0)));
        let made: Vec<_> = (0..THREADS)
            .map(|_| {
                let (gate, arrived) = (Rc::clone(&gate), Rc::clone(&arrived));
                spawn(move || {
                    arrived.add(1);
                    while gate.load() == 0 {
                        inside::park(gate.address(), || gate.raw() != 0, u64::MAX);
                    }
                })
            })
            .collect();
        while arrived.load() < THREADS {
            inside::sleep(1_000_000);
        }
        gate.store(1);
        inside::wake(gate.address(), usize::MAX);
        made.into_iter().for_each(inside::join);
    });
    assert_eq!(run.unwrap().statistics.threads.len() as u64, THREADS + 1);
}

#[test]
fn a_run_after_one_that_failed_is_as_if_alone() {
    let good = || Simulation::new(machines::modern(2)).run(|| Word::new(1).add(1)).unwrap();
    let before = good();
    for _ in 0..3 {
        fails(2, || inside::sleep(u64::MAX));
    }
    let after = good();
    assert_eq!((before.result, before.statistics), (after.result, after.statistics));
}

/// A waiter that reads something else between its look and its wait misses no write: not under
/// updates, which leave its copy in place.
#[test]
fn a_write_between_a_look_and_the_wait_is_not_missed() {
    for machine in [machines::firefly(), machines::modern(2), machines::symmetry_a(2)] {
        let name = machine.name.clone();
        let run = Simulation::new(machine).time(Time::millis(1_000)).run(|| {
            let (word, other) = (Rc::new(Word::new(0)), Rc::new(Word::new(0)));
            let ready = Rc::new(Word::new(0));
            let (to_write, looked) = (Rc::clone(&word), Rc::clone(&ready));
            let writer = spawn(move || {
                while looked.load() == 0 {
                    inside::pause(1);
                }
                to_write.store(1);
            });
            assert_eq!(word.load(), 0);
            ready.store(1);
            inside::work(10_000_000);
            other.load();
            inside::watch(word.address(), u64::MAX);
            assert_eq!(word.load(), 1);
            inside::join(writer);
        });
        assert!(run.is_ok(), "{name}: {}", run.unwrap_err());
    }
}

#[test]
fn a_thread_that_moves_gets_its_processor_from_a_spinner() {
    let run = Simulation::new(machines::modern(2)).time(Time::millis(1_000)).run(|| {
        let (word, here) = (Rc::new(Word::new(0)), Rc::new(Word::new(0)));
        let (watched, there) = (Rc::clone(&word), Rc::clone(&here));
        let body = move || {
            there.store(1);
            while watched.load() == 0 {
                inside::watch(watched.address(), u64::MAX);
            }
        };
        let spinner = inside::spawn(None, Some(1), Box::new(body));
        while here.load() == 0 {
            inside::watch(here.address(), u64::MAX);
        }
        inside::work(100_000);
        inside::pin(Some(1));
        assert_eq!(inside::processor(), 1);
        assert_eq!(inside::presence(spinner.index()), Presence::Preempted);
        word.store(1);
        inside::join(spinner);
    });
    run.unwrap();
}

#[test]
fn a_thread_that_gives_way_to_a_pinned_thread_takes_an_idle_processor() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        assert_eq!(inside::processor(), 0);
        let pinned = inside::spawn(None, Some(0), Box::new(|| inside::work(2_000_000)));
        inside::yield_now();
        inside::yield_now();
        assert_eq!((inside::processor(), inside::presence(pinned.index())), (1, Presence::Running));
    });
    let statistics = run.unwrap().statistics;
    assert!(statistics.threads[0].times.of(Activity::Ready) < Time::micros(10));
}

#[test]
fn many_timed_looks_at_one_word_leave_nothing_behind() {
    let run = Simulation::new(machines::modern(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let (watched, looks) = (Rc::clone(&word), Rc::new(Cell::new(0)));
        let counted = Rc::clone(&looks);
        let watcher = spawn(move || {
            while watched.load() == 0 {
                inside::watch(watched.address(), 100);
                counted.set(counted.get() + 1);
            }
        });
        inside::work(1_000_000);
        word.store(1);
        inside::join(watcher);
        let parked = inside::park(word.address(), || false, inside::now() + 1_000);
        assert_eq!(parked, Parked::TimedOut);
        looks.get()
    });
    assert!(run.unwrap().result > 5_000);
}
