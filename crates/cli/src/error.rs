//! The errors that the command reports, and its exit codes.

use std::path::PathBuf;

/// Why the command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0} is for experiments on this computer: leave it out, or leave out --machine")]
    OnlyOnReal(&'static str),

    #[error("{0} is for simulated machines: add --machine simulated, or the name of one")]
    OnlyOnSimulated(&'static str),

    #[error(
        "{0} is for the experiment `regret`, which is not chosen: add `regret` or leave it out"
    )]
    OnlyForRegret(&'static str),

    #[error(
        "--waits is for the experiments klmo91/table1 and klmo91/table2, neither of which is chosen: add one or leave it out"
    )]
    OnlyForTables,

    #[error("{0} is for a recording: leave it out for the results of a study")]
    OnlyForRecordings(&'static str),

    #[error("cannot report {}: {reason}", path.display())]
    Profile { path: PathBuf, reason: crate::paths::NotRead },

    #[error("cannot report {}: {reason}", path.display())]
    Orders { path: PathBuf, reason: crate::orders::NotRead },

    #[error("two files are reported together if one is a recording and one has orders of locks: {} is neither, or of the same kind as the other", .0.display())]
    Together(PathBuf),

    #[error(
        "--judge takes two files, one for the answers and one for the cells that judge them; there are {0}"
    )]
    JudgesTwo(usize),

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },

    #[error("no lock's name contains `{filter}`; there are {}", .all.join(", "))]
    UnknownLock { filter: String, all: Vec<&'static str> },

    #[error("on the simulated machine: {0}")]
    Simulated(#[from] stanchion_simulator::Failure),

    #[error("the figures of the paper's {machine}: {reason}")]
    Papers { machine: &'static str, reason: String },

    #[error("cannot judge the waits for {lock}: {source}")]
    Judge { lock: String, source: stanchion_formulas::competitive::CompetitiveError },

    #[error("what is proven does not hold, which is a mistake in stanchion, please report it: {0}")]
    Theorem(String),

    #[error("cannot express the results as JSON: {0}")]
    Json(#[from] serde_json::Error),

    #[error(transparent)]
    Study(#[from] stanchion_study::error::Error),

    #[error(transparent)]
    Regret(#[from] stanchion_regret::options::Refusal),

    #[error(transparent)]
    Random(#[from] stanchion_regret::random::Refusal),

    #[error(transparent)]
    Recording(#[from] stanchion_paper_klmo91::waits::pool::Error),

    #[error(transparent)]
    Record(#[from] crate::record::Refusal),

    #[error(transparent)]
    Stalls(#[from] crate::record::stalls::Refusal),

    #[error(transparent)]
    Watch(#[from] crate::watch::Refusal),

    #[error(transparent)]
    Patch(#[from] crate::patch::Refusal),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownLock { .. }
            | Self::OnlyOnReal(_)
            | Self::OnlyOnSimulated(_)
            | Self::OnlyForRegret(_)
            | Self::OnlyForTables
            | Self::OnlyForRecordings(_)
            | Self::Profile { .. }
            | Self::Orders { .. }
            | Self::Together(_)
            | Self::JudgesTwo(_)
            | Self::Regret(_)
            | Self::Random(_)
            | Self::Recording(_) => 2,
            Self::Study(error) => error.exit_code(),
            Self::Record(refusal) => refusal.exit_code(),
            Self::Stalls(refusal) => refusal.exit_code(),
            Self::Watch(refusal) => refusal.exit_code(),
            Self::Patch(refusal) => refusal.exit_code(),
            Self::Write { .. }
            | Self::Simulated(_)
            | Self::Papers { .. }
            | Self::Judge { .. }
            | Self::Theorem(_)
            | Self::Json(_) => 1,
        }
    }
}
