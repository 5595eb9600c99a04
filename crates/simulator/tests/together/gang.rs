//! Gangs that run slot by slot.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Presence};
use stanchion_simulator::os::gang;
use stanchion_simulator::{
    Activity, Failure, Machine, Run, Simulation, Span, ThreadId, Time, machines,
};
use std::rc::Rc;

const MS: u64 = 1_000_000;

/// The Makbilan, but with caches, in which spinning makes no events.
fn machine(processors: usize) -> Machine {
    Machine { processors, memory: machines::firefly().memory, ..machines::makbilan() }
}

/// A gang of one thread for each processor.
fn gang(slot: usize, processors: usize, body: impl Fn(usize) + 'static) -> Vec<ThreadId> {
    let body = Rc::new(body);
    (0..processors)
        .map(|processor| {
            let body = Rc::clone(&body);
            gang::spawn(None, (slot, processor), Box::new(move || body(processor)))
        })
        .collect()
}

/// A barrier that is spun at.
struct Barrier {
    /// The number of threads that have arrived.
    arrived: Word,
    /// The number of the round.
    round: Word,
    /// The number of threads.
    count: u64,
}

impl Barrier {
    fn new(count: u64) -> Self {
        Self { arrived: Word::new(0), round: Word::new(0), count }
    }

    fn wait(&self) {
        let round = self.round.load();
        if self.arrived.add(1) + 1 == self.count {
            self.arrived.store(0);
            self.round.store(round + 1);
        } else {
            while self.round.load() == round {
                inside::watch(self.round.address(), u64::MAX);
            }
        }
    }
}

fn running(spans: &[Span], threads: &[usize]) -> Vec<(Time, Time)> {
    let on = spans.iter().filter(|span| span.processor.is_some() && threads.contains(&span.thread));
    on.map(|span| (span.start, span.end)).collect()
}

#[test]
fn slots_take_turns_and_their_threads_run_together() {
    let run = Simulation::new(machine(5)).timeline().run(|| {
        inside::pin(Some(4));
        gang::rotate(Some(Time::millis(50)));
        for slot in 0..3 {
            gang(slot, 4, |_| inside::work(200 * MS));
        }
    });
    let run = run.unwrap();
    let spans = run.timeline.unwrap();
    // The threads of one slot begin their slices within the skew and a switch of one another.
    let slack = Time::micros(300);
    // While they are made, and when the first have ended, an entry is empty, and its processor runs
    // what else there is.
    let over = run.statistics.threads[1..].iter().map(|thread| thread.life.1).min().unwrap();
    let made = run.statistics.threads.last().unwrap().life.0 + Time::millis(50);
    let slots: Vec<Vec<(Time, Time)>> = (0..3)
        .map(|slot| (1 + slot * 4..5 + slot * 4).collect::<Vec<_>>())
        .map(|threads| running(spans.spans(), &threads))
        .map(|slot| slot.into_iter().filter(|(start, end)| *start > made && *end < over).collect())
        .collect();
    for (number, slot) in slots.iter().enumerate() {
        for other in slots.iter().skip(number + 1) {
            for (start, end) in slot {
                let overlap = |(from, to): &(Time, Time)| (*to).min(*end) - (*from).max(*start);
                let together = other.iter().map(overlap).max().unwrap_or_default();
                assert!(together <= slack, "two slots at once for {together}");
            }
        }
    }
    let elapsed = run.statistics.elapsed;
    assert!(elapsed > Time::millis(600) && elapsed < Time::millis(640), "{elapsed}");
    for thread in &run.statistics.threads[1..] {
        assert_eq!(thread.times.of(Activity::Useful), Time::millis(200));
        assert!(thread.preemptions >= 3 && thread.migrations <= 1, "{thread:?}");
    }
}

/// The purpose of gangs: threads that interact finely, beside others, wait for one another only as
/// long as on a machine of their own.
#[test]
fn fine_interactions_need_gangs() {
    let elapsed = |gangs: bool| {
        let run = Simulation::new(machine(5)).time(Time::millis(100_000)).run(move || {
            inside::pin(Some(4));
            if gangs {
                gang::rotate(Some(Time::millis(50)));
            }
            // As in section 3.3: so that the processors do not happen to switch together.
            for processor in 0..4 {
                let body = move || inside::work(processor as u64 * 15 * MS);
                inside::spawn(None, Some(processor), Box::new(body));
            }
            for slot in 0..3 {
                let barrier = Rc::new(Barrier::new(4));
                let body = move |_| {
                    for _ in 0..500 {
                        inside::work(MS / 10);
                        barrier.wait();
                    }
                };
                if gangs {
                    gang(slot, 4, body);
                } else {
                    let body = Rc::new(body);
                    for processor in 0..4 {
                        let body = Rc::clone(&body);
                        inside::spawn(None, Some(processor), Box::new(move || body(processor)));
                    }
                }
            }
        });
        run.unwrap().statistics.elapsed
    };
    let (with, without) = (elapsed(true), elapsed(false));
    assert!(with.as_picos() * 4 < without.as_picos(), "{with} with gangs, {without} without");
}

#[test]
fn a_slot_that_cannot_run_leaves_at_once() {
    let run = Simulation::new(machine(2)).run(|| {
        gang::rotate(Some(Time::millis(1_000)));
        let gate = Rc::new(Word::new(0));
        let shut = Rc::clone(&gate);
        let blocked = gang(0, 2, move |_| {
            while shut.load() == 0 {
                inside::park(shut.address(), || shut.raw() != 0, u64::MAX);
            }
            assert_eq!(gang::slot(), 0);
        });
        let worker = gang(1, 2, |_| {
            inside::work(20 * MS);
            assert_eq!(gang::slot(), 1);
        });
        worker.into_iter().for_each(inside::join);
        gate.store(1);
        inside::wake(gate.address(), 2);
        blocked.into_iter().for_each(inside::join);
        gang::broadcasts()
    });
    let run = run.unwrap();
    assert!(run.statistics.elapsed < Time::millis(60), "{}", run.statistics.elapsed);
    assert!(run.result >= 2, "to slot 1 and back: {}", run.result);
}

#[test]
fn an_empty_place_runs_what_else_is_ready() {
    let run = Simulation::new(machine(2)).run(|| {
        gang::rotate(Some(Time::millis(20)));
        // Processor 1 has nothing in slot 0, so the thread of slot 1 runs there in both.
        gang::spawn(None, (0, 0), Box::new(|| inside::work(100 * MS)));
        gang::spawn(None, (1, 0), Box::new(|| inside::work(100 * MS)));
        gang::spawn(None, (1, 1), Box::new(|| inside::work(150 * MS)));
    });
    let threads = run.unwrap().statistics.threads;
    let waited = threads[3].times.of(Activity::Ready);
    assert!(waited < Time::millis(5), "{waited}");
    assert!(threads[1].times.of(Activity::Ready) > Time::millis(50));
}

#[test]
fn the_slots_thread_takes_its_processor_back_when_it_wakes() {
    let run = Simulation::new(machine(2)).run(|| {
        let gate = Rc::new(Word::new(0));
        let shut = Rc::clone(&gate);
        let first = gang::spawn(
            None,
            (0, 1),
            Box::new(move || {
                inside::park(shut.address(), || shut.raw() != 0, u64::MAX);
                inside::work(MS);
            }),
        );
        inside::work(5 * MS);
        // It computes for longer than anything here lasts.
        let other = inside::spawn(None, Some(1), Box::new(|| inside::work(400 * MS)));
        inside::work(5 * MS);
        assert_eq!(inside::presence(other.index()), Presence::Running);
        inside::wake(gate.address(), 1);
        inside::work(MS / 2);
        assert_eq!(inside::presence(other.index()), Presence::Preempted);
        assert_eq!(inside::presence(first.index()), Presence::Running);
        inside::join(first);
        let before = inside::now();
        assert_eq!(inside::presence(other.index()), Presence::Running);
        before
    });
    let statistics = run.unwrap().statistics;
    let useful = statistics.threads[2].times.of(Activity::Useful);
    assert_eq!(useful, Time::millis(400), "what an interrupt cuts is not lost");
    assert_eq!(statistics.threads[2].preemptions, 1);
}

#[test]
fn a_coordinator_of_the_programs_own_switches_by_its_own_alarm() {
    let run = Simulation::new(machine(3)).run(|| {
        let turns = Rc::new(Word::new(0));
        for slot in 0..2 {
            let turns = Rc::clone(&turns);
            gang(slot, 2, move |_| {
                for _ in 0..10 {
                    inside::work(3 * MS);
                    turns.add(gang::slot() as u64);
                }
            });
        }
        inside::pin(Some(2));
        for turn in 1..=8 {
            inside::work(10 * MS);
            gang::switch_to(turn % 2);
        }
        gang::broadcasts()
    });
    assert_eq!(run.unwrap().result, 8);
}

#[test]
fn broadcasts_arrive_late_and_not_all_at_once() {
    let starts = |interrupt, skew| {
        let mut machine = machine(4);
        machine.scheduling.switch = Time::ZERO;
        machine.scheduling.interrupt = interrupt;
        machine.scheduling.skew = skew;
        let run: Run<()> = Simulation::new(machine)
            .timeline()
            .run(|| {
                inside::pin(Some(3));
                gang(0, 3, |_| inside::work(30 * MS));
                gang(1, 3, |_| inside::work(30 * MS));
                gang::switch_to(0);
                inside::work(10 * MS);
                gang::switch_to(1);
            })
            .unwrap();
        let at = run.statistics.threads[0].life.1;
        let spans = run.timeline.unwrap();
        (4..7)
            .map(|thread| {
                let mut runs = running(spans.spans(), &[thread]).into_iter();
                runs.find(|(_, end)| *end > at).unwrap().0 - at
            })
            .collect::<Vec<_>>()
    };
    let exact = starts(Time::micros(100), Time::ZERO);
    assert_eq!(exact, [Time::micros(100); 3]);
    let skewed = starts(Time::micros(100), Time::micros(50));
    let within = |late: &Time| *late >= Time::micros(100) && *late <= Time::micros(150);
    assert!(skewed.iter().all(within) && skewed[0] != skewed[1], "{skewed:?}");
}

#[test]
fn a_gang_that_stands_still_is_a_deadlock() {
    let failure = Simulation::new(machine(2))
        .run(|| {
            gang::rotate(Some(Time::millis(50)));
            for slot in 0..2 {
                gang(slot, 2, |_| {
                    let word = Word::new(0);
                    inside::park(word.address(), || false, u64::MAX);
                });
            }
        })
        .unwrap_err();
    assert!(matches!(failure, Failure::Deadlock { count: 4, .. }), "{failure}");
}

#[test]
fn a_released_thread_runs_anywhere() {
    let run = Simulation::new(machine(2)).run(|| {
        let main = inside::current();
        gang::assign(main, 0, 1);
        assert_eq!((inside::processor(), gang::slot()), (1, 0));
        gang::assign(main, 3, 0);
        assert_eq!(inside::processor(), 0);
        gang::release(main);
        assert_eq!(inside::pin(None), None);
    });
    run.unwrap();
}

#[test]
fn impossible_places_are_refused() {
    let cases: [(fn(), &str); 6] = [
        (|| gang::assign(inside::current(), 0, 9), "processor 9 was asked for"),
        (|| gang::assign(inside::current(), 512, 0), "slot 512 was asked for, and there are 512"),
        (
            || {
                gang::spawn(None, (1, 1), Box::new(|| ()));
                gang::assign(inside::current(), 1, 1);
            },
            "processor 1 of slot 1 is thread 1's, and thread 0 was to have it",
        ),
        (
            || {
                let made = inside::spawn(None, None, Box::new(|| ()));
                inside::join(made);
                gang::assign(made, 0, 0);
            },
            "thread 1 was to join a gang, and has ended",
        ),
        (
            || gang::rotate(Some(Time::micros(200))),
            "a slot was to have the processors for 200 us, and a broadcast and a switch take 230 us",
        ),
        (|| gang::switch_to(512), "slot 512 was asked for"),
    ];
    for (case, said) in cases {
        let failure = Simulation::new(machine(2)).run(case).unwrap_err();
        assert!(failure.to_string().contains(said), "{failure}");
    }
    let mut shared = machine(2);
    shared.scheduling.applications = 2;
    let failure =
        Simulation::new(shared).run(|| gang::assign(inside::current(), 0, 0)).unwrap_err();
    assert!(failure.to_string().contains("gangs are alone on a machine"), "{failure}");
}

#[test]
fn the_same_seed_gives_the_same_turns() {
    let run = |seed| {
        let run = Simulation::new(machine(4)).seed(seed).timeline().run(|| {
            gang::rotate(Some(Time::millis(10)));
            for slot in 0..3 {
                let barrier = Rc::new(Barrier::new(4));
                gang(slot, 4, move |_| {
                    for _ in 0..20 {
                        inside::work(inside::entropy() % MS);
                        barrier.wait();
                    }
                });
            }
        });
        let run = run.unwrap();
        (run.statistics, run.timeline)
    };
    assert!(run(1) == run(1), "the same seed, another run");
    assert!(run(1) != run(2), "the skew is from the seed");
}
