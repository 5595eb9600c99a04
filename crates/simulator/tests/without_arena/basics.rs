//! Threads, time, sleeping and spinning on a simulated machine, through the interface that a
//! backend uses.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Parked, Presence};
use stanchion_simulator::{Activity, Failure, Machine, Simulation, ThreadId, Time, machines};
use std::cell::RefCell;
use std::rc::Rc;

fn machine(processors: usize) -> Machine {
    machines::modern(processors)
}

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

#[test]
fn computation_takes_its_time_and_nothing_else() {
    let run = Simulation::new(machine(1)).run(|| inside::work(1_000)).unwrap();
    let times = run.statistics.threads[0].times;
    assert_eq!(times.of(Activity::Useful), Time::nanos(1_000));
    assert_eq!(times.of(Activity::Spinning), Time::ZERO);
    assert_eq!(run.statistics.accesses.all, 0);
}

#[test]
fn threads_run_side_by_side() {
    let elapsed = |threads: usize| {
        let run = Simulation::new(machine(8)).run(move || {
            let made: Vec<_> = (0..threads).map(|_| spawn(|| inside::work(1_000_000))).collect();
            made.into_iter().for_each(inside::join);
        });
        run.unwrap().statistics.elapsed
    };
    assert!(elapsed(7) < Time::micros(1_200), "{}", elapsed(7));
    assert!(elapsed(16) >= Time::micros(2_000), "{}", elapsed(16));
}

#[test]
fn increments_are_not_lost_and_plain_reads_and_writes_lose_some() {
    let total = |atomic: bool| {
        let run = Simulation::new(machine(4)).run(move || {
            let word = Rc::new(Word::new(0));
            let made: Vec<_> = (0..4)
                .map(|_| {
                    let word = Rc::clone(&word);
                    spawn(move || {
                        for _ in 0..5_000 {
                            if atomic {
                                word.add(1);
                            } else {
                                let seen = word.load();
                                inside::work(50);
                                word.store(seen + 1);
                            }
                        }
                    })
                })
                .collect();
            made.into_iter().for_each(inside::join);
            word.load()
        });
        run.unwrap().result
    };
    assert_eq!(total(true), 20_000);
    assert!(total(false) < 20_000);
}

#[test]
fn a_spinner_costs_no_accesses_and_sees_the_write_when_it_is_done() {
    let run = Simulation::new(machine(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let writer = {
            let word = Rc::clone(&word);
            spawn(move || {
                inside::work(5_000_000);
                word.store(1);
            })
        };
        let mut looks = 0;
        while word.load() == 0 {
            looks += 1;
            inside::watch(word.address(), u64::MAX);
        }
        inside::join(writer);
        looks
    });
    let run = run.unwrap();
    assert!(run.result <= 2, "looked {} times", run.result);
    let spun = run.statistics.threads[0].times.of(Activity::Spinning);
    assert!(spun > Time::micros(4_900) && spun < Time::micros(5_200), "{spun}");
}

#[test]
fn watching_ends_when_its_time_is_up() {
    let run = Simulation::new(machine(1)).run(|| {
        let word = Word::new(0);
        word.load();
        let before = inside::now();
        let passed = inside::watch(word.address(), 3_000);
        (passed, inside::now() - before)
    });
    assert_eq!(run.unwrap().result, (3_000, 3_000));
}

#[test]
fn a_parked_thread_is_woken_or_times_out_or_need_not_park() {
    let run = Simulation::new(machine(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let sleeper = {
            let word = Rc::clone(&word);
            spawn(move || {
                let parked = inside::park(word.address(), || word.raw() != 0, u64::MAX);
                assert_eq!(parked, Parked::Woken);
                assert_eq!(word.load(), 1);
                let parked = inside::park(word.address(), || word.raw() != 0, u64::MAX);
                assert_eq!(parked, Parked::Changed);
            })
        };
        inside::work(1_000_000);
        word.store(1);
        assert_eq!(inside::wake(word.address(), 5), 1);
        assert_eq!(inside::wake(word.address(), 5), 0);
        inside::join(sleeper);
        let before = inside::now();
        let parked = inside::park(word.address(), || false, before + 10_000);
        assert_eq!(parked, Parked::TimedOut);
        assert!(inside::now() >= before + 10_000);
        assert_eq!(inside::park(word.address(), || false, before), Parked::TimedOut);
        assert_eq!(inside::wake(word.address(), 1), 0, "it timed out and is not asleep");
    });
    run.unwrap();
}

#[test]
fn sleepers_wake_in_the_order_in_which_they_came() {
    let run = Simulation::new(machine(4)).run(|| {
        let (word, order) = (Rc::new(Word::new(0)), Rc::new(std::cell::RefCell::new(Vec::new())));
        let sleepers: Vec<_> = (0..3)
            .map(|number| {
                let (word, order) = (Rc::clone(&word), Rc::clone(&order));
                let made = spawn(move || {
                    inside::park(word.address(), || false, u64::MAX);
                    order.borrow_mut().push(number);
                });
                inside::work(100_000);
                made
            })
            .collect();
        for _ in 0..3 {
            inside::wake(word.address(), 1);
            inside::work(1_000_000);
        }
        sleepers.into_iter().for_each(inside::join);
        order.take()
    });
    assert_eq!(run.unwrap().result, [0, 1, 2]);
}

#[test]
fn a_deadlock_names_the_threads_and_what_they_wait_for() {
    let failure = Simulation::new(machine(2))
        .run(|| {
            let word = Rc::new(Word::new(0));
            let sleeper = {
                let word = Rc::clone(&word);
                inside::spawn(
                    Some("sleeper".to_owned()),
                    None,
                    Box::new(move || {
                        inside::park(word.address(), || false, u64::MAX);
                    }),
                )
            };
            let spinner = {
                let word = Rc::clone(&word);
                spawn(move || {
                    while word.load() == 0 {
                        inside::watch(word.address(), u64::MAX);
                    }
                })
            };
            inside::join(sleeper);
            inside::join(spinner);
        })
        .unwrap_err();
    assert!(matches!(failure, Failure::Deadlock { count: 3, .. }), "{failure}");
    let text = failure.to_string();
    for part in [
        "thread 0 'main' waits for the end of thread 1 'sleeper'",
        "thread 1 'sleeper' is parked on",
        "thread 2 spins on processor",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn a_program_that_spins_for_ever_is_stopped() {
    let failure = Simulation::new(machine(1)).time(Time::millis(5)).run(|| {
        loop {
            inside::pause(100)
        }
    });
    let failure = failure.map(|run| run.statistics).unwrap_err();
    assert!(matches!(failure, Failure::Time { .. }), "{failure}");
    let failure = Simulation::new(machine(1)).accesses(1_000).run(|| {
        let word = Word::new(0);
        loop {
            word.add(1);
        }
    });
    let failure = failure.map(|run: stanchion_simulator::Run<()>| run.statistics).unwrap_err();
    assert!(matches!(failure, Failure::Accesses { limit: 1_000, .. }), "{failure}");
}

#[test]
fn a_panic_is_reported_and_a_simulation_inside_another_refused() {
    let failure = Simulation::new(machine(1))
        .run(|| panic!("no {}", 7))
        .map(|run: stanchion_simulator::Run<()>| run.statistics);
    assert_eq!(failure.unwrap_err().to_string(), "the body panicked at 0 ns: no 7");
    let run = Simulation::new(machine(1)).run(|| Simulation::new(machine(1)).run(|| ()).is_err());
    assert!(run.unwrap().result);
    assert!(!inside::is_running());
}

#[test]
fn threads_take_turns_where_processors_are_few() {
    let run = Simulation::new(machine(2)).run(|| {
        let word = Rc::new(Word::new(0));
        let spinners: Vec<_> = (0..4)
            .map(|_| {
                let word = Rc::clone(&word);
                spawn(move || {
                    while word.load() == 0 {
                        inside::watch(word.address(), u64::MAX);
                    }
                })
            })
            .collect();
        inside::work(200_000_000);
        word.store(1);
        spinners.into_iter().for_each(inside::join);
    });
    let run = run.unwrap();
    assert!(run.statistics.threads[0].preemptions > 5, "the body shares its processor");
    let ready = run.statistics.threads[1].times.of(Activity::Ready);
    assert!(ready > Time::millis(50), "a spinner waits for a processor: {ready}");
}

#[test]
fn other_applications_take_their_share() {
    let elapsed = |applications| {
        let mut machine = machine(1);
        machine.scheduling.applications = applications;
        let run = Simulation::new(machine).run(|| inside::work(1_000_000_000));
        run.unwrap().statistics.elapsed
    };
    let (alone, third) = (elapsed(1), elapsed(3));
    assert_eq!(alone, Time::millis(1_000));
    assert!(third > Time::millis(2_900) && third < Time::millis(3_100), "{third}");
}

/// All processors begin with this application. If each then waited for both of the others, none
/// would have it in the second quantum.
#[test]
fn the_turns_of_processors_are_spread_over_the_round_of_all_applications() {
    let mut machine = machine(16);
    machine.scheduling.applications = 3;
    let quantum = machine.scheduling.quantum;
    let step = quantum.as_nanos() / 10;
    let run = Simulation::new(machine).run(move || {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let made: Vec<_> = (0..16)
            .map(|_| {
                let seen = Rc::clone(&seen);
                spawn(move || {
                    for _ in 0..20 {
                        inside::work(step);
                        seen.borrow_mut().push(inside::time());
                    }
                })
            })
            .collect();
        made.into_iter().for_each(inside::join);
        seen.take()
    });
    let second = quantum + Time::nanos(2 * step)..quantum * 2;
    assert!(run.unwrap().result.iter().any(|at| second.contains(at)));
}

#[test]
fn a_pinned_thread_stays_and_another_moves_to_an_idle_processor() {
    let run = Simulation::new(machine(4)).run(|| {
        let pinned = inside::spawn(None, Some(3), Box::new(|| assert_eq!(inside::processor(), 3)));
        inside::join(pinned);
        assert_eq!(inside::pin(Some(2)), None);
        assert_eq!(inside::processor(), 2);
        assert_eq!(inside::pin(None), Some(2));
    });
    run.unwrap();
    let failure = Simulation::new(machine(2)).run(|| inside::pin(Some(2))).unwrap_err();
    assert!(failure.to_string().contains("processor 2 was asked for"), "{failure}");
}

#[test]
fn presence_is_exact() {
    let run = Simulation::new(machine(1)).run(|| {
        let word = Rc::new(Word::new(0));
        let other = {
            let word = Rc::clone(&word);
            spawn(move || {
                inside::park(word.address(), || false, u64::MAX);
            })
        };
        inside::work(1_000);
        assert_eq!(inside::presence(other.index()), Presence::Preempted);
        inside::sleep(1_000_000);
        assert_eq!(inside::presence(other.index()), Presence::Blocked);
        assert_eq!(inside::presence(0), Presence::Running);
        inside::wake(word.address(), 1);
        inside::work(100_000);
        assert_eq!(inside::presence(other.index()), Presence::Woken);
        inside::join(other);
        assert_eq!(inside::presence(other.index()), Presence::Ended);
        assert_eq!(inside::presence(99), Presence::Ended);
    });
    run.unwrap();
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_may_not() {
    let run = |seed| {
        let mut machine = machine(3);
        machine.scheduling.applications = 2;
        let run = Simulation::new(machine).seed(seed).timeline().run(|| {
            let word = Rc::new(Word::new(0));
            let made: Vec<_> = (0..5)
                .map(|_| {
                    let word = Rc::clone(&word);
                    spawn(move || {
                        for _ in 0..50 {
                            word.add(1);
                            inside::work(inside::entropy() % 1_000_000);
                        }
                    })
                })
                .collect();
            made.into_iter().for_each(inside::join);
        });
        let run = run.unwrap();
        (run.statistics, run.timeline)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

#[test]
fn ten_thousand_threads_are_made_and_one_too_many_is_refused() {
    let run = Simulation::new(machine(64)).stack_size(16 << 10).run(|| {
        let word = Rc::new(Word::new(0));
        let made: Vec<_> = (0..10_000)
            .map(|_| {
                let word = Rc::clone(&word);
                spawn(move || {
                    word.add(1);
                })
            })
            .collect();
        made.into_iter().for_each(inside::join);
        word.load()
    });
    assert_eq!(run.unwrap().result, 10_000);
    let failure = Simulation::new(machine(1)).threads(2).run(|| {
        spawn(|| ());
        spawn(|| ());
    });
    assert!(failure.unwrap_err().to_string().contains("more than 2 threads"));
}

#[test]
fn statics_are_each_threads_or_each_runs_own() {
    static MINE: inside::Local<std::cell::Cell<u32>> =
        inside::Local::new(|| std::cell::Cell::new(0));
    // SAFETY: a static; no reference is kept.
    static OURS: inside::Global<Word> = unsafe { inside::Global::new(|| Word::new(0)) };
    for _ in 0..2 {
        let run = Simulation::new(machine(2)).run(|| {
            let made: Vec<_> = (0..3)
                .map(|_| {
                    spawn(|| {
                        MINE.with(|mine| mine.set(mine.get() + 1));
                        assert_eq!(MINE.with(std::cell::Cell::get), 1);
                        OURS.add(1);
                    })
                })
                .collect();
            made.into_iter().for_each(inside::join);
            OURS.load()
        });
        assert_eq!(run.unwrap().result, 3);
    }
}

#[test]
fn what_needs_a_run_says_so_outside_one() {
    let calls: [(&str, fn()); 5] = [
        ("the clock", || {
            let _ = inside::now();
        }),
        ("machine::work", || inside::work(1)),
        ("thread::spawn", || {
            spawn(|| ());
        }),
        ("thread::sleep", || inside::sleep(1)),
        ("the current thread", || {
            let _ = inside::current();
        }),
    ];
    for (name, call) in calls {
        let panic = std::panic::catch_unwind(call).unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.starts_with(name) && text.contains("outside a simulation"), "{name}: {text}");
    }
}
