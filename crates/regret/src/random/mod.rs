//! Random grids: cells that are drawn from distributions and not named, so that no lock is tuned to
//! the cells that it is judged by.
//!
//! ```text
//! options ──▶ plan: family, cells (seed and index), contestants, time
//!                │ a family draws each cell (draw, load)
//!                ▼
//!             trial: all contestants interleaved, disturbed cells again
//!                │
//!                ▼
//!             judge: regrets, their distribution, bars ──▶ show
//! ```
//!
//! Drawing, interleaving, repeating, judging and printing are the same for all families. A family
//! brings a name, the limits of its bars, its contestants, and a function that draws a cell. A
//! drawn cell brings its description and the race of each contestant in it.

#[cfg(target_os = "linux")]
mod barriers;
mod draw;
mod judge;
mod load;
mod locks;
mod look;
mod plan;
#[cfg(target_os = "linux")]
mod pools;
mod rwlocks;
mod show;
mod spinlocks;
#[cfg(target_os = "linux")]
mod structures;
mod trial;

use std::time::Duration;

use serde_json::Value;
use stanchion_formulas::Random;
use stanchion_study::context::{Context, Stop};
use stanchion_study::outcome::Outcome;

use crate::contestants::Role;
use crate::race::Figures;
use crate::waits::Waits;
use crate::work::Pace;
pub use look::FirstLook;
pub(crate) use look::run as first_look;
pub use plan::{Plan, Refusal};

/// Things of one kind that are compared in random cells.
pub(crate) struct Family {
    /// The name on the command line and in the names of cells.
    name: &'static str,
    /// The operation that is counted, in the plural.
    operations: &'static str,
    /// The limits of the judgement.
    limits: Limits,
    /// The peer with which the waits of all are compared, if waits are timed.
    waits_of: Option<&'static str>,
    /// True if all of ours take part, and not the default alone.
    ours_enter: bool,
    /// Returns all contestants.
    entrants: fn() -> Vec<Entrant>,
    /// Draws a cell for a computer with so many processors.
    draw: fn(&mut Random, usize) -> Drawn,
}

/// All families.
static FAMILIES: &[Family] = &[
    locks::FAMILY,
    rwlocks::FAMILY,
    spinlocks::FAMILY,
    // The contests that have their races are for Linux.
    #[cfg(target_os = "linux")]
    barriers::FAMILY,
    #[cfg(target_os = "linux")]
    structures::BOUNDED_QUEUES,
    #[cfg(target_os = "linux")]
    structures::UNBOUNDED_QUEUES,
    #[cfg(target_os = "linux")]
    structures::STACKS,
    #[cfg(target_os = "linux")]
    structures::HEAPS,
    #[cfg(target_os = "linux")]
    structures::COUNTERS,
    #[cfg(target_os = "linux")]
    pools::FAMILY,
];

/// The largest regrets of our default that meet the bars. A figure without a limit is not judged.
struct Limits {
    /// The geometric mean over all cells.
    mean: Option<f64>,
    /// The regret that nine cells of ten do not exceed.
    p90: Option<f64>,
    /// The worst regret.
    worst: Option<f64>,
    /// The geometric mean of the regrets of processor time.
    processor_time: Option<f64>,
}

/// A contestant of a family.
struct Entrant {
    /// The name in tables.
    name: &'static str,
    /// Its part in the judgement.
    role: Role,
    /// True if a waiter may give its processor away until it is woken.
    sleeps: bool,
}

/// A cell that has been drawn.
struct Drawn {
    /// The parameters, for a reader.
    words: String,
    /// The parameters, for programs.
    data: Value,
    /// The number of other processes that compute meanwhile.
    hogs: usize,
    /// Runs one race of the contestant with that number among the family's. Returns nothing if the
    /// contestant takes no part in such a cell.
    race: Box<Race>,
}

/// Runs one race of a contestant in a drawn cell.
type Race = dyn Fn(usize, &Stage<'_>) -> Option<(Figures, Waits)>;

/// The conditions that all races of a trial share.
struct Stage<'a> {
    /// The processors to run on.
    processors: &'a [usize],
    /// The speed of work.
    pace: Pace,
    /// The time before the counted window.
    settle: Duration,
    /// The length of the counted window.
    window: Duration,
    /// The length of the window in which every wait is timed.
    timed: Duration,
}

/// Does the run for which this process was started, if a race of pools has started it: each of them
/// has a process of its own. A program that runs the study calls this function before all else in
/// `main`, and ends if it returns true.
#[must_use]
pub fn serve_run() -> bool {
    #[cfg(target_os = "linux")]
    return stanchion_contests::serve_run();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Runs the plan.
pub(crate) fn run(context: &Context, plan: &Plan) -> Result<Outcome, Stop> {
    let trial = trial::run(context, plan)?;
    Ok(show::outcome(plan, &trial))
}
