//! Figure 4, experiment 1: load 1, no variance.
//!
//! Rule of the verdict: *holds* if blocking is slower than gangs that wait busily at every grain
//! ("blocking cannot achieve any gains when the load is 1"), what it adds lies within half and
//! twice its mean at every grain ("an additional constant overhead"), and gangs take what equation
//! 6 says within a tenth; else *differs*. On this computer, where other programs and the system run
//! too, the last is within a fifth. *not judged* with one processor.
//!
//! Here gangs are measured twice. Blocking adds a yield without another thread to yield to, a
//! fraction of a microsecond. If two runs of the same gangs differ by more than that, the
//! difference cannot be seen here, and the verdict, whichever it is, says so.

use stanchion_simulator::Machine;

use super::draw;
use super::points::{Case, Method, Point};
use super::stage::{self, Stage};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::{percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/fig4",
    paper: Paper::Fr92,
    title: "Experiment 1: load 1, no variance",
    claim: "Blocking adds a constant per iteration, and gains nothing.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::real(context)?)),
        simulated: Body::Run(Simulated {
            machines: &["makbilan"],
            run: |context, machine: &Machine| run(context, &Stage::simulated(context, machine)?),
        }),
    },
};

const METHODS: [Method; 2] = [Method::Gang, Method::Yielding];
const GRAINS: [f64; 7] = [0.0, 50.0, 100.0, 200.0, 400.0, 600.0, 1_000.0];

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let members = stage.place().processors;
    let grains: Vec<f64> = GRAINS.into_iter().step_by(context.pick(2, 1)).collect();
    let cases: Vec<Case> = METHODS
        .into_iter()
        .flat_map(|method| {
            grains.iter().map(move |&grain| Case::new(method, 1, members, grain, 0.0))
        })
        .collect();
    let points = stage.measure(context, &cases)?;
    let added = added(&points);
    let again = if stage.is_here() {
        let gangs: Vec<Case> = draw::of(&points, Method::Gang).map(|point| point.case).collect();
        let again = stage.measure(context, &gangs)?;
        Some(apart(draw::of(&points, Method::Gang), &again))
    } else {
        None
    };
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "what blocking adds, mean over grains (ms)",
                "a constant",
                significant(mean(&added)),
            )
            .modelled("(n-1)/n·α·τcs"),
            Comparison::new(
                "yields of a waiting thread, α",
                "about 4 at load 1 (experiment 3)",
                significant(mean(
                    &draw::of(&points, Method::Yielding)
                        .map(|point| point.measured.alpha)
                        .collect::<Vec<_>>(),
                )),
            ),
        ],
        pictures: vec![draw::over_grain("Load 1, VAR = 0", &points, &METHODS)],
        tables: vec![draw::table(&points)],
        notes: stage::notes(stage),
        ..stage.judged(verdict(&points, stage.is_the_papers(), again))
    })
}

/// Returns the time that blocking adds to that of gangs, at each grain.
fn added(points: &[Point]) -> Vec<f64> {
    let pairs = draw::of(points, Method::Yielding).zip(draw::of(points, Method::Gang));
    pairs.map(|(blocking, gang)| blocking.measured.time - gang.measured.time).collect()
}

/// Returns the largest difference of two runs of the same case, in ms.
fn apart<'a>(once: impl Iterator<Item = &'a Point>, again: &[Point]) -> f64 {
    let apart = |(once, again): (&Point, &Point)| once.measured.time - again.measured.time;
    once.zip(again).map(apart).map(f64::abs).fold(0.0, f64::max)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Judges the points. `again` is the difference of two runs of the gangs.
fn verdict(points: &[Point], exact: bool, again: Option<f64>) -> Verdict {
    if points.iter().any(|point| point.case.members < 2) {
        return stage::alone();
    }
    let added = added(points);
    let (mean, least) = (mean(&added), added.iter().copied().fold(f64::INFINITY, f64::min));
    let most = added.iter().copied().fold(0.0, f64::max);
    let off = draw::off(points, Method::Gang);
    let unseen = again.filter(|&again| again >= mean).map_or_else(String::new, |again| {
        format!(
            "; but two runs of the same gangs differ by up to {} ms, so what blocking adds cannot be seen here",
            significant(again)
        )
    });
    Verdict::when(
        least >= 0.5 * mean
            && least > 0.0
            && most <= 2.0 * mean
            && off <= if exact { 1.1 } else { 1.2 },
        format!(
            "blocking adds {} to {} ms, {} on average; gangs are within {} of equation 6{unseen}",
            significant(least),
            significant(most),
            significant(mean),
            percent(off - 1.0),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::points::tests::points;
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |gang: [f64; 2], blocking: [f64; 2]| {
            let of = |method, times: [f64; 2]| points(method, &times.map(|time| (time, 1.0)));
            let mut all = of(Method::Gang, gang);
            all.iter_mut().zip([1.0, 2.0]).for_each(|(point, model)| point.model = Some(model));
            all.extend(of(Method::Yielding, blocking));
            verdict(&all, true, None).name()
        };
        assert_eq!(judged([1.0, 2.0], [1.2, 2.2]), "holds");
        assert_eq!(judged([1.0, 2.0], [1.2, 1.9]), "differs", "it gains");
        assert_eq!(judged([1.0, 2.0], [1.1, 2.9]), "differs", "it is no constant");
        assert_eq!(judged([1.0, 2.6], [1.2, 2.8]), "differs", "the gangs are slow");
    }

    #[test]
    fn what_cannot_be_seen_is_said_to_be_so() {
        let mut all = points(Method::Gang, &[(1.0, 1.0), (2.0, 1.0)]);
        all.iter_mut().zip([1.0, 2.0]).for_each(|(point, model)| point.model = Some(model));
        all.extend(points(Method::Yielding, &[(1.2, 1.0), (2.2, 1.0)]));
        let of = |again| verdict(&all, false, Some(again));
        assert!(!of(0.1).because().contains("cannot be seen"));
        assert!(of(0.3).because().contains("cannot be seen"));
        assert_eq!((of(0.1).name(), of(0.3).name()), ("holds", "holds"), "the rule is the same");
        let again = points(Method::Gang, &[(1.1, 1.0), (1.7, 1.0)]);
        assert!((apart(draw::of(&all, Method::Gang), &again) - 0.3).abs() < 1e-9);
    }
}
