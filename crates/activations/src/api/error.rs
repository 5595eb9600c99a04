//! The errors of building a runtime.

use std::io;

use stanchion_machine::stack::StackError;

/// An error that keeps a runtime from being built.
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
        /// The number that was asked for.
        processors: usize,
        /// The most.
        most: usize,
    },
    /// More spare kernel threads than a runtime can have.
    #[error("{spares} spare kernel threads were asked for, and {most} is the most: ask for fewer")]
    SpareKernelThreads {
        /// The number that was asked for.
        spares: usize,
        /// The most.
        most: usize,
    },
    /// Stacks of that size cannot be had, or not even the first of them.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A pinned runtime cannot have an arbiter: runtimes that share processors move to where there
    /// is room.
    #[error(
        "a runtime that shares processors through an arbiter cannot be pinned: leave out one of the two"
    )]
    PinnedAndShared,
    /// The system refused a kernel thread.
    #[error(
        "the system refused kernel thread {number} of the runtime ({error}): ask for fewer processors, or raise the limit of threads (ulimit -u)"
    )]
    Thread {
        /// Its number, from 0.
        number: usize,
        /// The error of the system.
        error: io::Error,
    },
}
