//! The paper's programs on the simulated machines: the right result, in the same virtual time every
//! time.

use std::rc::Rc;

use lock_api::RawMutex;
use stanchion_applications_simulated::{galaxy, hanoi, regsim};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{AlwaysBlock, AlwaysSpin};
use stanchion_simulator::{Machine, Simulation, Statistics, machines};
use stanchion_spin::{Mcs, TestAndSet};

/// The paper's machine with one processor, fewer than threads and more, and one of today.
fn on_machines(body: impl Fn() + Clone + 'static) {
    for (processors, mut machine) in [
        (1, machines::firefly()),
        (2, machines::firefly()),
        (6, machines::firefly()),
        (4, machines::modern(4)),
    ] {
        machine.processors = processors;
        let first = run(&machine, body.clone());
        assert_eq!(first, run(&machine, body.clone()), "the same run twice");
        // The body is the first of the threads.
        assert_eq!(first.threads.len(), 4);
        assert!(processors == 1 || first.accesses.transfers > 0, "the threads have met");
    }
}

fn run(machine: &Machine, body: impl Fn() + 'static) -> Statistics {
    // Netlists and stars are worked on with deep stacks.
    let simulation = Simulation::new(machine.clone()).stack_size(256 << 10);
    let run = simulation.run(body);
    run.unwrap_or_else(|failure| panic!("{}: {failure}", machine.name)).statistics
}

fn regsim_settles<L: RawMutex + Send + Sync + 'static>() {
    let netlist = Rc::new(regsim::Netlist::parse(regsim::circuits::S298.as_bytes()).unwrap());
    on_machines(move || {
        let options = regsim::Options { cycles: 4, threads: 4, ..Default::default() };
        let run = regsim::run::<L>(&netlist, &options);
        let reference = regsim::sequential::run(&netlist, options.cycles, options.seed);
        assert_eq!(run.checksum, reference.checksum);
    });
}

fn hanoi_is_moved<L: RawMutex + Send + Sync + 'static>() {
    on_machines(|| {
        let options = hanoi::Options { disks: 8, threads: 4, ..Default::default() };
        let run = hanoi::run::<L>(&options).unwrap();
        assert_eq!((run.moves, run.fault), (run.needed, None));
    });
}

fn galaxies_pass<L: RawMutex + Send + Sync + 'static>() {
    on_machines(|| {
        let options =
            galaxy::Options { stars: 40, steps: 5, threads: 4, chunk: 4, ..Default::default() };
        let run = galaxy::run::<L>(&options).unwrap();
        let reference = galaxy::sequential::run(&options).unwrap();
        assert_eq!((run.checksum, run.fault), (reference.checksum, None));
    });
}

macro_rules! locks {
    ($($name:ident: $lock:ty;)+) => {$(
        mod $name {
            use super::*;

            #[test]
            fn regsim_settles() {
                super::regsim_settles::<$lock>();
            }

            #[test]
            fn hanoi_is_moved() {
                super::hanoi_is_moved::<$lock>();
            }

            #[test]
            fn galaxies_pass() {
                super::galaxies_pass::<$lock>();
            }
        }
    )+};
}

locks! {
    adaptive: RawPolicyMutex;
    always_block: RawPolicyMutex<AlwaysBlock>;
    always_spin: RawPolicyMutex<AlwaysSpin>;
    mcs: Mcs;
    test_and_set: TestAndSet;
}
