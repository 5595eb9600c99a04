//! A measured operation: its setup, and the round that each thread repeats.

use stanchion_machine::sync::Arc;

/// The work of one thread in one round.
pub(crate) type Round = Box<dyn Fn() + Send>;

/// The rounds that were timed.
pub(crate) struct Rounds {
    /// The sum of their times over all threads.
    pub(crate) nanos: u64,
    /// The number of rounds of all threads.
    pub(crate) count: u64,
}

/// An operation.
pub(crate) struct Operation {
    /// The name as in the docs: the type, then the function.
    pub(crate) name: &'static str,
    /// Makes the data that the threads share, and the round of each of `threads` threads. Runs
    /// inside the simulation.
    pub(crate) set_up: fn(threads: usize) -> Vec<Round>,
}

/// Makes rounds in which all threads do the same with the data from `make`.
pub(crate) fn alike<T: Send + Sync + 'static>(
    threads: usize,
    make: impl FnOnce() -> T,
    round: fn(&T),
) -> Vec<Round> {
    let shared = Arc::new(make());
    (0..threads)
        .map(|_| {
            let shared = shared.clone();
            Box::new(move || round(&shared)) as Round
        })
        .collect()
}
