//! What can go wrong when a pool is built or resized, and what becomes of a future that is not
//! finished.

use std::io;

/// A pool could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// More threads than a pool can have.
    #[error(
        "a pool of {asked} threads was asked for, but {most} is the most: ask for fewer, or build several pools"
    )]
    TooManyThreads {
        /// How many were asked for, spare ones included.
        asked: usize,
        /// How many there can be.
        most: usize,
    },
    /// The system refused to start a thread. Those that had been started have ended again.
    #[error(
        "the system refused to start thread {started} of {asked}: {source}; ask for fewer, or raise its limit on threads (`ulimit -u`, the control group's pids.max)"
    )]
    Spawn {
        /// How many could be started.
        started: usize,
        /// How many were asked for.
        asked: usize,
        /// What the system said.
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

/// A pool could not be made as large as was asked.
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
        /// How many were asked for.
        asked: usize,
        /// How many it was built for.
        most: usize,
    },
    /// The system refused to start a thread. The pool has grown so far.
    #[error(
        "the system refused to start thread {started} of {asked}: {source}; the pool has {started} now"
    )]
    Spawn {
        /// How many the pool has now.
        started: usize,
        /// How many were asked for.
        asked: usize,
        /// What the system said.
        source: io::Error,
    },
}

/// A future will have no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the future was dropped before it was ready: it was aborted, or its thread pool ended; wait for it before the pool is dropped or shut down"
)]
pub struct Cancelled;
