//! On the real machine a model is a stress test: the body, a few dozen times, with real threads.

/// The number of runs of a body.
pub(crate) const RUNS: usize = 32;

pub(crate) fn run(body: impl Fn()) {
    for _ in 0..RUNS {
        body();
    }
}
