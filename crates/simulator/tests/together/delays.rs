//! Threads that are stopped for a while: bugs that want one or two of them stopped are found, which
//! the slices do not find; and nothing else changes.

use crate::common;
use common::Word;
use stanchion_simulator::inside::{self, Presence};
use stanchion_simulator::{Simulation, ThreadId, Time, machines};
use std::rc::Rc;

const SEEDS: u64 = 4_000;

/// Accesses of a scene, about.
const AMONG: u64 = 16;

fn spawn(body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, None, Box::new(body))
}

/// By how many of the seeds `scene` goes wrong on that many processors, with slices that end early
/// and often, and that many delays.
fn found(processors: usize, delays: usize, scene: fn() -> bool) -> u64 {
    let goes_wrong = |seed: &u64| {
        let mut machine = machines::modern(processors);
        machine.scheduling.quantum = Time::nanos(3_000 + 1_237 * (seed % 17));
        machine.scheduling.spawn = Time::nanos(400 * (seed % 9));
        let simulation = Simulation::new(machine).seed(*seed).time(Time::millis(200));
        !simulation.delays(delays, AMONG).run(scene).unwrap().result
    };
    (0..SEEDS).filter(goes_wrong).count() as u64
}

/// A stack with a `pop` that compares the top alone, of 1 above 2 above 3. One thread takes one and
/// puts it back, the other takes two and puts the first back. So two remain, unless the one is
/// stopped between its look at the next and its exchange for as long as the other takes.
fn a_stack_without_versions() -> bool {
    let top = Rc::new(Word::new(1));
    let next: Rc<[Word; 4]> = Rc::new([0, 2, 3, 0].map(Word::new));
    let threads = [0, 1].map(|thread| {
        let (top, next) = (top.clone(), next.clone());
        spawn(move || {
            let pop = || loop {
                let first = top.load();
                let second = next[first as usize].load();
                if top.compare_exchange(first, second).is_ok() {
                    return first;
                }
            };
            let push = |node: u64| loop {
                let first = top.load();
                next[node as usize].store(first);
                if top.compare_exchange(first, node).is_ok() {
                    return;
                }
            };
            inside::work(2_000 * thread);
            let first = pop();
            if thread == 1 {
                pop();
            }
            push(first);
        })
    });
    threads.into_iter().for_each(inside::join);
    let (mut count, mut node) = (0, top.raw());
    while node != 0 && count < 4 {
        (count, node) = (count + 1, next[node as usize].raw());
    }
    count == 2
}

/// A lock that is looked at and then set. Two are inside only if one is stopped in between, and the
/// other inside.
fn a_lock_that_looks_and_then_sets() -> bool {
    let (lock, inside, both) =
        (Rc::new(Word::new(0)), Rc::new(Word::new(0)), Rc::new(Word::new(0)));
    let threads = [0, 1].map(|thread| {
        let (lock, inside, both) = (lock.clone(), inside.clone(), both.clone());
        spawn(move || {
            // No delay ends just then.
            inside::work(24_000 * thread);
            if lock.load() == 0 {
                lock.store(1);
                if inside.add(1) != 0 {
                    both.store(1);
                }
                inside.add(u64::MAX);
                lock.store(0);
            }
        })
    });
    threads.into_iter().for_each(inside::join);
    both.raw() == 0
}

#[test]
fn a_bug_of_one_stop_is_found_with_one_delay_and_not_without() {
    for processors in [1, 2] {
        assert_eq!(found(processors, 0, a_stack_without_versions), 0);
        let by = found(processors, 1, a_stack_without_versions);
        assert!(by >= 100, "{processors}: by {by} of {SEEDS}");
    }
}

#[test]
fn a_bug_of_two_stops_is_found_with_two_delays_and_with_no_fewer() {
    assert_eq!(found(2, 0, a_lock_that_looks_and_then_sets), 0);
    assert_eq!(found(2, 1, a_lock_that_looks_and_then_sets), 0);
    let by = found(2, 2, a_lock_that_looks_and_then_sets);
    assert!(by >= 4, "by {by} of {SEEDS}");
}

#[test]
fn a_delayed_thread_looks_blocked_and_comes_back() {
    let run = Simulation::new(machines::modern(2)).delays(1, 1).run(|| {
        let word = Rc::new(Word::new(0));
        let begin = inside::time();
        let (first, seen) = (inside::current(), Rc::new(Word::new(0)));
        let tells = seen.clone();
        let other = spawn(move || {
            inside::work(600);
            tells.store(u64::from(inside::presence(first.index()) == Presence::Blocked));
        });
        word.add(1);
        let took = inside::time() - begin;
        inside::join(other);
        (took >= Time::micros(1), seen.raw(), word.raw())
    });
    assert_eq!(run.unwrap().result, (true, 1, 1));
}

#[test]
fn delays_are_the_same_with_the_same_seed_and_none_with_none() {
    let run = |seed, count| {
        let run = Simulation::new(machines::modern(2)).seed(seed).delays(count, AMONG);
        run.run(a_stack_without_versions).unwrap().statistics.elapsed
    };
    let plain = Simulation::new(machines::modern(2)).run(a_stack_without_versions).unwrap();
    assert_eq!(run(0, 0), plain.statistics.elapsed);
    assert!((0..20).all(|seed| run(seed, 2) == run(seed, 2)));
    assert!((0..20).any(|seed| run(seed, 2) != run(seed, 0)));
}
