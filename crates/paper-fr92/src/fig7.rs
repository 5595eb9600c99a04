//! Figure 7, experiment 3: a gang that blocks, among others that do too or that only compute.
//!
//! Rule of the verdict: *holds* if, at every load above 1, the gang among others that compute takes
//! what equation 13 says within a half ("hence the large variance in the measured results"), and at
//! least twice as long as among its like; else *differs*. This computer's scheduler does not serve
//! threads strictly in turn, so there it is *not judged*, and the figures are shown.

use stanchion_simulator::Machine;

use super::draw;
use super::points::{Case, Method, Others, Point};
use super::stage::{self, Deciding, Stage};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Comparison, Outcome, Series, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/fig7",
    paper: Paper::Fr92,
    title: "Experiment 3: a blocking gang among compute-bound ones",
    claim: "Time per iteration is about competitors × quantum (equation 13).",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::real(context)?)),
        simulated: Body::Run(Simulated::on(&["makbilan"], |context, machine: &Machine| {
            run(context, &Stage::simulated(context, machine)?)
        })),
    },
};

/// GRAIN and VAR.
const GRAIN: f64 = 1_000.0;
const LOADS: [usize; 5] = [1, 2, 3, 4, 5];
/// The name of the series that equation 13 is about.
pub(super) const OTHERS_COMPUTE: &str = "others compute";

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    let members = stage.place().processors;
    let series = |method, others| {
        LOADS.map(|load| Case { others, ..Case::new(method, load, members, GRAIN, GRAIN) })
    };
    let cases: Vec<Case> = [
        series(Method::Yielding, Others::Alike),
        series(Method::Yielding, Others::Computing),
        series(Method::Preferred, Others::Computing),
    ]
    .concat();
    // On this computer no figure decides.
    let precision = Precision::rounds(context.pick(3, 9));
    let deciding = Deciding { precision, decides: &|_| false, figures: &|_| Vec::new() };
    let (points, repeated) = stage.measure(context, &cases, &deciding)?;
    let (alike, rest) = points.split_at(LOADS.len());
    let (busy, preferred) = rest.split_at(LOADS.len());
    let alpha = |load: usize| significant(alike[load - 1].measured.alpha);
    let quantum = stage.place().quantum.as_secs_f64() * 1e3;
    let line = |name: &str, points: &[Point]| {
        draw::line(name, points.iter(), |point| point.case.load as f64)
    };
    let model = |name: &str, points: &[Point]| {
        let at = |point: &Point| Some((point.case.load as f64, point.model?));
        Series::new(name, points.iter().filter_map(at)).dotted()
    };
    let mut comparisons: Vec<Comparison> = busy[1..]
        .iter()
        .map(|point| {
            let others = point.case.load - 1;
            Comparison::new(
                format!("{others} that compute: time of an iteration (ms)"),
                if stage.is_the_papers() {
                    format!("about {}", significant(others as f64 * quantum))
                } else {
                    "competitors × quantum".to_owned()
                },
                significant(point.measured.time),
            )
            .modelled(point.model.map_or_else(|| "–".to_owned(), significant))
        })
        .collect();
    comparisons.push(Comparison::new("α among its like, load 1", "about 4", alpha(1)));
    comparisons.push(Comparison::new("α among its like, load 4", "about 1.2", alpha(4)));
    comparisons.push(Comparison::new(
        "the same with priority for the unblocked, 4 that compute (ms)",
        "not measured; “a smart scheduler can compensate”",
        significant(preferred[LOADS.len() - 1].measured.time),
    ));
    let judged = if stage.is_the_papers() {
        verdict(alike, busy)
    } else {
        Verdict::NotJudged(format!(
            "this scheduler is not strict round robin: among {} that compute an iteration takes {} ms, among its like {} ms",
            LOADS[LOADS.len() - 1] - 1,
            significant(busy[LOADS.len() - 1].measured.time),
            significant(alike[LOADS.len() - 1].measured.time),
        ))
    };
    Ok(Outcome {
        comparisons,
        pictures: vec![draw::over_load(
            "A blocking gang, GRAIN = VAR = 1000",
            vec![
                line("others block too", alike),
                model("others block too: equation 12", alike),
                line(OTHERS_COMPUTE, busy),
                model("others compute: equation 13", busy),
                line("others compute, the unblocked first", preferred),
            ],
        )],
        tables: vec![draw::table(&points)],
        notes: stage::notes(stage, repeated).into_iter().chain([NOTE.to_owned()]).collect(),
        ..stage.judged(repeated, judged)
    })
}

const NOTE: &str = "Priority for the unblocked: every 0.1 ms a thread that computes looks whether a thread of its processor can go on since the others have come, and yields if so; that \
                    thread may be a few yields away.";

fn verdict(alike: &[Point], busy: &[Point]) -> Verdict {
    let pairs = || alike.iter().zip(busy).skip(1);
    let off = pairs().filter_map(|(_, busy)| Some(busy.measured.time / busy.model?));
    let (least, most) =
        off.fold((f64::INFINITY, 0.0_f64), |(least, most), off| (least.min(off), most.max(off)));
    let slower = pairs()
        .map(|(alike, busy)| busy.measured.time / alike.measured.time)
        .fold(f64::INFINITY, f64::min);
    Verdict::when(
        least >= 0.5 && most <= 1.5 && slower >= 2.0,
        format!(
            "among others that compute an iteration takes {} to {} times what equation 13 says, and at least {} times what it takes among its like",
            significant(least),
            significant(most),
            significant(slower),
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::points::tests::points;
    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged = |busy: f64, alike: f64| {
            let mut of = points(Method::Yielding, &[(1.0, 1.0), (busy, 1.0), (2.0 * busy, 1.0)]);
            of.iter_mut().zip([1.0, 50.0, 100.0]).for_each(|(p, model)| p.model = Some(model));
            let like = points(Method::Yielding, &[(1.0, 1.0), (alike, 1.0), (2.0 * alike, 1.0)]);
            verdict(&like, &of).name()
        };
        assert_eq!(judged(50.0, 4.0), "holds");
        assert_eq!(judged(20.0, 4.0), "differs", "faster than in turn");
        assert_eq!(judged(80.0, 4.0), "differs", "slower");
        assert_eq!(judged(50.0, 30.0), "differs", "no better among its like");
    }
}
