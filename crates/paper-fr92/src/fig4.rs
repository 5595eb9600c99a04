//! Figure 4, experiment 1: load 1, no variance.
//!
//! Rule of the verdict: *holds* if blocking is slower than gangs that wait busily at every grain
//! ("blocking cannot achieve any gains when the load is 1"), what it adds lies within half and
//! twice its mean at every grain ("an additional constant overhead"), and gangs take what equation
//! 6 says within a tenth; else *differs*. On this computer, where other programs and the system run
//! too, the last is within a fifth. *not judged* with one processor, nor if a time of the gangs, or
//! what blocking adds, is not known precisely enough ([`Precision`]).
//!
//! On this computer blocking adds a yield without another thread to yield to, a fraction of a
//! microsecond. So its interval is compared with the time of a switch.

use stanchion_simulator::Machine;

use super::draw;
use super::points::{Case, Method, Point};
use super::stage::{self, Deciding, Stage};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::{Precision, on_scale};
use stanchion_study::outcome::{Comparison, Outcome, Verdict};
use stanchion_study::units::{percent, significant};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/fig4",
    paper: Paper::Fr92,
    title: "Experiment 1: load 1, no variance",
    claim: "Blocking adds a constant per iteration, and gains nothing.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::real(context)?)),
        simulated: Body::Run(Simulated::on(&["makbilan"], |context, machine: &Machine| {
            run(context, &Stage::simulated(context, machine)?)
        })),
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
    let switch = stage.place().switch;
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|_| true,
        figures: &|times| figures(times, switch),
    };
    let (points, repeated) = stage.measure(context, &cases, &deciding)?;
    let added = added(&points);
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
        notes: stage::notes(stage, repeated),
        ..stage.judged(repeated, verdict(&points, stage.is_the_papers()))
    })
}

/// Returns the time that blocking adds to that of gangs, at each grain.
fn added(points: &[Point]) -> Vec<f64> {
    let pairs = draw::of(points, Method::Yielding).zip(draw::of(points, Method::Gang));
    pairs.map(|(blocking, gang)| blocking.measured.time - gang.measured.time).collect()
}

/// Returns the figures that decide on this computer: the times of the gangs, and what blocking adds
/// to each, in units of the time of a switch.
fn figures(times: &[f64], switch: f64) -> Vec<f64> {
    let (gangs, blocking) = times.split_at(times.len() / 2);
    let added = gangs.iter().zip(blocking).map(|(gang, blocking)| blocking - gang);
    gangs.iter().copied().chain(added.map(|added| on_scale(added, switch))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn verdict(points: &[Point], exact: bool) -> Verdict {
    if points.iter().any(|point| point.case.members < 2) {
        return stage::alone();
    }
    let added = added(points);
    let (mean, least) = (mean(&added), added.iter().copied().fold(f64::INFINITY, f64::min));
    let most = added.iter().copied().fold(0.0, f64::max);
    let off = draw::off(points, Method::Gang);
    Verdict::when(
        least >= 0.5 * mean
            && least > 0.0
            && most <= 2.0 * mean
            && off <= if exact { 1.1 } else { 1.2 },
        format!(
            "blocking adds {} to {} ms, {} on average; gangs are within {} of equation 6",
            significant(least),
            significant(most),
            significant(mean),
            percent(off - 1.0),
        ),
    )
}

#[cfg(test)]
mod tests {
    use stanchion_study::measure::width;

    use super::super::points::tests::points;
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |gang: [f64; 2], blocking: [f64; 2]| {
            let of = |method, times: [f64; 2]| points(method, &times.map(|time| (time, 1.0)));
            let mut all = of(Method::Gang, gang);
            all.iter_mut().zip([1.0, 2.0]).for_each(|(point, model)| point.model = Some(model));
            all.extend(of(Method::Yielding, blocking));
            verdict(&all, true).name()
        };
        assert_eq!(judged([1.0, 2.0], [1.2, 2.2]), "holds");
        assert_eq!(judged([1.0, 2.0], [1.2, 1.9]), "differs", "it gains");
        assert_eq!(judged([1.0, 2.0], [1.1, 2.9]), "differs", "it is no constant");
        assert_eq!(judged([1.0, 2.6], [1.2, 2.8]), "differs", "the gangs are slow");
    }

    #[test]
    fn what_blocking_adds_is_known_as_precisely_if_it_gains() {
        let adds = |added: f64| figures(&[1.0, 2.0, 1.0 + added, 2.0 + added], 0.5);
        assert_eq!(adds(0.0), [1.0, 2.0, 1.0, 1.0]);
        let runs = [0.1, 0.2, 0.3];
        let width_of = |side: f64| width(&runs.map(|added| adds(side * added)[3]));
        assert!((width_of(1.0) - width_of(-1.0)).abs() < 1e-9);
    }
}
