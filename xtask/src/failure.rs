//! Why a task failed, in words that name the mend.

use std::path::{Path, PathBuf};

/// The result of a task.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a task failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A command could not be started.
    #[error("could not start `{command}`: {source}; is it installed and on PATH?")]
    Start {
        /// The command line.
        command: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A command ran and said no.
    #[error("`{command}` failed ({status}); its output above says why")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status.
        status: std::process::ExitStatus,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The task's own verdict.
    #[error("{0}")]
    Verdict(String),
    /// Several tasks failed; each has said why.
    #[error("{} of the tasks failed:\n{}", .0.len(), .0.join("\n"))]
    Tasks(Vec<String>),
}

impl Failure {
    /// The task's own verdict.
    pub(crate) fn verdict(text: impl Into<String>) -> Self {
        Self::Verdict(text.into())
    }

    /// For `map_err` after a file operation on `path`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
