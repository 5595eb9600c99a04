//! Time and processor time of operations.

use std::time::{Duration, Instant};

use crate::cell::Figures;
use crate::work::process_time;

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

/// Returns the time since `begun`, and the processor time of the whole process since it was `cpu`,
/// in nanoseconds for each operation.
pub(crate) fn by(begun: Instant, cpu: u64, operations: u64) -> Figures {
    let ns = begun.elapsed().as_nanos() as f64;
    let cpu = (process_time() - cpu) as f64;
    let operations = operations.max(1) as f64;
    vec![ns / operations, cpu / operations]
}
