//! The figures of the paper's table 3.1, beside those of the simulated Symmetry, and the point that
//! the table states for its chart.

use stanchion_simulated_locks::registry::{LOCKS, of_way};
use stanchion_simulator::machines;
use stanchion_study::context::{Context, Stop};
use stanchion_study::experiment::Paper;
use stanchion_study::simulation::cells;
use stanchion_study::stated::{Beside, Point, Stated, Unit, X};
use stanchion_study_locks::list::Way;

use super::table3_1;

const TABLE: (Paper, &str) = (Paper::All89, "table 3.1");
/// By callgrind, a call of a procedure that does nothing executes two instructions of an optimized
/// build, and each argument one. At the 0.333 µs of an instruction that is 0.67 and 0.33 µs.
const CALLS: &str = "a call is two of our instructions, an argument one: no factor of a compiler gives 3.6 and 1 µs";

/// Returns the figures that the paper states, and those that our Symmetry takes.
///
/// # Errors
///
/// If the simulation fails or the user stops it.
pub fn stated(context: &Context) -> Result<Vec<Stated>, Stop> {
    let machine = machines::symmetry_a(20);
    let (times, seed) = (context.pick(1_000, 10_000), context.seed);
    context.plan(1);
    let lock = &LOCKS[of_way(Way::Backoff)];
    let ours = cells(context, &machine, &[()], |()| (lock.latency)(&machine, times, seed))?[0];
    Ok(vec![
        Stated::input(TABLE, "half of a lock and its unlock", (Unit::Nanos, 2_800.0)),
        Stated::computed(TABLE, "lock and unlock", (Unit::Nanos, 5_600.0), ours, Some(0.1)),
        Stated::input(TABLE, "iteration of a null loop", (Unit::Nanos, 2_500.0)),
        Stated::not_comparable(TABLE, "procedure call, each argument", CALLS),
        Stated::input((Paper::All89, "section 3.6"), "thread of PRESTO", (Unit::Nanos, 600_000.0)),
    ])
}

/// Returns the points that the paper states for the charts.
pub fn points() -> Vec<Point> {
    vec![Point {
        experiment: table3_1::EXPERIMENT.id,
        series: LOCKS[of_way(Way::Backoff)].name,
        x: X::At(1.0),
        y: 5_600.0,
        beside: Beside::ThePapers,
        passage: "Table 3.1, acquire and release a lock: 5.6 µs.".to_owned(),
    }]
}
