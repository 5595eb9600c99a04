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
//! that idle, because the holder of a lock was preempted while others wait for it. The simulated
//! scheduler's sections take no lock (`fibers.rs`), and a thread that waits for a lock of the
//! program lets others run.
//!
//! Rule of the verdict: *holds* if activations are the fastest, by a tenth over kernel threads and
//! over user threads on kernel threads; else *differs*. *not judged* with one processor: there two
//! copies have half of it each in any case. Nor is it judged if one of these ratios is not known
//! precisely enough ([`Precision`]).

use stanchion_simulator::Machine;

use super::setting::{Deciding, Setting, System};
use super::simulated;
use super::stage::Stage;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/table5",
    paper: Paper::Sa92,
    title: "Two copies at once on all processors, speed-up",
    claim: "Kernel threads 1.29, user threads on kernel threads 1.26, on activations 2.45 of at most 3.0.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::Real)),
        simulated: Body::Run(Simulated::on(&["firefly"], |context, machine: &Machine| {
            run(context, &Stage::Simulated(machine))
        })),
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
    settings.extend(System::COMPARED.map(|system| setting(system, processors, 2)));
    settings.push(setting(System::Activations, half(processors), 1));
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
    let speeds: Vec<(System, f64)> = System::COMPARED.into_iter().zip(times.by_ref()).collect();
    let on_half = times.next().expect("the last setting");
    let outcome = outcome(processors, &speeds, on_half);
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
        System::User => Some(1.26),
        System::Activations => Some(2.45),
        System::Competitive | System::Sequential | System::Staying => None,
    }
}

/// Returns the paper's speed-up and ours with each of its systems, on a simulated machine.
pub(super) fn speed_ups(
    context: &Context,
    machine: &Machine,
) -> Result<Vec<(System, f64, f64)>, Stop> {
    let stage = Stage::Simulated(machine);
    let program = stage.fine(context);
    let setting =
        |system, processors, copies| Setting { system, processors, memory: 100, copies, program };
    let tried = System::COMPARED.into_iter().filter_map(|system| Some((system, paper(system)?)));
    let tried = Vec::from_iter(tried);
    let mut settings = vec![setting(System::Sequential, 1, 1)];
    settings.extend(tried.iter().map(|&(system, _)| setting(system, machine.processors, 2)));
    let measured = simulated::run(context, machine, &settings)?;
    let ours = measured[1..].iter().map(|one| measured[0].seconds / one.seconds);
    Ok(tried.into_iter().zip(ours).map(|((system, theirs), ours)| (system, theirs, ours)).collect())
}

fn outcome(processors: usize, speeds: &[(System, f64)], on_half: f64) -> Outcome {
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
            System::Activations.name()
        ),
        "within 5 % of that of two",
        significant(on_half),
    );
    Outcome {
        comparisons: speeds.iter().map(comparison).chain([alone]).collect(),
        ..Outcome::new(verdict(processors, speeds))
    }
}

fn verdict(processors: usize, speeds: &[(System, f64)]) -> Verdict {
    if processors < 2 {
        return Verdict::NotJudged("two copies have half of one processor each".to_owned());
    }
    let of =
        |system| speeds.iter().find(|speed| speed.0 == system).map_or(f64::NAN, |speed| speed.1);
    let (kernel, user, on) = (of(System::Kernel), of(System::User), of(System::Activations));
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

    #[test]
    fn activations_must_be_above_both() {
        let judged = |kernel, user, on| {
            let speeds =
                [(System::Kernel, kernel), (System::User, user), (System::Activations, on)];
            assert_eq!(outcome(6, &speeds, 2.6).comparisons.len(), 4);
            verdict(6, &speeds).name()
        };
        assert_eq!(judged(1.29, 1.26, 2.45), "holds");
        assert_eq!(judged(2.4, 1.26, 2.45), "differs");
        assert_eq!(judged(1.29, 2.4, 2.45), "differs");
        assert_eq!(judged(1.29, f64::NAN, 2.45), "differs");
        assert_eq!(verdict(1, &[]).name(), "not judged");
    }
}
