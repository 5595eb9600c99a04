//! Barriers that interrupt other processors: the time of the one that asks, and what each other one
//! loses.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use common::Word;
use stanchion_simulator::machine::Membarrier;
use stanchion_simulator::{Machine, Simulation, Statistics, ThreadId, Time, inside, machines};

fn spawn(processor: usize, body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, Some(processor), Box::new(body))
}

/// Computes until the machine's clock shows `at`, or a little later.
fn until(at: Time) {
    inside::work(at.since(inside::time()).as_nanos());
}

fn times(machine: &Machine) -> Membarrier {
    machine.membarrier.clone().expect("a server of today has barriers")
}

/// The time of a fence that has no stores to wait for.
fn fence_of(machine: Machine) -> Time {
    let run = Simulation::new(machine).run(|| {
        let began = inside::time();
        inside::fence();
        inside::time().since(began)
    });
    run.unwrap().result
}

/// Runs a barrier on processor 0 while `others` threads compute on processors of their own, each
/// for 2 ms, and look at a word after each microsecond. Returns the time of the barrier, the times
/// of the others, and the counts.
fn beside(machine: &Machine, others: usize) -> (Time, Vec<Time>, Statistics) {
    let run = Simulation::new(machine.clone()).run(move || {
        inside::pin(Some(0));
        let took = Rc::new(RefCell::new(Vec::new()));
        let made: Vec<_> = (1..=others)
            .map(|processor| {
                let took = took.clone();
                spawn(processor, move || {
                    let word = Word::new(0);
                    let began = inside::time();
                    for _ in 0..2_000 {
                        inside::work(1_000);
                        word.load();
                    }
                    took.borrow_mut().push(inside::time().since(began));
                })
            })
            .collect();
        until(Time::millis(1));
        let began = inside::time();
        inside::membarrier();
        let barrier = inside::time().since(began);
        made.into_iter().for_each(inside::join);
        (barrier, took.take())
    });
    let run = run.unwrap();
    (run.result.0, run.result.1, run.statistics)
}

#[test]
fn a_barrier_takes_the_request_and_the_slowest_acknowledgement() {
    for others in [0, 1, 3, 15] {
        let machine = machines::modern(16);
        let Membarrier { request, send, delivery, acknowledgement, .. } = times(&machine);
        let (barrier, _, statistics) = beside(&machine, others);
        let answer = if others == 0 { Time::ZERO } else { delivery + acknowledgement };
        let expected = fence_of(machine) + request + send * others as u64 + answer;
        assert_eq!(barrier, expected, "{others} others");
        assert_eq!(statistics.interrupts, others as u64);
    }
}

#[test]
fn each_interrupted_processor_loses_the_time_of_the_interrupt() {
    let machine = machines::modern(8);
    let (_, interrupted, _) = beside(&machine, 5);
    let (_, alone, statistics) = beside(&machine.clone().symmetric_fences(), 5);
    assert_eq!(statistics.interrupts, 0);
    let lost: Vec<_> = alone.iter().map(|time| *time + times(&machine).interrupt).collect();
    assert_eq!(interrupted, lost);
}

#[test]
fn without_barriers_both_sides_are_fences() {
    for name in machines::NAMES {
        let machine = machines::by_name(name).unwrap().symmetric_fences();
        let fence = fence_of(machine.clone());
        let (barrier, _, _) = beside(&machine, 3);
        assert_eq!(barrier, fence, "{name}");
    }
}

#[test]
fn the_machines_of_the_papers_have_no_barriers_and_the_servers_of_today_have() {
    for name in machines::NAMES {
        let machine = machines::by_name(name).unwrap();
        assert_eq!(machine.membarrier.is_some(), name.starts_with("modern"), "{name}");
    }
}

#[test]
fn processors_without_a_thread_are_not_interrupted() {
    let run = Simulation::new(machines::modern(8)).run(|| {
        let sleeper = spawn(1, || inside::sleep(1_000_000));
        inside::work(100_000);
        inside::membarrier();
        inside::join(sleeper);
    });
    assert_eq!(run.unwrap().statistics.interrupts, 0);
}

#[test]
fn a_second_barrier_waits_for_the_first() {
    let machine = machines::modern(2);
    let Membarrier { request, send, delivery, acknowledgement, .. } = times(&machine);
    let fence = fence_of(machine.clone());
    let run = Simulation::new(machine).run(|| {
        inside::pin(Some(0));
        let took = Rc::new(RefCell::new(Vec::new()));
        let both = |took: Rc<RefCell<Vec<Time>>>| {
            move || {
                until(Time::micros(100));
                let began = inside::time();
                inside::membarrier();
                took.borrow_mut().push(inside::time().since(began));
            }
        };
        let other = spawn(1, both(took.clone()));
        both(took.clone())();
        inside::join(other);
        took.take()
    });
    let took = run.unwrap().result;
    let one = request + send + delivery + acknowledgement;
    assert_eq!(took[0], fence + one);
    // The interrupt of the first one comes while it waits, so it costs nothing.
    assert_eq!(took[1], fence + one + one);
}

#[test]
fn a_spinning_thread_notices_a_write_after_the_interrupt() {
    let machine = machines::modern(3);
    let Membarrier { request, send, delivery, interrupt, .. } = times(&machine);
    // The barrier begins at 100 us, on processor 2. Its second interrupt is that of processor 1.
    let taken = Time::micros(100) + fence_of(machine.clone()) + request + send * 2 + delivery;
    let noticed = |barrier: bool| {
        let run = Simulation::new(machine.clone()).run(move || {
            inside::pin(Some(0));
            let (word, noticed) = (Rc::new(Word::new(0)), Rc::new(Cell::new(Time::ZERO)));
            let (seen, at) = (word.clone(), noticed.clone());
            let spinner = spawn(1, move || {
                while seen.load() == 0 {
                    inside::watch(seen.address(), u64::MAX);
                }
                at.set(inside::time());
            });
            let asker = spawn(2, move || {
                until(Time::micros(100));
                if barrier {
                    inside::membarrier();
                }
            });
            until(taken + Time::nanos(20));
            word.store(1);
            inside::join(spinner);
            inside::join(asker);
            noticed.get()
        });
        run.unwrap().result
    };
    let later = noticed(true).since(noticed(false));
    assert!(later > Time::ZERO && later <= interrupt, "{later}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let machine = machines::modern(16);
    assert_eq!(beside(&machine, 12), beside(&machine, 12));
}
