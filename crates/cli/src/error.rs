//! What the command reports and exits with.

use std::path::PathBuf;

use crate::units::count;

/// Why the command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(
        "no experiment matches `{filter}`{}; `stanchion study --list` prints all",
        nearest(.near)
    )]
    UnknownExperiment {
        filter: String,
        /// Ids that it may be a slip of the pen for.
        near: Vec<&'static str>,
    },

    #[error(
        "an empty filter names no experiment: leave it out to run all; `stanchion study --list` \
         prints them"
    )]
    EmptyFilter,

    #[error(
        "not built yet: {what}, which needs {needs}; nothing was run and nothing written. \
         `stanchion study --list` says which are built"
    )]
    NothingBuilt { what: String, needs: String },

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

    #[error("{} failed; the report says why", count(*.0, "experiment"))]
    Failed(usize),

    #[error("interrupted; what was finished is in {}", .0.display())]
    Interrupted(PathBuf),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownExperiment { .. }
            | Self::EmptyFilter
            | Self::NothingBuilt { .. }
            | Self::Unwritable { .. } => 2,
            Self::Interrupted(_) => 130,
            Self::Write { .. }
            | Self::Draw { .. }
            | Self::Json(_)
            | Self::Listen(_)
            | Self::Failed(_) => 1,
        }
    }
}

fn nearest(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) }
}
