//! The figures that the paper states of its machine, which are what the simulated Makbilan is told,
//! and the points that it states for the charts.

use stanchion_simulator::machines;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Paper;
use stanchion_study::measure::median;
use stanchion_study::settings::gangs::Method;
use stanchion_study::stated::{Beside, Point, Stated, Unit, X};

use super::{fig4, fig5, fig7, fig9, simulated};

/// Returns the figures that the paper states, and that which our Makbilan takes.
///
/// # Errors
///
/// If the simulation fails.
pub fn stated(context: &Context) -> Result<Vec<Stated>, Stop> {
    let (gaps, _) = simulated::overheads(context, &machines::makbilan())?;
    let scheduling = (Unit::Nanos, 200_000.0);
    Ok(vec![
        Stated::input((Paper::Fr92, "section 3.3"), "barrier of ten", (Unit::Nanos, 137_000.0)),
        Stated::input((Paper::Fr92, "section 4"), "context switch", (Unit::Nanos, 200_000.0)),
        Stated::input((Paper::Fr92, "section 4"), "blocking", (Unit::Nanos, 300_000.0)),
        Stated::computed(
            (Paper::Fr92, "table 1"),
            "scheduling with gangs",
            scheduling,
            median(gaps),
            None,
        ),
        Stated::input((Paper::Fr92, "table 1"), "spawning", (Unit::Nanos, 1_600_000.0)),
        Stated::not_comparable(
            (Paper::Fr92, "table 1"),
            "spawning with gangs",
            "our executor keeps its threads from one gang to the next",
        ),
    ])
}

/// Returns the points that the paper states for the charts.
pub fn points() -> Vec<Point> {
    let point = |experiment, series, (x, y), beside, passage: &str| Point {
        experiment,
        series,
        x: X::At(x),
        y,
        beside,
        passage: passage.to_owned(),
    };
    let time = Beside::ThePapers;
    let mut points = vec![
        point(
            fig4::EXPERIMENT.id,
            Method::Gang.name(),
            (0.137, 0.137),
            time,
            "The interaction at the end of each iteration takes an additional 0.137 ms on 10 \
             processors (section 3.3).",
        ),
        point(
            fig5::SIX.id,
            "10 processors",
            (0.16, 2.0),
            time,
            "For the most fine-grain interactions that were measured, busy waiting with gang \
             scheduling was twice as fast as blocking. This was a granularity of about 0.16 ms \
             (section 3.3).",
        ),
    ];
    // The numbers of competing gangs, with the quantum of 50 ms.
    points.extend([1.0, 2.0, 3.0, 4.0].map(|others| {
        point(
            fig7::EXPERIMENT.id,
            fig7::OTHERS_COMPUTE,
            (others + 1.0, others * 50.0),
            time,
            "The time per iteration of the blocking gang is approximately the product of the \
             number of competing gangs times the scheduling time quantum (section 3.3).",
        )
    }));
    // The axes are in the paper's milliseconds on every machine.
    let corner = "The specific area in the figure is defined by the requirement that t_p + 2 t_w ≤ \
                  300 µs (section 4).";
    let divide = "Busy waiting has the advantage whenever t_w is smaller than 0.3 ms (section 4).";
    let above = "Blocking only has a decided advantage when t_w is larger than t_p by 0.6 ms \
                 (section 4).";
    let conditions =
        [(fig9::CORNER, 0.05, corner), (fig9::DIVIDE, 0.3, divide), (fig9::ABOVE, 0.8, above)];
    points.extend(conditions.map(|(series, waiting, passage)| {
        point(fig9::EXPERIMENT.id, series, (0.2, waiting), Beside::All, passage)
    }));
    points
}
