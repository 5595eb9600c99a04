//! Figure 8, experiment 4: pairs of threads, GRAIN = VAR = 100, by load; and two-phase waiting
//! beside them.
//!
//! *The growth* of a method is the slope of its time over the load, both by their logarithms, by
//! least squares: 1 is linear, 2 quadratic.
//!
//! Rule of the verdict: *holds* if the growth of gangs and of blocking is 0.8 to 1.2 and that of
//! uncoordinated busy waiting 1.6 to 2.4; else *differs*. *not judged* with one processor, nor if
//! one of these growths is not known precisely enough ([`Precision`]). On this computer the two
//! without gangs are as much the system's scheduler as the methods: which threads are on together
//! is its choice, and the verdict says so.

use stanchion_simulator::Machine;

use super::draw;
use super::points::{Case, Method};
use super::stage::{self, Deciding, Stage};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/fig8",
    paper: Paper::Fr92,
    title: "Experiment 4: pairs, grain and variance 100",
    claim: "Linear in the load for gangs and for blocking, quadratic for uncoordinated busy waiting.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::real(context)?)),
        simulated: Body::Run(Simulated::on(&["makbilan"], |context, machine: &Machine| {
            run(context, &Stage::simulated(context, machine)?)
        })),
    },
};

const GRAIN: f64 = 100.0;
const LOADS: [usize; 5] = [1, 2, 3, 4, 5];
const METHODS: [Method; 5] =
    [Method::Gang, Method::Yielding, Method::Busy, Method::GangTwoPhase, Method::TwoPhase];
const JUDGED: [Method; 3] = [Method::Gang, Method::Yielding, Method::Busy];

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let members = stage.place().processors.min(2);
    let case = |method| LOADS.map(|load| Case::new(method, load, members, GRAIN, GRAIN));
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|case| JUDGED.contains(&case.method),
        figures: &|times| times.chunks(LOADS.len()).map(growth).collect(),
    };
    let (points, repeated) = stage.measure(context, &METHODS.map(case).concat(), &deciding)?;
    let growths = METHODS.map(|method| {
        growth(&draw::of(&points, method).map(|point| point.measured.time).collect::<Vec<_>>())
    });
    let paper = ["linear", "linear", "quadratic", "not measured", "not measured"];
    let comparisons = METHODS.iter().zip(growths).zip(paper).map(|((method, growth), paper)| {
        Comparison::new(
            format!("{}: growth with the load", method.name()),
            paper,
            significant(growth),
        )
    });
    Ok(Outcome {
        comparisons: comparisons.collect(),
        pictures: vec![draw::over_load(
            "Pairs, GRAIN = VAR = 100",
            draw::lines(&points, &METHODS, |point| point.case.load as f64),
        )],
        tables: vec![draw::table(&points)],
        notes: stage::notes(stage, repeated),
        ..stage.judged(
            repeated,
            if members < 2 { stage::alone() } else { verdict(growths, stage.is_here()) },
        )
    })
}

/// Returns the growth of the times with [`LOADS`].
fn growth(times: &[f64]) -> f64 {
    let logs: Vec<(f64, f64)> =
        LOADS.iter().zip(times).map(|(&load, time)| ((load as f64).ln(), time.ln())).collect();
    let n = logs.len() as f64;
    let (x, y) = logs.iter().fold((0.0, 0.0), |(x, y), log| (x + log.0 / n, y + log.1 / n));
    let (top, bottom) = logs.iter().fold((0.0, 0.0), |(top, bottom), log| {
        (top + (log.0 - x) * (log.1 - y), bottom + (log.0 - x).powi(2))
    });
    top / bottom
}

/// The remark on the growths without gangs on this computer.
const SCHEDULER: &str = " (without gangs it is this system's scheduler that chooses which threads are on together and for how long; the quadratic growth is of processors that take \
                         turns strictly and out of step)";

fn verdict(growths: [f64; METHODS.len()], here: bool) -> Verdict {
    let [gang, blocking, busy, ..] = growths;
    let linear = 0.8..=1.2;
    Verdict::when(
        linear.contains(&gang) && linear.contains(&blocking) && (1.6..=2.4).contains(&busy),
        format!(
            "time grows with the load to the power of {} for gangs, {} for blocking, {} for uncoordinated busy waiting{}",
            significant(gang),
            significant(blocking),
            significant(busy),
            if here { SCHEDULER } else { "" },
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_power() {
        for power in [1.0, 2.0] {
            let times = LOADS.map(|load| 3.0 * (load as f64).powf(power));
            assert!((growth(&times) - power).abs() < 1e-9);
        }
    }

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |gang, blocking, busy| verdict([gang, blocking, busy, 1.0, 1.0], false).name();
        assert_eq!(judged(1.0, 1.1, 1.9), "holds");
        assert_eq!(judged(1.5, 1.0, 1.9), "differs");
        assert_eq!(judged(1.0, 0.5, 1.9), "differs");
        assert_eq!(judged(1.0, 1.0, 1.0), "differs");
    }
}
