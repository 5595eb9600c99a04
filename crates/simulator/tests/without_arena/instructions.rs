//! Instructions between accesses: each machine counts them, and a fitted processor takes time for
//! them.

use std::sync::atomic::AtomicU64;

use stanchion_simulator::inside::{self, Kind};
use stanchion_simulator::machine::Jitter;
use stanchion_simulator::{Machine, Simulation, Statistics, Time, machines};

/// Reads a word ten times, each time after so many hundredths of an instruction. Returns the time
/// of that.
fn ten_reads(machine: &Machine, instructions: u32) -> (Time, Statistics) {
    let machine = Machine { jitter: Jitter::NONE, ..machine.clone() };
    let run = Simulation::new(machine).run(move || {
        let word = AtomicU64::new(0);
        let address = (&raw const word).cast();
        inside::access(address, Kind::Read);
        let began = inside::time();
        (0..10).for_each(|_| inside::access_after(instructions, address, Kind::Read));
        inside::time().since(began)
    });
    let run = run.unwrap();
    (run.result, run.statistics)
}

#[test]
fn a_fitted_processor_takes_time_for_instructions() {
    let machine = machines::challenge();
    let (without, _) = ten_reads(&machine, 0);
    let (with, statistics) = ten_reads(&machine, 250);
    assert_eq!(with.since(without), machine.processor.instruction() * 25);
    assert_eq!(statistics.instructions, 2_500);
}

#[test]
fn a_processor_without_a_factor_takes_none_and_counts_them() {
    for name in machines::NAMES {
        let mut machine = machines::by_name(name).unwrap();
        machine.processor.compiler = None;
        let (without, _) = ten_reads(&machine, 0);
        let (with, statistics) = ten_reads(&machine, 250);
        assert_eq!(with, without, "{name}");
        assert_eq!(statistics.instructions, 2_500, "{name}");
    }
}

#[test]
fn a_linked_compare_that_fails_is_a_read() {
    let exchanges = |linked: bool, fails: bool| {
        let machine = Machine { linked, ..machines::challenge() };
        let run = Simulation::new(machine).run(move || {
            let word = AtomicU64::new(0);
            inside::compare_after(0, (&raw const word).cast(), || fails);
        });
        run.unwrap().statistics.accesses.exchanges
    };
    assert_eq!(exchanges(true, true), 0);
    assert_eq!(exchanges(true, false), 1);
    assert_eq!(exchanges(false, true), 1);
}

#[test]
fn a_linked_exchange_fetches_the_line_and_then_asks_for_it() {
    let misses = |linked: bool| {
        let machine = Machine { linked, ..machines::challenge() };
        let run = Simulation::new(machine).run(move || {
            let word = Box::leak(Box::new(AtomicU64::new(0)));
            let address = core::ptr::from_ref(word).cast::<()>().addr();
            let exchange = move || {
                inside::access(core::ptr::without_provenance(address), Kind::Exchange);
            };
            exchange();
            inside::join(inside::spawn(None, Some(1), Box::new(exchange)));
        });
        let accesses = run.unwrap().statistics.accesses;
        (accesses.misses, accesses.read_misses, accesses.exchanges)
    };
    // The first exchange finds its line in no other cache: it has it alone after the load.
    let [(exchanged, _, _), (linked, loads, exchanges)] = [false, true].map(misses);
    assert_eq!((linked, loads, exchanges), (exchanged + 1, 2, 2));
}
