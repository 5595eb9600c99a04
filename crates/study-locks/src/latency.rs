//! The latency of a lock and an unlock for a single thread.

use std::hint::black_box;

use super::contender::Contender;
use stanchion_study::measure::least;

/// Measures one lock and unlock of a new lock of type `L` around one increment, in nanoseconds.
pub fn run<L: Contender>(runs: u32) -> f64 {
    let lock = black_box(L::new());
    least(runs, 20_000, || lock.with(|shared| shared.counter = black_box(shared.counter) + 1))
}
