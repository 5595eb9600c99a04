//! What the command reports and exits with.

use std::path::PathBuf;

/// Why the command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "no experiment matches `{filter}`; nearest: {nearest}. `stanchion study --list` prints \
         all"
    )]
    UnknownExperiment { filter: String, nearest: String },

    #[error(
        "cannot write to {}: {source}. Name a writable place with {option}; nothing was run",
        path.display()
    )]
    Unwritable { path: PathBuf, option: &'static str, source: std::io::Error },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },

    #[error("cannot draw the picture of {id}: {reason}")]
    Draw { id: String, reason: String },

    #[error("cannot express the results as JSON: {0}")]
    Json(#[from] serde_json::Error),

    #[error("cannot listen for Ctrl-C: {0}")]
    Listen(#[from] ctrlc::Error),

    #[error("{0} experiment(s) failed; the report says why")]
    Failed(usize),

    #[error("interrupted; what was finished is in {}", .0.display())]
    Interrupted(PathBuf),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownExperiment { .. } | Self::Unwritable { .. } => 2,
            Self::Interrupted(_) => 130,
            Self::Write { .. }
            | Self::Draw { .. }
            | Self::Json(_)
            | Self::Listen(_)
            | Self::Failed(_) => 1,
        }
    }
}
