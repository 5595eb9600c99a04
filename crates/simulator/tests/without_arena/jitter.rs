//! Jitter: it is the seed's, it averages out, and a machine without it has none.

use crate::common;
use std::rc::Rc;

use common::Word;
use stanchion_simulator::machine::Jitter;
use stanchion_simulator::{
    Activity, Machine, Simulation, Statistics, ThreadId, Time, inside, machines,
};

fn spawn(processor: usize, body: impl FnOnce() + 'static) -> ThreadId {
    inside::spawn(None, Some(processor), Box::new(body))
}

/// Three processors add to one word and compute in between.
fn fight(machine: &Machine, seed: u64) -> Statistics {
    let run = Simulation::new(machine.clone()).seed(seed).run(|| {
        let word = Rc::new(Word::new(0));
        let made: Vec<_> = (0..3)
            .map(|processor| {
                let word = Rc::clone(&word);
                spawn(processor, move || {
                    for _ in 0..200 {
                        word.add(1);
                        inside::work(3_000);
                    }
                })
            })
            .collect();
        made.into_iter().for_each(inside::join);
        assert_eq!(word.load(), 600);
    });
    run.unwrap().statistics
}

fn papers() -> [Machine; 5] {
    [
        machines::symmetry_a(4),
        machines::symmetry_b(4),
        machines::challenge(),
        machines::firefly(),
        machines::makbilan(),
    ]
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_seed_gives_others() {
    for machine in papers() {
        assert_eq!(fight(&machine, 7), fight(&machine, 7), "{}", machine.name);
        assert_ne!(fight(&machine, 7), fight(&machine, 8), "{}", machine.name);
    }
}

#[test]
fn a_steady_machine_takes_the_same_times_with_every_seed() {
    for machine in papers().map(Machine::steady) {
        assert_eq!(fight(&machine, 7), fight(&machine, 8), "{}", machine.name);
    }
}

/// Returns the time of `times` exchanges that do not queue.
fn exchanges(machine: Machine, times: u64, seed: u64) -> Time {
    let run = Simulation::new(machine).seed(seed).run(move || {
        let word = Word::new(0);
        word.add(1);
        let began = inside::time();
        (0..times).for_each(|_| _ = word.add(1));
        inside::time().since(began)
    });
    run.unwrap().result
}

#[test]
fn arbitration_averages_out() {
    const TIMES: u64 = 10_000;
    let mut machine = machines::symmetry_a(2);
    machine.jitter = Jitter { arbitration: machine.jitter.arbitration, ..Jitter::NONE };
    let steady = exchanges(machine.clone().steady(), TIMES, 0).as_secs();
    for seed in 0..5 {
        let took = exchanges(machine.clone(), TIMES, seed).as_secs();
        assert!((took / steady - 1.0).abs() < 0.005, "{took} s against {steady} s");
    }
}

#[test]
fn each_interrupt_delays_a_computation_by_its_handler() {
    let machine = machines::firefly();
    let Jitter { tick_period, tick, .. } = machine.jitter;
    let run = Simulation::new(machine).seed(3).run(move || {
        let began = inside::time();
        inside::work(tick_period.as_nanos() * 10);
        inside::time().since(began)
    });
    let run = run.unwrap();
    assert_eq!(run.result, tick_period * 10 + tick * 10);
    assert_eq!(run.statistics.threads[0].times.of(Activity::Switching), tick * 10);
}

#[test]
fn a_refresh_delays_the_transactions_that_it_meets() {
    let mut machine = machines::symmetry_a(2);
    let Jitter { refresh_period, refresh, .. } = machine.jitter;
    machine.jitter = Jitter { refresh_period, refresh, ..Jitter::NONE };
    let (steady, took) =
        (exchanges(machine.clone().steady(), 1_000, 0), exchanges(machine, 1_000, 0));
    // One exchange in 39 ends within a refresh, which delays it by half of that on average.
    assert!(took > steady && took < steady + refresh * 100, "{took} against {steady}");
}
