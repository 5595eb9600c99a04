//! `stanchion-activations` and its peers.
//!
//! `ns` is the time of a run, divided by its operations, and `CPU ns` the processor time of the
//! whole process, divided by the operations. `by first` is `ns`, divided by that of the first
//! contestant.

pub(crate) mod blocked;
pub(crate) mod fork;
pub(crate) mod hogs;
mod measure;
pub(crate) mod signal;
pub(crate) mod upcall;
pub(crate) mod waits;

use std::time::Duration;

use crate::cell::{Against, Cell, Column, Contestant};
use crate::work::processors;

/// The number of rounds of a contest.
const ROUNDS: usize = 5;

/// The time of a run.
const LASTING: Duration = Duration::from_millis(100);

/// The columns of [`measure::Figures`].
const COLUMNS: &[Column] = &[Column::median("ns", 0), Column::median("CPU ns", 0)];

/// Returns the cells that criterion can measure.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let all = [fork::cells(), signal::cells(), blocked::cells(), hogs::cells(), waits::cells()];
    all.into_iter().flatten().collect()
}

fn cell(title: String, contestants: Vec<Contestant>) -> Cell {
    Cell::new(title, COLUMNS, Against::First, contestants).sampled(0.3)
}

/// Returns one processor, and all that the process may use.
fn sizes() -> Vec<usize> {
    let mut sizes = vec![1, processors()];
    sizes.dedup();
    sizes
}
