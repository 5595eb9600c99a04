//! What can go wrong before anything runs.

use std::io;

use machine::stack::StackError;

/// Why there is no runtime.
///
/// ```
/// use stanchion_activations::{BuildError, Runtime};
///
/// let refused = Runtime::new(1_000_000).unwrap_err();
/// assert!(matches!(refused, BuildError::Processors { most: 1_024, .. }));
/// assert!(refused.to_string().contains("ask for fewer"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// More processors than a runtime can have.
    #[error(
        "a runtime of {processors} processors was asked for, and {most} is the most: ask for fewer, or 0 for as many as the process may use"
    )]
    Processors {
        /// How many were asked for.
        processors: usize,
        /// The most.
        most: usize,
    },
    /// More spare kernel threads than a runtime can have.
    #[error("{spares} spare kernel threads were asked for, and {most} is the most: ask for fewer")]
    SpareKernelThreads {
        /// How many were asked for.
        spares: usize,
        /// The most.
        most: usize,
    },
    /// Stacks of that size cannot be had, or not even the first of them.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// Runtimes that share processors move to where there is room.
    #[error(
        "a runtime that shares processors through an arbiter cannot be pinned: leave out one of the two"
    )]
    PinnedAndShared,
    /// The system refused a kernel thread.
    #[error(
        "the system refused kernel thread {number} of the runtime ({error}): ask for fewer processors, or raise the limit of threads (ulimit -u)"
    )]
    Thread {
        /// Which of them, from 0.
        number: usize,
        /// What it said.
        error: io::Error,
    },
}
