//! Figure 2: the speed-up of the n-body program by processors, when all data fit into memory.
//!
//! Speed-up is over the same program on one thread without a cache.
//!
//! Rule of the verdict, on a simulated machine for the models of the paper's threads
//! (`simulated.rs`): *holds* if user-level threads of either kind reach three quarters of the
//! processors with every number of them, and kernel threads with locks that sleep at once stay
//! below both by a tenth with all of them; else *differs*. *not judged* with one processor, nor if
//! a speed-up that decides is not known precisely enough ([`Precision`]).

use stanchion_simulator::Machine;

use super::setting::{Deciding, Measured, Setting, System};
use super::stage::Stage;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/fig2",
    paper: Paper::Sa92,
    title: "N-body speed-up against processors, enough memory",
    claim: "User threads scale, kernel threads flatten.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::Real)),
        simulated: Body::Run(Simulated::on(&["firefly"], |context, machine: &Machine| {
            run(context, &Stage::Simulated(machine))
        })),
    },
};

/// The least speed-up for "scales", as a share of the processors.
const SCALES: f64 = 0.75;
/// The largest speed-up for "flattens", as a share of the least of the systems that scale.
const BELOW: f64 = 0.9;

/// The speed-ups of a system, by processors from some number up.
#[derive(Clone, Debug)]
struct Line {
    /// The system of threads under test.
    system: System,
    /// Processors, and the speed-up with so many.
    points: Vec<(usize, f64)>,
    /// The least and the greatest of the runs of each; empty on a simulated machine.
    ranges: Vec<(f64, f64)>,
}

impl Line {
    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.1)
    }

    /// The least speed-up for a processor.
    fn least(&self) -> f64 {
        let each = self.points.iter().map(|&(processors, speed)| speed / processors as f64);
        each.fold(f64::INFINITY, f64::min)
    }
}

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let most = stage.processors(context);
    let program = stage.fine(context);
    let setting =
        |system, processors| Setting { system, processors, memory: 100, copies: 1, program };
    let mut settings = vec![setting(System::Sequential, 1)];
    let systems = stage.systems();
    for &system in &systems {
        settings.extend((1..=most).map(|processors| setting(system, processors)));
    }
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|setting| most > 1 && decides(setting, most),
        figures: &|times| times[1..].iter().map(|time| times[0] / time).collect(),
    };
    let runs = stage.measure(context, &settings, &deciding)?;
    let alone = runs.measured[0].seconds;
    let ranges = runs.ranges.iter().skip(1).map(|(low, high)| (alone / high, alone / low));
    let mut ranges = ranges.collect::<Vec<_>>().into_iter();
    let line = |(system, of): (System, &[Measured])| Line {
        system,
        points: (1..).zip(of.iter().map(|one| alone / one.seconds)).collect(),
        ranges: ranges.by_ref().take(most).collect(),
    };
    let lines: Vec<Line> =
        systems.into_iter().zip(runs.measured[1..].chunks(most)).map(line).collect();
    Ok(runs.outcome(outcome(&lines, stage.judged()), stage.notes(program, &runs)))
}

/// Returns whether a setting decides: one thread, over which speed-up is; user threads with every
/// number of processors; kernel threads with all.
fn decides(setting: &Setting, most: usize) -> bool {
    match setting.system {
        System::Sequential | System::User | System::Activations => true,
        System::Kernel => setting.processors == most,
        System::Competitive | System::Staying | System::UserModel | System::ActivationsModel => {
            false
        }
    }
}

fn outcome(lines: &[Line], judged: (System, System)) -> Outcome {
    let most = lines.first().map_or(0, |line| line.points.len());
    let comparisons = lines.iter().map(|line| {
        let paper = match line.system {
            System::Kernel => "flattens",
            System::Competitive => "not tried",
            _ => "scales",
        };
        let what = format!("speed-up with {most} processors, {}", line.system.name());
        Comparison::new(what, paper, significant(line.last()))
    });
    let series = lines.iter().map(|line| {
        let points = line.points.iter().map(|&(processors, speed)| (processors as f64, speed));
        Series::new(line.system.name(), points).with_spread(line.ranges.iter().copied())
    });
    Outcome {
        comparisons: comparisons.collect(),
        pictures: vec![Picture {
            title: "N-body: speed-up by processors, all data in memory".to_owned(),
            shape: Shape::Lines,
            x: Axis::linear("processors"),
            y: Axis::linear("speed-up"),
            series: series.collect(),
        }],
        ..Outcome::new(verdict(lines, judged))
    }
}

/// Judges kernel threads, and the two `judged` systems of user-level threads.
fn verdict(lines: &[Line], (user, on): (System, System)) -> Verdict {
    let of = |system| lines.iter().find(|line| line.system == system);
    let (Some(kernel), Some(user), Some(on)) = (of(System::Kernel), of(user), of(on)) else {
        return Verdict::NotJudged("a system is missing".to_owned());
    };
    let most = kernel.points.len();
    if most < 2 {
        return Verdict::NotJudged("with one processor there is nothing to scale over".to_owned());
    }
    let scales = user.least().min(on.least()) >= SCALES;
    let flattens = kernel.last() <= BELOW * user.last().min(on.last());
    Verdict::when(
        scales && flattens,
        format!(
            "with {most} processors user threads are {} times as fast as one thread, on activations {}, kernel threads {}; the least of user threads for a processor is {}",
            significant(user.last()),
            significant(on.last()),
            significant(kernel.last()),
            significant(user.least().min(on.least())),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::setting::FINE;
    use super::*;

    const JUDGED: (System, System) = (System::User, System::Activations);

    fn judged(kernel: [f64; 2], user: [f64; 2], on: [f64; 2]) -> &'static str {
        let line = |system, speeds: [f64; 2]| Line {
            system,
            points: (1..).zip(speeds).collect(),
            ranges: Vec::new(),
        };
        let lines =
            [line(System::Kernel, kernel), line(System::User, user), line(System::Activations, on)];
        assert_eq!(outcome(&lines, JUDGED).comparisons.len(), 3);
        verdict(&lines, JUDGED).name()
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        assert_eq!(judged([0.8, 1.2], [1.0, 1.9], [1.0, 1.8]), "holds");
        assert_eq!(judged([0.8, 1.2], [1.0, 1.4], [1.0, 1.8]), "differs", "user threads flatten");
        assert_eq!(judged([0.8, 1.2], [1.0, 1.8], [0.7, 1.8]), "differs", "so do activations");
        assert_eq!(judged([0.9, 1.7], [1.0, 1.8], [1.0, 1.8]), "differs", "kernel threads scale");
    }

    #[test]
    fn kernel_threads_decide_with_all_processors_only() {
        let decides = |system, processors| {
            let setting = Setting { system, processors, memory: 100, copies: 1, program: FINE };
            super::decides(&setting, 2)
        };
        assert!(decides(System::Sequential, 1) && decides(System::User, 1));
        assert!(decides(System::Kernel, 2) && !decides(System::Kernel, 1));
        assert!(!decides(System::Competitive, 2));
    }

    #[test]
    fn one_processor_does_not_judge() {
        let lines = [System::Kernel, System::User, System::Activations].map(|system| Line {
            system,
            points: vec![(1, 1.0)],
            ranges: Vec::new(),
        });
        assert_eq!(verdict(&lines, JUDGED).name(), "not judged");
    }
}
