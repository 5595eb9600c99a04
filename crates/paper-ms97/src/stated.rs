//! The seconds that the paper states, beside those of the simulated Challenge.

use stanchion_simulator::machines;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Paper;
use stanchion_study::stated::{Stated, Unit};

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
    // The text has one delay of 6 µs a turn. The seconds fit two, as in the other figures.
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
            }
        }
    }
    all.extend(PROGRAMS.map(|(place, program)| {
        let reason = "its input, its compiler and its bounds are not known";
        Stated::not_comparable((Paper::Ms97, place), format!("seconds of {program}"), reason)
    }));
    Ok(all)
}
