//! `stanchion-threadpool` and its peers.
//!
//! A *workload* is a number of items, done by a pool with a number of threads. An item is a fork or
//! a task. Every contestant does the workload in a process of its own, on a pool that has done it
//! once before.
//!
//! | column | meaning |
//! | --- | --- |
//! | `ns/item` | the time of the run, divided by the items; for latencies the median |
//! | `p99 ns` | the 99th percentile of the items of a latency |
//! | `CPU ns` | the processor time of the process, divided by the items |
//! | `regret` | `ns/item`, divided by that of the best peer in the same cell |

mod apart;
mod batches;
mod halves;
mod joins;
mod latency;
mod load;
mod made;
mod tasks;
mod workload;

pub use batches::{BLOCK, Batch, Entrant, Ran, entrants};

use crate::cell::Cell;
use crate::race;
use crate::{Options, Report};
use workload::Workload;

/// The number of rounds of a contest.
const ROUNDS: usize = 5;

/// Does the run for which this process was started, if a contest of pools has started it. A program
/// that runs contests calls this function before all else in `main`, and ends if it returns true.
#[must_use]
pub fn serve_run() -> bool {
    let Some(told) = apart::told() else { return false };
    if !batches::serve(&told) {
        let workloads: Vec<Workload> =
            [throughput(), latencies(), vec![load::idle()]].into_iter().flatten().collect();
        workload::serve(&told, &workloads);
    }
    true
}

/// Returns the workloads that time all items together.
fn throughput() -> Vec<Workload> {
    vec![joins::tree(), joins::fib(), tasks::null(), tasks::outside(), load::crowded()]
}

/// Returns the workloads that time each item.
fn latencies() -> Vec<Workload> {
    let mut all = vec![
        latency::first_after(100),
        latency::first_after(10_000),
        latency::burst(),
        halves::first(),
        halves::many(),
        halves::outside(),
    ];
    all.extend(halves::after());
    all
}

fn cells_of(workloads: &[Workload]) -> Vec<Cell> {
    workloads.iter().flat_map(Workload::cells).collect()
}

/// Returns the cells of all workloads but that of pools without work.
#[must_use]
pub fn cells() -> Vec<Cell> {
    [throughput(), latencies()].iter().flat_map(|workloads| cells_of(workloads)).collect()
}

/// Runs the workloads that time all items together.
pub(crate) fn contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("pools", cells_of(&throughput()), ROUNDS, options, progress)
}

/// Runs the workloads that time each item.
pub(crate) fn latencies_contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("latencies", cells_of(&latencies()), ROUNDS, options, progress)
}

/// Runs the pools and the executor that have nothing to do.
pub(crate) fn idle_contest(options: &Options, progress: &mut dyn FnMut(&str)) -> Report {
    race::contest("idle", load::idle().cells(), ROUNDS, options, progress)
}
