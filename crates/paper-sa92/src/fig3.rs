//! Figure 3: the time of the n-body program by how much of its data fits into memory.
//!
//! Rule of the verdict, on a simulated machine for the models of the paper's threads
//! (`simulated.rs`): *holds* if, where half fits, activations take at most 0.6 of the time of
//! user threads on kernel threads, and where all fits the two are within a tenth of each other;
//! else *differs*. *not judged* if one of these ratios is not known precisely enough
//! ([`Precision`]).
//!
//! On this computer there is one more row. Its threads stay on the kernel thread on which they
//! began, as all threads do that safe Rust can make. Many begin on one kernel thread while all
//! frames are being read into, and then wait for each other's misses. The difference is the gain of
//! the paper's threads by migrating.

use stanchion_simulator::Machine;

use super::setting::{Deciding, Measured, Setting, System};
use super::stage::Stage;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Axis, Comparison, Outcome, Picture, Series, Shape, Table, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "sa92/fig3",
    paper: Paper::Sa92,
    title: "N-body time against available memory",
    claim: "User threads on kernel threads lose a processor for each miss; activations overlap misses with work.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::Real)),
        simulated: Body::Run(Simulated::on(&["firefly"], |context, machine: &Machine| {
            run(context, &Stage::Simulated(machine))
        })),
    },
};

/// Percent of the data in memory.
const MEMORY: [u32; 7] = [100, 90, 80, 70, 60, 50, 40];
const QUICK: [u32; 4] = [100, 80, 50, 40];

/// The percentage of the data in memory with which the claim is judged.
const HALF: u32 = 50;
const GAIN: f64 = 0.6;
const ALIKE: f64 = 1.1;

/// A system, and its measurement with each part of the data in memory.
#[derive(Clone, Debug)]
struct Line {
    /// The system of threads under test.
    system: System,
    /// The part in memory, in percent, and the measurement with it.
    points: Vec<(u32, Measured)>,
    /// The least and the greatest seconds of the runs of each; empty on a simulated machine.
    ranges: Vec<(f64, f64)>,
}

impl Line {
    fn at(&self, memory: u32) -> f64 {
        let found = self.points.iter().find(|point| point.0 == memory);
        found.map_or(f64::NAN, |point| point.1.seconds)
    }
}

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let memory = context.pick(&QUICK[..], &MEMORY[..]);
    let program = stage.coarse(context);
    let processors = stage.processors(context);
    let mut systems = stage.systems();
    if matches!(stage, Stage::Real) {
        systems.push(System::Staying);
    }
    let settings: Vec<Setting> = systems
        .iter()
        .flat_map(|&system| {
            memory.iter().map(move |&memory| Setting {
                system,
                processors,
                memory,
                copies: 1,
                program,
            })
        })
        .collect();
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|setting| {
            let judged = [System::User, System::Activations].contains(&setting.system);
            judged && [100, HALF].contains(&setting.memory)
        },
        // Times of user threads with each memory, and then of activations.
        figures: &|times| {
            let (user, on) = times.split_at(times.len() / 2);
            user.iter().zip(on).map(|(user, on)| on / user).collect()
        },
    };
    let runs = stage.measure(context, &settings, &deciding)?;
    let mut ranges = runs.ranges.iter().copied();
    let line = |(system, of): (System, &[Measured])| Line {
        system,
        points: memory.iter().copied().zip(of.iter().copied()).collect(),
        ranges: ranges.by_ref().take(memory.len()).collect(),
    };
    let lines: Vec<Line> =
        systems.into_iter().zip(runs.measured.chunks(memory.len())).map(line).collect();
    Ok(runs.outcome(outcome(&lines, stage.judged()), stage.notes(program, &runs)))
}

fn outcome(lines: &[Line], judged: (System, System)) -> Outcome {
    let of = |system| lines.iter().find(|line| line.system == system);
    let comparison = |(system, over, paper): (System, System, &str)| {
        let (one, other) = (of(system)?, of(over)?);
        Some(Comparison::new(
            format!("time of {} over that of {}, half in memory", system.name(), over.name()),
            paper,
            significant(one.at(HALF) / other.at(HALF)),
        ))
    };
    let comparisons = [
        (System::Activations, System::User, "well below 1"),
        (System::Activations, System::Kernel, "below 1"),
        (System::Staying, System::User, "not tried"),
        (System::ActivationsModel, System::UserModel, "well below 1"),
    ]
    .into_iter()
    .filter_map(comparison);
    let series = lines.iter().map(|line| {
        let mut points: Vec<(f64, f64)> =
            line.points.iter().map(|point| (f64::from(point.0), point.1.seconds)).collect();
        points.reverse();
        Series::new(line.system.name(), points).with_spread(line.ranges.iter().rev().copied())
    });
    let mut columns = vec!["system".to_owned()];
    columns.extend(lines[0].points.iter().map(|point| format!("{} %", point.0)));
    let row = |line: &Line| {
        let misses = line.points.iter().map(|point| point.1.misses.to_string());
        std::iter::once(line.system.name().to_owned()).chain(misses).collect()
    };
    Outcome {
        comparisons: comparisons.collect(),
        pictures: vec![Picture {
            title: "N-body: time by memory".to_owned(),
            shape: Shape::Lines,
            x: Axis::linear("percent of the data in memory"),
            y: Axis::linear("seconds"),
            series: series.collect(),
        }],
        tables: vec![Table {
            title: "Misses, by percent of the data in memory".to_owned(),
            columns,
            rows: lines.iter().map(row).collect(),
        }],
        ..Outcome::new(verdict(lines, judged))
    }
}

/// Judges the two `judged` systems of user-level threads.
fn verdict(lines: &[Line], (user, on): (System, System)) -> Verdict {
    let of = |system| lines.iter().find(|line| line.system == system);
    let (Some(user), Some(on)) = (of(user), of(on)) else {
        return Verdict::NotJudged("a system is missing".to_owned());
    };
    let (half, all) = (on.at(HALF) / user.at(HALF), on.at(100) / user.at(100));
    Verdict::when(
        half <= GAIN && (1.0 / ALIKE..=ALIKE).contains(&all),
        format!(
            "on activations the program takes {} of the time of user threads on kernel threads where half fits, {} where all does",
            significant(half),
            significant(all)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |user: [f64; 2], on: [f64; 2]| {
            let line = |system, times: [f64; 2]| Line {
                system,
                points: [100, HALF]
                    .into_iter()
                    .zip(times)
                    .map(|(memory, seconds)| (memory, Measured { seconds, checksum: 0, misses: 0 }))
                    .collect(),
                ranges: Vec::new(),
            };
            let lines = [line(System::User, user), line(System::Activations, on)];
            let judged = (System::User, System::Activations);
            assert_eq!(outcome(&lines, judged).tables[0].rows.len(), 2);
            verdict(&lines, judged).name()
        };
        assert_eq!(judged([1.0, 4.0], [1.05, 2.0]), "holds");
        assert_eq!(judged([1.0, 4.0], [1.0, 2.5]), "differs", "too little is gained");
        assert_eq!(judged([1.0, 4.0], [1.2, 2.0]), "differs", "it costs without misses");
        assert_eq!(judged([1.0, f64::NAN], [1.0, 2.0]), "differs", "nothing was measured");
    }
}
