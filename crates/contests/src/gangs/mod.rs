//! `stanchion-gang` and its peers: barriers, gangs that take turns, and switches between them.
//!
//! | column | meaning |
//! | --- | --- |
//! | `ns` | the time of the run, divided by its crossings |
//! | `CPU ns` | the processor time of all members, divided by the crossings |
//! | `p99 ns` | the 99th percentile of one member's waits |
//! | `regret` | `ns`, divided by that of the best contestant in the same cell |

pub(crate) mod barriers;
mod crossing;
pub(crate) mod groups;
pub(crate) mod slots;
mod yields;

pub use barriers::{Entrant, entrants};
pub use crossing::{Circumstances, Crossing};

use crate::cell::Cell;

/// The number of rounds of a contest.
const ROUNDS: usize = 5;

/// Returns the cells that criterion can measure.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let mut cells = vec![yields::cell()];
    cells.extend(barriers::cells());
    cells.extend(groups::cells());
    cells
}

/// Returns a time in microseconds or milliseconds.
fn in_words(nanos: u64) -> String {
    match nanos {
        nanos if nanos < 1_000_000 => format!("{} µs", nanos / 1_000),
        nanos => format!("{} ms", nanos / 1_000_000),
    }
}
