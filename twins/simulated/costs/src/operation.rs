//! An operation whose cost is counted: how it is set up, and what each thread then does again and again.

use machine::sync::Arc;

/// What one thread does in one round.
pub(crate) type Round = Box<dyn Fn() + Send>;

/// An operation.
pub(crate) struct Operation {
    /// As in the docs: the type, then what is called.
    pub(crate) name: &'static str,
    /// Makes, inside a run, what the threads share, and the round of each of so many threads.
    pub(crate) set_up: fn(threads: usize) -> Vec<Round>,
}

/// All threads do the same with what `make` makes.
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
