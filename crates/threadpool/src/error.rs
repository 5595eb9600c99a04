//! The errors of building and resizing a pool, and of a future that has no output.

use std::io;

/// An error of building a pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// More threads than a pool can have.
    #[error(
        "a pool of {asked} threads was asked for, but {most} is the most: ask for fewer, or build several pools"
    )]
    TooManyThreads {
        /// The number that was asked for, with spares.
        asked: usize,
        /// The most that there can be.
        most: usize,
    },
    /// The system refused to start a thread. Those that had been started have ended again.
    #[error(
        "the system refused to start thread {started} of {asked}: {source}; ask for fewer, or raise its limit on threads (`ulimit -u`, the control group's pids.max)"
    )]
    Spawn {
        /// The number that could be started.
        started: usize,
        /// The number that was asked for.
        asked: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The calling thread was to be one of the pool's, and is a worker already.
    #[error(
        "the calling thread was to be a worker of this pool, but is one of another already: build the pool on another thread, or without `use_current_thread`"
    )]
    CurrentThreadAlreadyInPool,
    /// There is a global pool already.
    #[error("the global pool exists already: build it once, first of all in `main`")]
    GlobalPoolAlreadyInitialized,
}

/// An error of resizing a pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// A pool of no threads would never run anything.
    #[error(
        "a pool cannot be resized to 0 threads: it would never run its tasks; shut it down instead"
    )]
    NoThreads,
    /// More than it was built for.
    #[error(
        "the pool was asked to grow to {asked} threads, but was built for at most {most}: say `max_threads({asked})` when it is built"
    )]
    TooManyThreads {
        /// The number that was asked for.
        asked: usize,
        /// The number that it was built for.
        most: usize,
    },
    /// The system refused to start a thread. The pool has grown so far.
    #[error(
        "the system refused to start thread {started} of {asked}: {source}; the pool has {started} now"
    )]
    Spawn {
        /// The number that the pool has now.
        started: usize,
        /// The number that was asked for.
        asked: usize,
        /// The system's error.
        source: io::Error,
    },
}

/// The error of a future that will have no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the future was dropped before it was ready: it was aborted, or its thread pool ended; wait for it before the pool is dropped or shut down"
)]
pub struct Cancelled;
