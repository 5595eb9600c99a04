//! The structures in virtual time.
//!
//! On the Challenge one processor of the twelve ran the paper's scheduler, so there are eleven. On
//! any other machine all processors are used. The simulated scheduler plays the other applications
//! of a multiprogramming level: each has its turn of a quantum on every processor.

use sim_applications::Around;
use stanchion_simulator::machine::{Memory, Processor};
use stanchion_simulator::{Failure, Machine, Time, inside};

use super::grid::{Cell, Grid, LEVELS, MILLION, Setting};
use sim_programs::ms97::programs;
pub(super) use sim_programs::ms97::programs::{OVER_QUEUES, OVER_STACKS, Program, SALESMEN};
pub(super) use sim_programs::ms97::rows::{BASE, COUNTERS, HEAPS, QUEUES, Row, STACKS};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Counterfactual;
use stanchion_study::outcome::Found;
use stanchion_study::simulation::cells;
use stanchion_study::simulation::{simulation, together};

/// "Every process spends 6 µs (± 10% randomization) spinning in an empty loop after performing
/// every operation."
const REST_NS: u64 = 6_000;
const SPREAD_NS: u64 = 600;

/// The limit of virtual time, longer than any cell.
const LONGEST: Time = Time::millis(1_000_000);

/// Measures `rows` on `machine`, each structure with `entries` in it at first.
pub(super) fn run(
    context: &Context,
    machine: &Machine,
    rows: &'static [Row],
    entries: usize,
) -> Result<Grid, Stop> {
    let machine = placed(machine);
    let counts = context.within(machine.processors);
    // At level 3 a process has some twenty quanta of 10 ms even when all are few.
    let turns = context.pick(4_000, 20_000);
    let settings = Grid::settings(rows.len(), &counts);
    context.plan(settings.len());
    let seed = context.seed;
    let measured = cells(context, &machine, &settings, |setting| {
        measure(&machine, &rows[setting.row], *setting, turns, entries, seed)
    })?;
    Ok(Grid::new(rows.iter().map(|row| (row.name, row.kind)).collect(), counts, BASE, measured))
}

/// Bytes of a virtual thread's stack: the programs prepare on the first.
const STACK: usize = 256 << 10;

/// Measures `programs` on `machine`.
pub(super) fn run_programs(
    context: &Context,
    machine: &Machine,
    programs: &'static [Program],
) -> Result<Grid, Stop> {
    let machine = placed(machine);
    // The rule of the verdict and the comparisons have one processor and all. `--quick` leaves out
    // those in between, which only the pictures show.
    let all = machine.processors;
    let mut counts = if context.quick { vec![1, all] } else { context.within(all) };
    counts.dedup();
    let settings = Grid::settings(programs.len(), &counts);
    context.plan(settings.len());
    let (seed, numbers) = (context.seed, context.pick(100_000, 500_000));
    let measured = cells(context, &machine, &settings, |setting| {
        measure_program(&machine, &programs[setting.row], *setting, numbers, seed)
    })?;
    let rows = programs.iter().map(|program| (program.name, program.kind)).collect();
    Ok(Grid::new(rows, counts, BASE, measured).of("one run of the program"))
}

fn measure_program(
    machine: &Machine,
    program: &'static Program,
    setting: Setting,
    numbers: usize,
    seed: u64,
) -> Result<Cell, Failure> {
    let mut machine = machine.clone();
    machine.scheduling.applications = setting.level;
    let instruction_ns = machine.processor.own_instruction().as_picos().div_ceil(1_000);
    let simulation = simulation(&machine, seed).time(LONGEST).stack_size(STACK);
    let run = simulation.run(move || {
        let setup = programs::Setup {
            numbers,
            threads: setting.processors,
            seed,
            instruction_ns,
            around: Around::default(),
        };
        // A wrong result ends the run with a panic that names the program.
        (program.run)(&setup).unwrap_or_else(|wrong| panic!("{}: {wrong}", program.name))
    })?;
    // Convert from the code's clock to the machine's.
    let elapsed = run.result.as_secs_f64() * machine.scale;
    Ok(Cell { elapsed, granted: 1.0 / setting.level as f64 })
}

/// Returns `machine` as the paper's programs had it.
///
/// The paper's backoff was chosen "not to exceed 30 µs". That of the study's lock goes up to
/// 30 µs of the code's clock. So here the code's clock is the machine's.
fn placed(machine: &Machine) -> Machine {
    let mut machine = machine.clone();
    if machine.name == "challenge" {
        machine.processors = 11;
        machine.scale = 1.0;
    }
    machine
}

/// Returns a counterfactual: a run with another time of an upgrade. `run` runs the experiment, and
/// `figure` decides its verdict.
///
/// No published time of an upgrade on the Challenge is known. A transaction that moves no data is
/// no longer than a miss, so the range ends there. It begins with the time for which the upgrade
/// occupies the bus, and the jitter of its arbitration. The model has half of a miss.
pub(super) const fn upgrade(
    figure: &'static str,
    run: fn(&Context, &Machine, f64) -> Result<Found, Stop>,
) -> Counterfactual {
    Counterfactual {
        name: "another time of an upgrade",
        piece: "The time for which a processor waits until other caches have given up their copies of a line that it writes, or that its SC writes. The paper does not state it, and no \
         other source of it is known. It moves no data, so it takes no longer than a miss.",
        size: "microseconds of an upgrade",
        sizes: &[0.5, 0.125, 0.25, 0.6, 0.7, 0.8, 0.9, 1.0],
        figure,
        run,
    }
}

/// Returns `machine` with upgrades of so many microseconds.
pub(super) fn with_upgrade(machine: &Machine, micros: f64) -> Machine {
    let mut machine = machine.clone();
    if let Memory::WriteBack(times) = &mut machine.memory {
        times.upgrade = Time::nanos((micros * 1_000.0).round() as u64);
    }
    machine
}

/// Measures the preemption-safe single lock, of `rows`: its seconds for a million turns at each
/// level, with one processor and with all.
pub(super) fn seconds(
    context: &Context,
    machine: &Machine,
    rows: &'static [Row],
) -> Result<Vec<[f64; 2]>, Stop> {
    let machine = placed(machine);
    let counts = [1, machine.processors];
    let all = Vec::from_iter(
        LEVELS.flat_map(|level| counts.map(|processors| Setting { row: BASE, level, processors })),
    );
    let seed = context.seed;
    let turns = context.pick(4_000, 20_000);
    let measured = cells(context, &machine, &all, |setting| {
        measure(&machine, &rows[BASE], *setting, turns, 0, seed)
    })?;
    let pairs = measured.chunks_exact(counts.len());
    Ok(pairs.map(|pair| [pair[0].elapsed, pair[1].elapsed]).collect())
}

fn measure(
    machine: &Machine,
    row: &'static Row,
    setting: Setting,
    turns: u64,
    entries: usize,
    seed: u64,
) -> Result<Cell, Failure> {
    let mut machine = machine.clone();
    machine.scheduling.applications = setting.level;
    let processes = setting.processors;
    let simulation = simulation(&machine, seed).time(LONGEST);
    let run = together(&simulation, processes, REST_NS as f64, move || {
        let subject = (row.make)(entries);
        move |_| {
            let began = inside::time();
            for _ in 0..turns {
                let mut rest = || {
                    inside::work(REST_NS - SPREAD_NS + inside::entropy() % (2 * SPREAD_NS + 1));
                };
                subject.turn(inside::entropy(), &mut rest);
            }
            (began, inside::time())
        }
    })?;
    let began = run.result.iter().map(|(began, _)| *began).min().unwrap_or_default();
    let ended = run.result.iter().map(|(_, ended)| *ended).max().unwrap_or_default();
    let all = (processes as u64 * turns) as f64;
    Ok(Cell {
        elapsed: ended.since(began).as_secs() * MILLION / all,
        granted: 1.0 / setting.level as f64,
    })
}

/// Returns the notes on the simulated machine, for the reader of a figure.
pub(super) fn notes(machine: &Machine) -> Vec<String> {
    vec![
        "Memory, bus and scheduler are simulated. The instructions of a structure between its accesses were counted on a processor of today, and stand in a table."
            .to_owned(),
        instruction(machine),
        "The other applications of a level take every processor in turn for 10 ms. Ordinary and preemption-safe locks are the same test-and-test-and-set lock with exponential backoff \
         of at most 30 µs; the latter asks not to be preempted (Edler et al.) and is granted at most the machine's grace."
            .to_owned(),
    ]
}

/// Returns the notes on the simulated programs, for the reader of a figure.
pub(super) fn program_notes(machine: &Machine) -> Vec<String> {
    vec![
        format!(
            "Memory, bus and scheduler are simulated. What the programs compute is declared in instructions of {}; the paper's compiler and its bounds are not known, so the seconds \
             are not the paper's. The other applications of a level take every processor in turn for 10 ms.",
            machine.processor.own_instruction()
        ),
        instruction(machine),
    ]
}

/// Says how long an instruction takes, and which figure of that is fitted.
fn instruction(machine: &Machine) -> String {
    let Processor { cycle, cycles_per_instruction, compiler } = machine.processor;
    let Some(factor) = compiler else {
        return format!(
            "Instructions between accesses take no time on {}: the factor between its compiler and ours is not known.",
            machine.name
        );
    };
    format!(
        "An instruction of ours takes {} on {}: {cycle} a cycle, {cycles_per_instruction} cycles an instruction, and {factor} instructions of its own compiler and instruction set for one \
         of ours. That factor alone is fitted, to the seconds of one processor in figures 1 to 3 of the paper.",
        machine.processor.instruction(),
        machine.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_simulator::machines;

    #[test]
    fn each_time_of_an_upgrade_makes_a_machine() {
        let run = |_: &Context, _: &Machine, _: f64| unreachable!("only the sizes are wanted");
        let [own, others @ ..] = upgrade("", run).sizes else { panic!("it has sizes") };
        let challenge = machines::challenge();
        assert_eq!(with_upgrade(&challenge, *own), challenge);
        for micros in others {
            let machine = with_upgrade(&challenge, *micros);
            assert_ne!(machine, challenge);
            assert!(machine.check().is_ok(), "{micros}: {:?}", machine.check());
        }
    }

    #[test]
    fn the_notes_have_the_factor_or_say_that_there_is_none() {
        let challenge = machines::challenge();
        let factor = challenge.processor.compiler.expect("the Challenge has one").to_string();
        assert!(notes(&challenge).iter().any(|note| note.contains(&factor)));
        assert!(notes(&machines::modern(2)).iter().any(|note| note.contains("take no time")));
    }
}
