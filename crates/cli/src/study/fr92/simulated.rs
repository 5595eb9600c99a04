//! The methods in virtual time.
//!
//! What the machine's description leaves open for these programs: a turn of a waiting loop is twenty instructions, since the paper's machine does not
//! cache remote references, so that each look of each waiting thread takes the bus. And the code's clock is the machine's, so that a quantum is one.

#[path = "methods.rs"]
#[expect(
    clippy::duplicate_mod,
    reason = "linked with the crates of another machine than in `real`"
)]
mod methods;

use sim_applications as applications;
use sim_gang as gang;
use sim_machine as machine;

use std::time::Duration;

use stanchion_model::gang::makbilan;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::super::context::{Context, Stop};
use super::super::simulated::cells::cells;
use super::super::simulated::program::{failed, simulation};
use super::points::{Measured, Method, Others, Place, Setting};

/// Longer in virtual time than any cell.
const LONGEST: Time = Time::millis(1_000_000);

/// Bytes of a virtual thread's stack.
const STACK: usize = 64 << 10;

/// Between two looks of a thread that waits: twenty instructions at 4 MIPS.
pub(super) const LOOK: Time = Time::micros(5);

/// The first phase of two-phase waiting: as long as a switch.
const FIRST_PHASE_NS: u64 = 200_000;

/// The machine as the programs have it.
pub(super) fn placed(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    machine.scale = 1.0;
    machine.pause = machine.pause.max(LOOK);
    machine
}

/// What the model has to know of it.
pub(super) fn place(context: &Context, machine: &Machine) -> Result<Place, Stop> {
    let scheduling = &machine.scheduling;
    let quantum = Duration::from_nanos(scheduling.quantum.as_nanos());
    let mut place = Place {
        processors: machine.processors,
        quantum,
        switch: scheduling.switch.as_secs() * 1e3,
        unit: makbilan::UNIT,
        barrier: 0.0,
        pair: 0.0,
    };
    let empty = Setting {
        method: Method::Busy,
        load: 1,
        members: place.processors,
        least: 0,
        spread: 0,
        slow: 0,
        others: Others::Alike,
        quantum,
        rounds: 1,
        seed: context.seed,
    };
    let time = |members| {
        let empty = Setting { members, ..empty.clone() };
        measure(&placed(machine), &empty).map_err(|why| failed(machine, &why))
    };
    place.barrier = time(place.processors)?.time;
    place.pair = time(2.min(place.processors))?.time;
    Ok(place)
}

/// Measures all `settings` on `machine`.
pub(super) fn run(
    context: &Context,
    machine: &Machine,
    settings: &[Setting],
) -> Result<Vec<Measured>, Stop> {
    let machine = placed(machine);
    context.plan(settings.len());
    cells(context, &machine, settings, |setting| measure(&machine, setting))
}

fn measure(machine: &Machine, setting: &Setting) -> Result<Measured, Failure> {
    let simulation = simulation(machine, setting.seed).time(LONGEST).stack_size(STACK);
    let setting = setting.clone();
    let run = simulation.run(move || {
        let processors: Vec<usize> = (0..setting.members).collect();
        // A wrong result ends the run as a panic of the program's, which names it.
        methods::measure(&setting, &processors, inside::work)
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", setting.method.name()))
    })?;
    Ok(run.result)
}
