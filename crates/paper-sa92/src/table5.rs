//! Table V: the speed-up of the n-body program when two copies of it run at once.
//!
//! Of two copies the slower one counts. So the most is half of the processors, 3.0 on the paper's
//! machine. On this computer the copies are in one process, each with threads of its own.
//!
//! Beside them one copy runs alone on half of the processors, on activations. The loss of the two
//! copies against that one is the cost of the division itself. In the paper it is within 5 %. The
//! paper puts it down to the bus and to a daemon of the kernel that takes a processor now and then.
//! The simulated machine has no such daemon, and none of the program's own data is on its bus.
//! There the two copies lose nothing, and are faster than the paper's, as one copy alone is.
//!
//! User threads on kernel threads are faster there too. In the paper they lose most by processors
//! that idle, because the holder of a lock was preempted while others wait for it. The model's
//! scheduler takes no lock (`fibers.rs`), and a thread that waits for a lock of the program lets
//! others run. `--counterfactuals` sweeps both pieces, for the paper gives neither the length of
//! the scheduler's sections nor that of the application's.
//!
//! Of the longest sections of the application, a copy spends more than a third of its time in them.
//! Then two copies on activations are slower than the paper's: the paper's sections were shorter.
//!
//! Rule of the verdict, on a simulated machine for the models of the paper's threads
//! (`simulated.rs`): *holds* if activations are the fastest, by a tenth over kernel threads and
//! over user threads on kernel threads; else *differs*. *not judged* with one processor: there two
//! copies have half of it each in any case. Nor is it judged if one of these ratios is not known
//! precisely enough ([`Precision`]).

use stanchion_simulator::Machine;

use super::setting::{Deciding, FINE, Program, Setting, System};
use super::simulated;
use super::stage::Stage;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Found, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/table5",
    paper: Paper::Sa92,
    title: "Two copies at once on all processors, speed-up",
    claim: "Kernel threads 1.29, user threads on kernel threads 1.26, on activations 2.45 of at most 3.0.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::Real)),
        simulated: Body::Run(
            Simulated::on(&["firefly"], |context, machine: &Machine| {
                run(context, &Stage::Simulated(machine))
            })
            .with_counterfactuals(&[SCHEDULER, APPLICATION]),
        ),
    },
};

/// The least speed-up of activations, over that of another system, for "loses least".
const LEAST: f64 = 1.1;

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let processors = stage.processors(context);
    let program = stage.fine(context);
    let setting =
        |system, processors, copies| Setting { system, processors, memory: 100, copies, program };
    let mut settings = vec![setting(System::Sequential, 1, 1)];
    let systems = stage.systems();
    settings.extend(systems.iter().map(|&system| setting(system, processors, 2)));
    let judged = stage.judged();
    settings.push(setting(judged.1, half(processors), 1));
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|setting| {
            let judged = [System::Kernel, System::User, System::Activations];
            processors > 1 && setting.copies == 2 && judged.contains(&setting.system)
        },
        figures: &|times| times[..2].iter().map(|time| time / times[2]).collect(),
    };
    let runs = stage.measure(context, &settings, &deciding)?;
    let alone = runs.measured[0].seconds;
    let mut times = runs.measured[1..].iter().map(|one| alone / one.seconds);
    let speeds: Vec<(System, f64)> = systems.into_iter().zip(times.by_ref()).collect();
    let on_half = times.next().expect("the last setting");
    let outcome = outcome(processors, &speeds, judged, on_half);
    Ok(runs.outcome(outcome, stage.notes(program, &runs)))
}

/// Returns the number of processors that each of two copies has.
fn half(processors: usize) -> usize {
    (processors / 2).max(1)
}

/// Returns the paper's speed-up with a system, of at most 3.
fn paper(system: System) -> Option<f64> {
    match system {
        System::Kernel => Some(1.29),
        System::User | System::UserModel => Some(1.26),
        System::Activations | System::ActivationsModel => Some(2.45),
        System::Competitive | System::Sequential | System::Staying => None,
    }
}

/// Returns the paper's speed-up and ours with each of its systems, on a simulated machine.
pub(super) fn speed_ups(
    context: &Context,
    machine: &Machine,
) -> Result<Vec<(System, f64, f64)>, Stop> {
    let stage = Stage::Simulated(machine);
    let systems = stage.systems().into_iter().filter(|system| paper(*system).is_some());
    let (program, seeds) = (stage.fine(context), &[context.seed]);
    let found = two_copies(context, machine, systems.collect(), program, seeds)?;
    Ok(found
        .into_iter()
        .filter_map(|(system, ours)| Some((system, paper(system)?, ours)))
        .collect())
}

/// Returns the speed-up of two copies of `program` with each system, on a simulated machine. It is
/// the average over the seeds.
fn two_copies(
    context: &Context,
    machine: &Machine,
    systems: Vec<System>,
    program: Program,
    seeds: &[u64],
) -> Result<Vec<(System, f64)>, Stop> {
    let setting =
        |system, processors, copies| Setting { system, processors, memory: 100, copies, program };
    let mut settings = vec![setting(System::Sequential, 1, 1)];
    settings.extend(systems.iter().map(|&system| setting(system, machine.processors, 2)));
    let mut sums = vec![0.0; systems.len()];
    for &seed in seeds {
        let measured = simulated::run(context, machine, &settings, seed)?;
        for (sum, one) in sums.iter_mut().zip(&measured[1..]) {
            *sum += measured[0].seconds / one.seconds / seeds.len() as f64;
        }
    }
    Ok(systems.into_iter().zip(sums).collect())
}

/// The number of runs of a counterfactual, each with another seed. In one run few threads are
/// preempted with a lock, and luck decides how many.
const SEEDS: u64 = 8;

/// Locks of the scheduler: one piece that the simulated run lacks.
const SCHEDULER: Counterfactual = Counterfactual {
    name: "a lock around the ready list",
    piece: "The kernel time-slices FastThreads' virtual processors, and \"physical processors\" are left \"idling waiting for a lock to be released while the lock holder is rescheduled\" \
            (section 5.3). The model's scheduler takes no lock. The paper does not say for which part of a fork and of a signal and wait its scheduler held one. Only user-level threads on kernel threads are charged for it: \
            with activations the kernel resumes a thread that is preempted with the lock at once.",
    size: "percent of a thread operation",
    sizes: &[0.0, 25.0, 50.0, 75.0, 100.0],
    figure: SPEED_UPS,
    run: |context, machine, percent| {
        with(context, machine, Program { locked_percent: percent as u64, ..FINE })
    },
};

/// Locks of the application: another such piece.
const APPLICATION: Counterfactual = Counterfactual {
    name: "longer critical sections, in which a preempted thread leaves others spinning",
    piece: "The same passage holds for the application's lock, and with kernel threads a thread that finds it taken blocks. The model's threads let others run instead. The paper does not \
            say how long the application holds its lock. With all systems it is held so many times as long as here, and user-level threads on kernel threads spin for it. Those on activations are not made to spin.",
    size: "critical sections of our program",
    sizes: &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0],
    figure: SPEED_UPS,
    run: |context, machine, sections| {
        with(context, machine, Program { spinning_sections: sections as u64, ..FINE })
    },
};

const SPEED_UPS: &str = "speed-ups: kernel threads, user threads, on activations";

/// Judges two copies of `program` on a simulated machine, by the average of several runs.
fn with(context: &Context, machine: &Machine, program: Program) -> Result<Found, Stop> {
    let (user, on) = Stage::Simulated(machine).judged();
    let seeds = Vec::from_iter((0..SEEDS).map(|number| context.seed + number));
    let systems = vec![System::Kernel, user, on];
    let speeds = two_copies(context, machine, systems, program, &seeds)?;
    let figures: Vec<String> = speeds.iter().map(|speed| significant(speed.1)).collect();
    let verdict = verdict(machine.processors, &speeds, (user, on));
    Ok(Found { figure: figures.join(", "), verdict })
}

fn outcome(
    processors: usize,
    speeds: &[(System, f64)],
    judged: (System, System),
    on_half: f64,
) -> Outcome {
    let comparison = |&(system, speed): &(System, f64)| {
        let paper =
            paper(system).map_or("not tried".to_owned(), |speed| format!("{speed:.2} of 3.0"));
        let most = significant(processors as f64 / 2.0);
        Comparison::new(
            format!("speed-up of two copies, {}", system.name()),
            paper,
            format!("{} of {most}", significant(speed)),
        )
    };
    let alone = Comparison::new(
        format!(
            "speed-up of one copy on {} of the processors, {}",
            half(processors),
            judged.1.name()
        ),
        "within 5 % of that of two",
        significant(on_half),
    );
    Outcome {
        comparisons: speeds.iter().map(comparison).chain([alone]).collect(),
        ..Outcome::new(verdict(processors, speeds, judged))
    }
}

/// Judges kernel threads, and the two `judged` systems of user-level threads.
fn verdict(processors: usize, speeds: &[(System, f64)], (user, on): (System, System)) -> Verdict {
    if processors < 2 {
        return Verdict::NotJudged("two copies have half of one processor each".to_owned());
    }
    let of =
        |system| speeds.iter().find(|speed| speed.0 == system).map_or(f64::NAN, |speed| speed.1);
    let (kernel, user, on) = (of(System::Kernel), of(user), of(on));
    Verdict::when(
        on >= LEAST * kernel && on >= LEAST * user,
        format!(
            "the speed-ups are {} with kernel threads, {} with user threads on them, {} on activations, which is {} and {} times as much",
            significant(kernel),
            significant(user),
            significant(on),
            significant(on / kernel),
            significant(on / user),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGED: (System, System) = (System::User, System::Activations);

    #[test]
    fn activations_must_be_above_both() {
        let judged = |kernel, user, on| {
            let speeds =
                [(System::Kernel, kernel), (System::User, user), (System::Activations, on)];
            assert_eq!(outcome(6, &speeds, JUDGED, 2.6).comparisons.len(), 4);
            verdict(6, &speeds, JUDGED).name()
        };
        assert_eq!(judged(1.29, 1.26, 2.45), "holds");
        assert_eq!(judged(2.4, 1.26, 2.45), "differs");
        assert_eq!(judged(1.29, 2.4, 2.45), "differs");
        assert_eq!(judged(1.29, f64::NAN, 2.45), "differs");
        assert_eq!(verdict(1, &[], JUDGED).name(), "not judged");
    }
}
