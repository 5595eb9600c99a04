//! The seconds that the paper states, beside those of the simulated Challenge, and the points that
//! it states for the charts.

use stanchion_simulator::machines;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Paper;
use stanchion_study::stated::{Beside, Point, Stated, Unit, X};

use super::grid::LEVELS;
use super::simulated::{self, Row};
use super::{fig1, fig2, fig3, fig4};

/// The share by which the seconds of one processor may be off.
const ALONE: f64 = 0.1;
/// The share by which those of eleven processors may be off.
const ALL: f64 = 0.25;
const NANOS: f64 = 1e9;

/// A figure: its structures, its seconds, and whether they have bounds.
type Figure = (&'static str, &'static [Row], [[f64; 2]; 3], bool);

const FIGURES: [Figure; 4] = [
    ("figure 1", simulated::QUEUES, fig1::SECONDS, true),
    ("figure 2", simulated::STACKS, fig2::SECONDS, true),
    ("figure 3", simulated::HEAPS, fig3::SECONDS, true),
    // The text has one increment and one delay of 6 µs a turn. The seconds fit two of each, as the
    // turns of the other figures have: so they are printed beside twice ours, too.
    ("figure 4", simulated::COUNTERS, fig4::SECONDS, false),
];

/// The figures of programs.
const PROGRAMS: [(&str, &str); 3] =
    [("figure 5", "quicksort"), ("figure 6", "quicksort"), ("figure 7", "travelling salesman")];

/// Returns the figures that the paper states, and those that our Challenge takes.
///
/// # Errors
///
/// If the simulation fails or the user stops it.
pub fn stated(context: &Context) -> Result<Vec<Stated>, Stop> {
    let machine = machines::challenge();
    context.plan(FIGURES.len() * LEVELS.len() * 2);
    let mut all = Vec::new();
    for (place, rows, theirs, bounded) in FIGURES {
        let ours = simulated::seconds(context, &machine, rows)?;
        for ((level, theirs), ours) in LEVELS.zip(theirs).zip(ours) {
            for (column, (processors, within)) in [(1, ALONE), (11, ALL)].into_iter().enumerate() {
                all.push(Stated::computed(
                    (Paper::Ms97, place),
                    format!("preemption-safe lock, level {level}, processors: {processors}"),
                    (Unit::Nanos, theirs[column] * NANOS),
                    ours[column] * NANOS,
                    bounded.then_some(within),
                ));
                if !bounded {
                    all.push(Stated::computed(
                        (Paper::Ms97, place),
                        format!("two increments a turn, level {level}, processors: {processors}"),
                        (Unit::Nanos, theirs[column] * NANOS),
                        2.0 * ours[column] * NANOS,
                        None,
                    ));
                }
            }
        }
    }
    all.extend(PROGRAMS.map(|(place, program)| {
        let reason = "its input, its compiler and its bounds are not known";
        Stated::not_comparable((Paper::Ms97, place), format!("seconds of {program}"), reason)
    }));
    Ok(all)
}

/// The ratios to the preemption-safe single lock that the text states for 11 processors "with
/// various levels of multiprogramming": each of the three charts shows its own.
const RATIOS: [(&str, &str, f64, &str); 3] = [
    (
        fig1::EXPERIMENT.id,
        "Michael-Scott",
        0.6,
        "It outperforms the single-lock preemption-safe implementation by more than 40% on 11 \
         processors with various levels of multiprogramming (section 4.1).",
    ),
    (
        fig2::EXPERIMENT.id,
        "Treiber",
        0.55,
        "It outperforms the preemption-safe implementation by over 45% on 11 processors with \
         various levels of multiprogramming (section 4.2).",
    ),
    (
        fig4::EXPERIMENT.id,
        "LL/SC",
        0.45,
        "The non-blocking implementation outperforms the preemption-safe lock-based counter by \
         more than 55% on 11 processors (section 4.4).",
    ),
];

/// Returns the points that the paper states for the charts.
pub fn points() -> Vec<Point> {
    let point = |(experiment, series, y, passage): (_, _, _, &str)| Point {
        experiment,
        series,
        x: X::At(11.0),
        y,
        beside: Beside::All,
        passage: passage.to_owned(),
    };
    RATIOS.map(point).into()
}

#[cfg(test)]
mod tests {
    use super::super::grid::{Cell, Grid};
    use super::*;
    use stanchion_study::stated::place;

    #[test]
    fn each_point_is_in_the_charts_of_its_figure() {
        for (experiment, _, _, _) in RATIOS {
            let rows = match FIGURES.iter().position(|figure| experiment.ends_with(&figure.0[7..]))
            {
                Some(figure) => FIGURES[figure].1,
                None => panic!("{experiment} has no rows"),
            };
            let rows: Vec<_> = rows.iter().map(|row| (row.name, row.kind)).collect();
            let cells = vec![Cell { elapsed: 1.0, granted: 1.0 }; LEVELS.len() * rows.len() * 2];
            let mut pictures = Grid::new(rows, vec![1, 11], 1, cells).pictures();
            assert_eq!(place(&points(), experiment, &mut pictures, true), Ok(()));
            for picture in pictures {
                let stated = picture.series.iter().flat_map(|series| &series.stated);
                assert_eq!(stated.count(), 1, "{experiment}: {}", picture.title);
            }
        }
    }
}
