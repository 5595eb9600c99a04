//! The errors of joining an arbiter.

use std::io;
use std::path::PathBuf;

/// The most runtimes that can share.
pub(super) const ENTRIES: usize = 63;

/// An error that keeps a runtime from sharing processors.
///
/// ```
/// let refused = stanchion_activations::Arbiter::join("no/name of a file").unwrap_err();
/// println!("{refused}");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArbiterError {
    /// The name cannot be part of a file name.
    #[error("an arbiter cannot be called {name:?}: use 1 to 64 letters, digits, '-' and '_'")]
    Name {
        /// The name.
        name: String,
    },
    /// The file cannot be opened, made or mapped.
    #[error(
        "{path}, through which runtimes share processors, cannot be used ({error}): check that the directory exists and that the file is yours"
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// There is a file of that name of another user or version.
    #[error(
        "{path} is not a table of processors of this user and version: remove it, or choose another name"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// This system has no locks of single bytes of a file that belong to the open file.
    #[error(
        "this system has no open file description locks, by which runtimes share processors: \
         leave the arbiter out, and each runtime uses as many processors as it is told"
    )]
    Unsupported,
    /// The most runtimes that can share do so already.
    #[error("{path} has {ENTRIES} runtimes already: choose another name")]
    Full {
        /// The file.
        path: PathBuf,
    },
}
