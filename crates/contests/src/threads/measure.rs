//! Time and processor time of operations.

use std::time::{Duration, Instant};

pub(crate) use crate::work::{Work, median, process_time};

/// The result of a run, in ns for each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) ns: f64,
    /// Processor time of the whole process.
    pub(crate) cpu: f64,
}

/// Calls `operations` over and over until the time is up. Each call does so many operations.
pub(crate) fn repeat(lasting: Duration, each: u64, mut operations: impl FnMut()) -> Figures {
    operations();
    let (mut calls, cpu, begun) = (0, process_time(), Instant::now());
    // The clock is not read after each operation, which may be shorter than a look at the clock.
    let mut batch = 1;
    while begun.elapsed() < lasting {
        for _ in 0..batch {
            operations();
        }
        calls += batch;
        batch = (batch * 2).min(64);
    }
    by(begun, cpu, calls * each)
}

/// Returns the times since `begun`, divided by the number of operations.
pub(crate) fn by(begun: Instant, cpu: u64, operations: u64) -> Figures {
    let ns = begun.elapsed().as_nanos() as f64;
    let cpu = (process_time() - cpu) as f64;
    let operations = operations.max(1) as f64;
    Figures { ns: ns / operations, cpu: cpu / operations }
}

/// Returns the number of processors that the process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns, for each share, the figure that this share of all figures does not exceed.
pub(crate) fn percentiles<const N: usize>(figures: &mut [f64], shares: [f64; N]) -> [f64; N] {
    figures.sort_by(f64::total_cmp);
    shares.map(|share| figures[((figures.len() - 1) as f64 * share).round() as usize])
}
