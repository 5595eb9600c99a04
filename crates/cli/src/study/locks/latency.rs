//! What one thread alone pays for a lock and an unlock.

use std::hint::black_box;
use std::time::Instant;

use super::contender::Contender;
use super::contest::nanos;

/// Nanoseconds for `f`, called `calls` times in a row: the least of `runs` means, which is the one that was
/// disturbed least.
pub(crate) fn least(runs: u32, calls: u32, mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let started = Instant::now();
        for _ in 0..calls {
            f();
        }
        best = best.min(nanos(started.elapsed()) / f64::from(calls));
    }
    best
}

/// Nanoseconds for one lock and unlock of a new lock of type `L`, around one increment.
pub(crate) fn run<L: Contender>(runs: u32) -> f64 {
    let lock = black_box(L::new());
    least(runs, 20_000, || lock.with(|shared| shared.counter = black_box(shared.counter) + 1))
}
