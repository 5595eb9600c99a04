//! What one thread alone pays for a lock and an unlock.

use std::hint::black_box;

use super::contender::Contender;
use stanchion_study::measure::least;

/// Nanoseconds for one lock and unlock of a new lock of type `L`, around one increment.
pub fn run<L: Contender>(runs: u32) -> f64 {
    let lock = black_box(L::new());
    least(runs, 20_000, || lock.with(|shared| shared.counter = black_box(shared.counter) + 1))
}
