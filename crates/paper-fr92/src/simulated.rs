//! The methods in virtual time.
//!
//! The machine's description leaves three things open for these programs. A turn of a waiting loop
//! is twenty instructions, since the paper's machine does not cache remote references: each look of
//! each waiting thread takes the bus. The code's clock is the machine's, so that both have the same
//! quantum. And without gangs a switch takes the time of the default library in table 1, since
//! those experiments ran on it.
//!
//! The barrier of ten takes 0.038 ms in virtual time, where the paper's took 0.137 ms on the
//! Makbilan (section 3.3, equation 14): its instructions and the bus's are not known. The paper
//! observes "that this is an added overhead to all the threads. Hence we include it in each
//! thread's value of t_p" (section 2.1). So do we: before a barrier of ten each thread computes for
//! the rest.

use std::time::Duration;

use stanchion_formulas::gang::makbilan;
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::points::{Measured, Method, Others, Place, Setting};
use stanchion_study::context::{Context, Stop};
use stanchion_study::simulation::cells;
use stanchion_study::simulation::{failed, simulation};

/// The limit of virtual time, longer than any cell.
const LONGEST: Time = Time::millis(1_000_000);

/// Bytes of a virtual thread's stack.
const STACK: usize = 64 << 10;

/// The time between two looks of a thread that waits: twenty instructions at 4 MIPS.
pub(super) const LOOK: Time = Time::micros(5);

/// The first phase of two-phase waiting: as long as a switch.
const FIRST_PHASE_NS: u64 = 200_000;

/// Returns the machine as the programs have it.
pub(super) fn placed(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    machine.scale = 1.0;
    machine.pause = machine.pause.max(LOOK);
    machine
}

/// Returns the model's parameters of `machine`.
pub(super) fn place(context: &Context, machine: &Machine) -> Result<Place, Stop> {
    let scheduling = &machine.scheduling;
    let quantum = Duration::from_nanos(scheduling.quantum.as_nanos());
    let switch = scheduling.switch.as_secs() * 1e3;
    let mut place = Place {
        processors: machine.processors,
        quantum,
        switch,
        unit: makbilan::UNIT,
        barrier: 0.0,
        rest: 0.0,
        pair: 0.0,
        look: 0.0,
        // Table 1: the library without gangs has costs of its own.
        ungoverned: if machine.name == "makbilan" { (0.07, 0.14) } else { (switch, 0.0) },
        charged: 1.0,
    };
    let empty = Setting {
        method: Method::Busy,
        load: 1,
        members: place.processors,
        least: 0,
        spread: 0,
        slow: 0,
        others: Others::Alike,
        switch,
        quantum,
        rounds: 1,
        settle: 3,
        seed: context.seed,
    };
    let time = |members| {
        let empty = Setting { members, ..empty.clone() };
        measure(&placed(machine), &empty).map_err(|why| failed(machine, &why))
    };
    place.barrier = time(place.processors)?.time;
    place.pair = time(2.min(place.processors))?.time;
    let gang = Setting { method: Method::Gang, ..empty.clone() };
    let gang = measure(&placed(machine), &gang).map_err(|why| failed(machine, &why))?.time;
    place.look = (gang - place.barrier).max(0.0);
    if machine.name == "makbilan" {
        place.rest = (makbilan::BARRIER - place.barrier).max(0.0);
        place.barrier += place.rest;
    }
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

/// The rounds of two turns in which the changes of turns are measured, and the spawns.
const ROUNDS: u32 = 3;
const SPAWNS: usize = 5;

/// Returns the nanoseconds of each change of a gang's turns, and of spawning without gangs and
/// with.
pub(super) fn overheads(
    context: &Context,
    machine: &Machine,
) -> Result<(Vec<f64>, [Vec<f64>; 2]), Stop> {
    let machine = placed(machine);
    let simulation = simulation(&machine, context.seed).time(LONGEST).stack_size(STACK);
    let processors = machine.processors;
    let quantum = Duration::from_nanos(machine.scheduling.quantum.as_nanos());
    let run = simulation.run(move || -> Result<_, String> {
        let gaps = sim_programs::fr92::overheads::slots(processors, quantum, 2 * ROUNDS * quantum)?;
        Ok((gaps, sim_programs::fr92::overheads::spawning(processors, SPAWNS)?))
    });
    run.map_err(|why| failed(&machine, &why))?.result.map_err(Stop::Failed)
}

fn measure(machine: &Machine, setting: &Setting) -> Result<Measured, Failure> {
    let mut machine = machine.clone();
    if !matches!(setting.method, Method::Gang | Method::GangTwoPhase) {
        // The simulator charges a switch to the thread that yields, and another to the thread that
        // is put on in its place. A processor's only thread pays just the first.
        let halves = if setting.load > 1 { 2.0 } else { 1.0 };
        machine.scheduling.switch = Time::nanos((setting.switch / halves * 1e6) as u64);
    }
    let simulation = simulation(&machine, setting.seed).time(LONGEST).stack_size(STACK);
    let setting = setting.clone();
    let run = simulation.run(move || {
        let processors: Vec<usize> = (0..setting.members).collect();
        // A wrong result ends the run with a panic that names the program.
        sim_programs::fr92::measure(&setting, &processors, FIRST_PHASE_NS, inside::work)
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", setting.method.name()))
    })?;
    Ok(run.result)
}

#[cfg(test)]
mod tests {
    use stanchion_simulator::machines;
    use stanchion_study::interrupt::Interrupt;
    use stanchion_study::measure::median;

    use super::*;

    const METHODS: [Method; 6] = [
        Method::Gang,
        Method::Busy,
        Method::Yielding,
        Method::Preferred,
        Method::TwoPhase,
        Method::GangTwoPhase,
    ];

    fn small(method: Method, load: usize) -> Setting {
        Setting {
            method,
            load,
            members: 3,
            least: 400_000,
            spread: 400_000,
            slow: 0,
            others: Others::Alike,
            quantum: Duration::from_millis(10),
            switch: 0.2,
            rounds: 4,
            settle: 3,
            seed: 7,
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        let mut machine = placed(&machines::makbilan());
        machine.scheduling.quantum = Time::millis(10);
        for method in METHODS {
            let one = measure(&machine, &small(method, 2)).unwrap();
            assert!(one.iterations > 0, "{}", method.name());
            assert_eq!(one, measure(&machine, &small(method, 2)).unwrap(), "{}", method.name());
        }
    }

    /// Three threads, alone: the longest takes 0.7 ms on average, and blocking adds to that.
    #[test]
    fn alone_an_iteration_takes_as_long_as_its_longest_thread() {
        let machine = placed(&machines::makbilan());
        let time = |method| measure(&machine, &small(method, 1)).unwrap().time;
        assert!((0.68..0.78).contains(&time(Method::Gang)));
        assert!((0.68..0.78).contains(&time(Method::Busy)));
        assert!(time(Method::Yielding) > time(Method::Busy) + 0.02);
    }

    /// A change of turns is a switch of 0.2 ms, and a thread that sleeps and is woken.
    #[test]
    fn a_change_of_turns_takes_more_than_a_switch() {
        let mut machine = machines::makbilan();
        machine.scheduling.quantum = Time::millis(10);
        let context = Context::new(true, 7, Interrupt::default());
        let (gaps, [threads, gangs]) = overheads(&context, &machine).unwrap();
        assert!(gaps.iter().all(|gap| *gap >= 200_000.0), "{gaps:?}");
        assert!(median(gaps) < 1_000_000.0);
        assert!(median(threads) > median(gangs), "the executor keeps its threads");
    }

    #[test]
    fn a_blocking_gang_among_busy_ones_gets_an_iteration_a_round() {
        let mut machine = placed(&machines::makbilan());
        machine.scheduling.quantum = Time::millis(10);
        let among = Setting { others: Others::Computing, rounds: 20, ..small(Method::Yielding, 3) };
        let time = measure(&machine, &among).unwrap().time;
        assert!((10.0..35.0).contains(&time), "{time}");
        let preferred = Setting { method: Method::Preferred, ..among };
        assert!(measure(&machine, &preferred).unwrap().time < 0.3 * time);
    }
}
