//! Threads that ask not to be preempted, and for how long they are heard.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Presence};
use stanchion_simulator::os::keep;
use stanchion_simulator::{Activity, Machine, Simulation, Statistics, ThreadId, Time, machines};
use std::rc::Rc;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// Slices of 1 ms and a grace of 200 us.
fn machine(processors: usize) -> Machine {
    let mut machine = machines::modern(processors);
    machine.scheduling.quantum = Time::micros(1_000);
    machine.scheduling.grace = Time::micros(200);
    machine
}

/// One processor, a rival that computes, and `body`.
fn contend(body: impl FnOnce() + 'static) -> Statistics {
    let run = Simulation::new(machine(1)).run(|| {
        let made = spawn(body);
        let rival = spawn(|| inside::work(20_000_000));
        inside::join(made);
        inside::join(rival);
    });
    run.unwrap().statistics
}

#[test]
fn a_short_section_is_not_preempted() {
    let with = contend(|| {
        for _ in 0..2_000 {
            keep::begin();
            inside::work(5_000);
            keep::end();
        }
    });
    let one = &with.threads[1];
    assert!(one.graces >= 5, "{one:?}");
    assert_eq!(one.breaches, 0);
    assert_eq!(one.preemptions, one.graces, "it gives way when its section is over");

    let without = contend(|| inside::work(10_000_000));
    let one = &without.threads[1];
    assert!(one.preemptions >= 5 && one.graces == 0, "{one:?}");
}

#[test]
fn the_grace_is_bounded_for_a_thread_that_computes_reads_and_spins() {
    type Way = fn(&Word);
    let ways: [(&str, Way); 3] = [
        ("computes", |_| inside::work(5_000_000)),
        ("reads", |word| {
            let begin = inside::now();
            while inside::now() < begin + 5_000_000 {
                word.load();
                inside::work(2_000);
            }
        }),
        ("spins", |word| {
            let begin = inside::now();
            while inside::now() < begin + 5_000_000 {
                word.load();
                inside::watch(word.address(), begin + 5_000_000 - inside::now());
            }
        }),
    ];
    for (name, way) in ways {
        let statistics = contend(move || {
            let word = Word::new(0);
            keep::begin();
            way(&word);
            keep::end();
        });
        let one = &statistics.threads[1];
        assert!(one.graces >= 2, "{name}: {one:?}");
        assert!(one.breaches >= 2 && one.breaches <= one.preemptions, "{name}: {one:?}");
    }
}

#[test]
fn the_holder_stays_for_its_slice_and_its_grace_and_no_longer() {
    let mut machine = machine(1);
    machine.scheduling.switch = Time::ZERO;
    let run = Simulation::new(machine).timeline().run(|| {
        keep::begin();
        spawn(|| inside::work(10_000_000));
        inside::work(10_000_000);
    });
    let run = run.unwrap();
    let timeline = run.timeline.unwrap();
    let first: Time = timeline
        .spans()
        .iter()
        .take_while(|span| span.thread == 0)
        .filter(|span| span.processor.is_some())
        .map(|span| span.end - span.start)
        .sum();
    assert_eq!(first, Time::micros(1_200));
}

#[test]
fn a_warned_thread_knows_it_and_gives_way_at_the_end_of_all_its_sections() {
    let run = Simulation::new(machine(1)).run(|| {
        let rival = spawn(|| inside::work(3_000_000));
        keep::begin();
        keep::begin();
        assert!(!keep::is_warned());
        inside::work(1_050_000);
        assert!(keep::is_warned(), "the slice is over");
        assert_eq!(inside::presence(rival.index()), Presence::Preempted);
        assert!(!keep::end(), "a section is left");
        assert!(keep::is_warned());
        let before = inside::now();
        assert!(keep::end());
        assert!(inside::now() >= before + 1_000_000, "the rival had its slice");
        assert!(!keep::is_warned());
    });
    let one = &run.unwrap().statistics.threads[0];
    assert_eq!((one.graces, one.breaches), (1, 0));
}

#[test]
fn a_thread_alone_is_not_warned() {
    let run = Simulation::new(machine(1)).run(|| {
        keep::begin();
        inside::work(10_000_000);
        assert!(!keep::is_warned());
        assert!(!keep::end());
    });
    let one = &run.unwrap().statistics.threads[0];
    assert_eq!((one.graces, one.breaches, one.preemptions), (0, 0, 0));
}

#[test]
fn other_applications_wait_as_well() {
    let run = |keeps: bool| {
        let mut machine = machine(1);
        machine.scheduling.applications = 3;
        let run = Simulation::new(machine).run(move || {
            for _ in 0..1_000 {
                if keeps {
                    keep::begin();
                }
                let before = inside::now();
                inside::work(10_000);
                if keeps {
                    assert_eq!(inside::now() - before, 10_000, "a section is not torn");
                    keep::end();
                }
            }
        });
        run.unwrap().statistics
    };
    let (plain, kept) = (run(false), run(true));
    assert!(plain.threads[0].preemptions >= 9 && plain.threads[0].graces == 0);
    let one = &kept.threads[0];
    assert!(one.graces >= 8 && one.breaches == 0 && one.preemptions == one.graces, "{one:?}");
    assert!(kept.elapsed > Time::millis(25), "the others had their time: {}", kept.elapsed);
}

#[test]
fn a_thread_that_blocks_gives_its_processor_up() {
    let run = Simulation::new(machine(1)).run(|| {
        let word = Rc::new(Word::new(0));
        let other = Rc::clone(&word);
        let waker = spawn(move || {
            other.store(1);
            inside::wake(other.address(), 1);
        });
        keep::begin();
        while word.load() == 0 {
            inside::park(word.address(), || word.raw() != 0, u64::MAX);
        }
        keep::end();
        inside::join(waker);
    });
    run.unwrap();
}

/// The purpose of the protocol: the holder of a spin lock is not preempted, so no thread spins for
/// a slice.
#[test]
fn spinners_waste_less_when_the_holder_keeps_its_processor() {
    let spun = |keeps: bool| {
        let run = Simulation::new(machine(2)).run(move || {
            let lock = Rc::new(Word::new(0));
            let made: Vec<_> = (0..6)
                .map(|_| {
                    let lock = Rc::clone(&lock);
                    spawn(move || {
                        for _ in 0..300 {
                            if keeps {
                                keep::begin();
                            }
                            while lock.swap(1) == 1 {
                                if keeps {
                                    keep::end();
                                }
                                while lock.load() == 1 {
                                    inside::watch(lock.address(), u64::MAX);
                                }
                                if keeps {
                                    keep::begin();
                                }
                            }
                            inside::work(20_000);
                            lock.store(0);
                            if keeps {
                                keep::end();
                            }
                            inside::work(10_000);
                        }
                    })
                })
                .collect();
            made.into_iter().for_each(inside::join);
        });
        let statistics = run.unwrap().statistics;
        let times = statistics.threads.iter().map(|thread| thread.times.of(Activity::Spinning));
        (times.sum::<Time>(), statistics.elapsed)
    };
    let (plain, kept) = (spun(false), spun(true));
    assert!(kept.1 < plain.1, "{} {}", kept.1, plain.1);
    assert!(kept.0.as_picos() * 2 < plain.0.as_picos(), "{} {}", kept.0, plain.0);
}

#[test]
fn the_request_costs_a_write_each_time_and_is_the_threads_own() {
    let run = Simulation::new(machine(2)).run(|| {
        keep::begin();
        keep::end();
        let other = spawn(|| {
            keep::begin();
            keep::end();
        });
        inside::join(other);
    });
    let statistics = run.unwrap().statistics;
    assert_eq!(statistics.accesses.all, 4);
    assert_eq!(statistics.accesses.transfers, 0);
    assert_eq!(statistics.accesses.exchanges, 0);
}

#[test]
fn a_request_that_was_not_made_cannot_be_taken_back() {
    let failure = Simulation::new(machine(1)).run(keep::end).unwrap_err();
    let said = "thread 0 took back a request not to be preempted that it had not made";
    assert!(failure.to_string().ends_with(said), "{failure}");
    let outside = std::panic::catch_unwind(keep::begin).unwrap_err();
    let text = outside.downcast_ref::<String>().unwrap();
    assert!(
        text.starts_with("a request not to be preempted was used outside a simulation"),
        "{text}"
    );
}
