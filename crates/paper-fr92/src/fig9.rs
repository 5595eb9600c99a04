//! Figure 9, the phase diagram: which of gangs that wait busily and blocking is twice as good, and
//! which is better.
//!
//! The paper draws conditions 15 and 16 with α = 1.5. Here points are measured beside them, so with
//! the α that they have. In each iteration of their programs one thread computes longer than the
//! others, each time another one. Why not evenly drawn times: with them a thread never waits longer
//! than it computes.
//!
//! On the simulated Makbilan a point of the gangs' corner differs: its α is 1.1.
//! `--counterfactuals` charges yields so that a wait costs what it does with the figure's α.
//!
//! The paper's lines are in units of the Makbilan's switch of 0.2 ms; on another machine they are
//! taken with its own.
//!
//! Rule of the verdict: points within a fifth of a line of the paper decide nothing about it.
//! *holds* if all others do as the paper says: gangs at least twice as good where t_p + 2 t_w ≤ 0.3
//! ms, blocking at least twice as good where t_w > t_p + 0.6 ms, gangs ahead where t_w < 0.3 ms,
//! blocking where t_w is longer; else *differs*. *not judged* with one processor, nor if a ratio
//! that decides is not known precisely enough ([`Precision`]).

use stanchion_formulas::gang::{makbilan, phase};
use stanchion_simulator::Machine;

use super::draw;
use super::points::{Case, Method, Place, Point};
use super::stage::{self, Deciding, Stage};
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::{Bodies, Body, Counterfactual, Experiment, Paper, Simulated};
use stanchion_study::measure::Precision;
use stanchion_study::outcome::{Axis, Comparison, Found, Outcome, Picture, Series, Shape, Verdict};
use stanchion_study::units::significant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "fr92/fig9",
    paper: Paper::Fr92,
    title: "Phase diagram",
    claim: "At σ = 1 the divide is at 0.3 ms of waiting; at σ = ½ busy waiting is twice as good where t_p + 2 t_w ≤ 0.3 ms, blocking where t_w > t_p + 0.6 ms.",
    bodies: Bodies::Machines {
        real: Body::Run(|context| run(context, &Stage::real(context)?)),
        simulated: Body::Run(
            Simulated::on(&["makbilan"], |context, machine: &Machine| {
                run(context, &Stage::simulated(context, machine)?)
            })
            .with_counterfactuals(&[ONE_ALPHA]),
        ),
    },
};

/// The paper's figure has one α for all points.
const ONE_ALPHA: Counterfactual = Counterfactual {
    name: "the α of the figure at each point",
    piece: "The figure has α = 1.5 at all points. \"This does not correspond exactly with the results of experiment 2 because the actual values \
            of α in that experiment were different for different data points\" (section 4, footnote 2). With this piece each yield is charged \
            as many switches as make a wait cost 1.5: the paper's own figure is put in.",
    size: "share of the way from our α to the figure's",
    sizes: &[0.0, 0.25, 0.5, 0.75, 1.0],
    figure: "points as the paper says",
    run: run_with_one_alpha,
};

const LOAD: usize = 3;
/// In the paper's milliseconds.
const PROCESSING: [f64; 5] = [0.1, 0.15, 0.2, 0.4, 0.8];
const WAITING: [f64; 8] = [0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.1, 1.5];
const QUICK: [f64; 5] = [0.02, 0.1, 0.4, 1.1, 1.5];
/// The distance from a line of the figure, as a share, within which a point decides nothing.
const BAND: f64 = 0.2;

// The names of the lines.
pub(super) const CORNER: &str = "condition 15, σ = ½";
pub(super) const DIVIDE: &str = "condition 15, σ = 1";
pub(super) const ABOVE: &str = "condition 16, σ = ½";

/// A measured point, in the paper's milliseconds.
#[derive(Clone, Copy, Debug)]
struct At {
    /// The computation of an iteration, t_p.
    processing: f64,
    /// The wait of an iteration, t_w.
    waiting: f64,
    /// Blocking's time over the gangs'.
    ratio: f64,
}

fn run(context: &Context, stage: &Stage<'_>) -> Result<Outcome, Stop> {
    run_towards(context, stage, 0.0)
}

fn run_with_one_alpha(context: &Context, machine: &Machine, share: f64) -> Result<Found, Stop> {
    let outcome = run_towards(context, &Stage::simulated(context, machine)?, share)?;
    let because = outcome.verdict.because();
    let figure = because.split(" points").next().unwrap_or(because).to_owned();
    Ok(Found { figure, verdict: outcome.verdict })
}

/// Runs the figure. Yields are charged so that the cost of a wait is `share` of the way from that
/// of its own α to that of the figure's.
fn run_towards(context: &Context, stage: &Stage<'_>, share: f64) -> Result<Outcome, Stop> {
    let place = stage.place();
    let scale = place.switch / makbilan::SWITCH;
    let waits = context.pick(&QUICK[..], &WAITING[..]);
    let wanted: Vec<Case> = PROCESSING
        .into_iter()
        .flat_map(|processing| waits.iter().map(move |&waiting| (processing, waiting)))
        .filter_map(|(processing, waiting)| case(place, scale * processing, scale * waiting))
        .collect();
    let with = |method| wanted.iter().map(move |case| Case { method, ..*case });
    let cases: Vec<Case> = with(Method::Gang).chain(with(Method::Yielding)).collect();
    let of = |case: &Case| {
        let iteration = place.iteration(case);
        (iteration.processing() / scale, iteration.waiting() / scale)
    };
    let deciding = Deciding {
        precision: Precision::of(EXPERIMENT.id, context),
        decides: &|case| said(of(case)) != UNDECIDED,
        figures: &stage::blocking_over_gangs,
    };
    let (mut points, repeated) = stage.measure(context, &cases, &deciding)?;
    if share > 0.0 {
        let charged = |point: &Point| {
            let switches = 1.0 + share * (makbilan::ALPHA / point.measured.alpha - 1.0);
            Case { switch: point.case.switch.map(|switch| switch * switches), ..point.case }
        };
        let again: Vec<Case> = points[wanted.len()..].iter().map(charged).collect();
        points.truncate(wanted.len());
        points.extend(stage.measure(context, &again, &deciding)?.0);
    }
    let (gangs, blocking) = points.split_at(wanted.len());
    let at: Vec<At> = gangs
        .iter()
        .zip(blocking)
        .map(|(gang, blocking)| {
            let (processing, waiting) = of(&gang.case);
            At { processing, waiting, ratio: blocking.measured.time / gang.measured.time }
        })
        .collect();
    let alphas = blocking.iter().map(|point| point.measured.alpha);
    let (least, most) = alphas
        .fold((f64::INFINITY, 0.0_f64), |(least, most), alpha| (least.min(alpha), most.max(alpha)));
    Ok(Outcome {
        comparisons: vec![
            Comparison::new(
                "σ = 1, t_p = 0.2 ms: t_w of the divide (ms of the paper)",
                "0.3",
                divide(&at, 0.2).map_or_else(|| "–".to_owned(), significant),
            )
            .modelled(significant(line(0.2, 1.0, false))),
            Comparison::new("α", "1.5", format!("{} to {}", significant(least), significant(most))),
        ],
        pictures: vec![picture(&at)],
        tables: vec![draw::table(&points)],
        notes: stage::notes(stage, repeated)
            .into_iter()
            .chain([format!(
                "One member of each gang, another in each iteration, computes longer than the others. Times are divided by {}, this machine's switch over the Makbilan's, before they \
                 are compared with the paper's.",
                significant(scale)
            )])
            .collect(),
        ..stage
            .judged(repeated, if place.processors < 2 { stage::alone() } else { verdict(&at) })
    })
}

/// Returns programs with an iteration of this t_p and t_w, in milliseconds of the machine. There
/// are none if the other threads would have to compute for less than nothing.
fn case(place: &Place, processing: f64, waiting: f64) -> Option<Case> {
    let n = place.processors as f64;
    if n < 2.0 {
        return None;
    }
    let slow = waiting * n / (n - 1.0);
    let rest = processing - place.barrier - slow / n;
    (rest >= 0.0).then(|| Case {
        slow,
        // The figure has the gangs' 0.2 ms for both.
        switch: Some(place.switch),
        ..Case::new(Method::Gang, LOAD, place.processors, rest / place.unit, 0.0)
    })
}

/// Returns the t_w of the paper's machine on the line of 15 (or of 16) over t_p.
fn line(processing: f64, sigma: f64, blocking: bool) -> f64 {
    let on = if blocking { phase::blocking_above } else { phase::gang_below };
    makbilan::system(LOAD as u32)
        .and_then(|system| on(system, processing, makbilan::ALPHA, sigma))
        .expect("the paper's own numbers are in range")
}

/// Returns the t_w at which gangs and blocking are as good, at the measured t_p next to
/// `processing`.
fn divide(at: &[At], processing: f64) -> Option<f64> {
    let row: Vec<&At> = at.iter().filter(|at| (at.processing - processing).abs() < 0.01).collect();
    let falls = |pair: &&[&At]| pair[0].ratio >= 1.0 && pair[1].ratio < 1.0;
    row.windows(2).find(falls).map(|pair| {
        let (left, right) = (pair[0], pair[1]);
        left.waiting
            + (right.waiting - left.waiting) * (left.ratio - 1.0) / (left.ratio - right.ratio)
    })
}

fn picture(at: &[At]) -> Picture {
    let of = |name: &str, sigma, blocking| {
        let points = (0..=16).map(|step| f64::from(step) * 0.05);
        let points = points.map(|x| (x, line(x, sigma, blocking)));
        Series::new(name, points.filter(|&(_, y)| (0.0..=1.6).contains(&y)))
    };
    let measured = |name: &str, is: fn(f64) -> bool| {
        let points = at.iter().filter(|at| is(at.ratio)).map(|at| (at.processing, at.waiting));
        Series::new(name, points).dotted()
    };
    let mut series = vec![
        of(CORNER, 0.5, false),
        of(DIVIDE, 1.0, false),
        of(ABOVE, 0.5, true),
        measured("measured: gangs twice as good", |ratio| ratio >= 2.0),
        measured("measured: neither", |ratio| ratio > 0.5 && ratio < 2.0),
        measured("measured: blocking twice as good", |ratio| ratio <= 0.5),
    ];
    series.retain(|series| !series.points.is_empty());
    Picture {
        title: "Which method is better where".to_owned(),
        shape: Shape::Lines,
        x: Axis::linear("t_p (ms of the paper)"),
        y: Axis::linear("t_w (ms of the paper)"),
        series,
    }
}

/// The prediction for a point that decides nothing.
const UNDECIDED: (f64, f64) = (0.0, f64::INFINITY);

/// Returns the paper's prediction for a point of t_p and t_w: the least and the most that
/// blocking's time over the gangs' may be.
fn said((processing, waiting): (f64, f64)) -> (f64, f64) {
    let (corner, above) = (processing + 2.0 * waiting, waiting - processing);
    let ahead = if waiting <= 0.3 * (1.0 - BAND) {
        (1.0, f64::INFINITY)
    } else if waiting >= 0.3 * (1.0 + BAND) {
        (0.0, 1.0)
    } else {
        UNDECIDED
    };
    if corner <= 0.3 * (1.0 - BAND) {
        (2.0, f64::INFINITY)
    } else if above >= 0.6 * (1.0 + BAND) {
        (0.0, 0.5)
    } else {
        ahead
    }
}

fn verdict(at: &[At]) -> Verdict {
    let said = |at: &At| said((at.processing, at.waiting));
    let wrong: Vec<&At> = at
        .iter()
        .filter(|at| {
            let (least, most) = said(at);
            at.ratio < least || at.ratio > most
        })
        .collect();
    let corner = at.iter().filter(|at| said(at).0 == 2.0).count();
    let above = at.iter().filter(|at| said(at).1 == 0.5).count();
    let worst = wrong.first().map_or_else(String::new, |at| {
        format!(
            "; at t_p = {}, t_w = {} blocking over gangs is {}",
            significant(at.processing),
            significant(at.waiting),
            significant(at.ratio)
        )
    });
    Verdict::when(
        wrong.is_empty() && !at.is_empty(),
        format!(
            "{} of {} points are as the paper says, {corner} in the gangs' corner and {above} in that of blocking{worst}",
            at.len() - wrong.len(),
            at.len(),
        ),
    )
}

#[cfg(test)]
mod tests {
    use stanchion_study::stated::place;

    use super::*;

    #[test]
    fn each_part_of_the_claim_counts() {
        let judged =
            |processing, waiting, ratio| verdict(&[At { processing, waiting, ratio }]).name();
        assert_eq!(judged(0.1, 0.05, 2.1), "holds");
        assert_eq!(judged(0.1, 0.05, 1.9), "differs", "not twice");
        assert_eq!(judged(0.4, 0.2, 1.1), "holds");
        assert_eq!(judged(0.4, 0.2, 0.9), "differs", "blocking is ahead too early");
        assert_eq!(judged(0.4, 0.4, 0.9), "holds");
        assert_eq!(judged(0.4, 0.4, 1.1), "differs", "it never gets ahead");
        assert_eq!(judged(0.2, 1.1, 0.45), "holds");
        assert_eq!(judged(0.2, 1.1, 0.6), "differs", "blocking is not twice as good");
        assert_eq!(judged(0.4, 0.3, 1.5), "holds", "on the line");
    }

    #[test]
    fn the_lines_go_through_the_points_that_the_paper_states() {
        let mut pictures = [picture(&[])];
        assert_eq!(place(&crate::points(), EXPERIMENT.id, &mut pictures, true), Ok(()));
        let lines = [(CORNER, 0.5, false), (DIVIDE, 1.0, false), (ABOVE, 0.5, true)];
        for (series, (name, sigma, blocking)) in pictures[0].series.iter().zip(lines) {
            assert_eq!((&*series.name, series.stated.len()), (name, 1));
            let point = &series.stated[0];
            // The paper rounds to a tenth of a millisecond, and ten threads are nine waits.
            assert!((line(point.x, sigma, blocking) - point.y).abs() < 0.07, "{name}: {point:?}");
        }
    }
}
