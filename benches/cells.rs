//! Gives the cells of `stanchion-contests` to criterion: each cell is a group, each contestant in
//! it a benchmark.

use std::time::Duration;

use criterion::Criterion;
use stanchion_contests::Effort;
use stanchion_contests::cell::Cell;

use crate::suite::{bench, has_argument, windows};

/// Measures one operation of each contestant. Every sample takes one run of many operations. Its
/// time is scaled to the number of iterations that criterion asks for.
pub(crate) fn measure(criterion: &mut Criterion, cells: Vec<Cell>) {
    for cell in cells {
        let mut group = criterion.benchmark_group(&cell.title);
        windows(&mut group);
        let effort = effort(cell.sample);
        for contestant in &cell.contestants {
            bench(&mut group, &contestant.name, |bencher| {
                bencher.iter_custom(|operations| scaled(contestant.run(effort)[0], operations));
            });
        }
        group.finish();
    }
}

/// Returns the time of that many operations.
pub(crate) fn scaled(ns: f64, operations: u64) -> Duration {
    Duration::from_secs_f64(ns * operations as f64 / 1e9)
}

/// Returns the share of a contest's run for one sample. In criterion's test mode, which only shows
/// whether everything runs, it is small.
fn effort(sample: Effort) -> Effort {
    let tests = has_argument("--test") || !has_argument("--bench");
    Effort(if tests { sample.0 / 50.0 } else { sample.0 })
}
