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

    #[error("there is no machine `{name}`{}; there are {}", nearest(.near), .all.join(", "))]
    UnknownMachine {
        name: String,
        /// Names that it may be a slip of the pen for.
        near: Vec<&'static str>,
        all: Vec<&'static str>,
    },

    #[error("{what}: nothing of it runs on {machine}: {why}. Nothing was run and nothing written")]
    NothingRuns { what: String, machine: String, why: String },

    #[error("{0} is for experiments on this computer: leave it out, or leave out --machine")]
    OnlyOnReal(&'static str),

    #[error("{0} is for simulated machines: add --machine simulated, or the name of one")]
    OnlyOnSimulated(&'static str),

    #[error(
        "no cell has all tokens of `{0}`. A cell is named THREADS-SECTION-OUTSIDE-COMPANY, of 1t 2t 4t \
         8t 32t, 0ns 100ns 1us 10us 200us, tight 4x, quiet hogs, as in 8t-1us-4x-hogs; two more \
         are phases and sleeper. Some tokens mean all cells that have them: 8t-hogs"
    )]
    UnknownCell(String),

    #[error("no contestant matches `{filter}`; there are {}, and the words ours and peers", .all.join(", "))]
    UnknownContestant { filter: String, all: Vec<&'static str> },

    #[error(
        "{0} is for the experiment `regret`, which is not chosen: add `regret` or leave it out"
    )]
    OnlyForRegret(&'static str),

    #[error(
        "--waits is for the experiments klmo91/table1 and klmo91/table2, neither of which is chosen: add one or leave it out"
    )]
    OnlyForTables,

    #[error(
        "cannot write to {}: {source}. Name a writable place with {option}; nothing was run",
        path.display()
    )]
    Unwritable { path: PathBuf, option: &'static str, source: std::io::Error },

    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },

    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },

    #[error("cannot read the machine's description {}: {source}", path.display())]
    ReadMachine { path: PathBuf, source: std::io::Error },

    #[error("{} describes no machine: {source}", path.display())]
    BadMachine { path: PathBuf, source: Box<stanchion_simulator::machine::Unreadable> },

    #[error("no description of this computer can be made: {what} was not measured: {why}")]
    NotDescribed { what: String, why: String },

    #[error("no lock's name contains `{filter}`; there are {}", .all.join(", "))]
    UnknownLock { filter: String, all: Vec<&'static str> },

    #[error("on the simulated machine: {0}")]
    Simulated(#[from] stanchion_simulator::Failure),

    #[error("{}: {source}", path.display())]
    NotARecording { path: PathBuf, source: stanchion_competitive::waits::FileError },

    #[error("cannot judge the waits for {lock}: {source}")]
    Judge { lock: String, source: stanchion_model::competitive::CompetitiveError },

    #[error("what is proven does not hold, which is a mistake in stanchion, please report it: {0}")]
    Theorem(String),

    #[error("cannot draw the picture of {id}: {reason}")]
    Draw { id: String, reason: String },

    #[error("cannot express the results as JSON: {0}")]
    Json(#[from] serde_json::Error),

    #[error("cannot listen for Ctrl-C: {0}")]
    Listen(#[from] ctrlc::Error),

    #[error("{} failed; the report says why", count(*.0, "experiment"))]
    Failed(usize),

    #[error(transparent)]
    Record(#[from] crate::record::Refusal),

    #[error("interrupted; what was finished is in {}", .0.display())]
    Interrupted(PathBuf),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownExperiment { .. }
            | Self::EmptyFilter
            | Self::UnknownMachine { .. }
            | Self::UnknownLock { .. }
            | Self::ReadMachine { .. }
            | Self::BadMachine { .. }
            | Self::NothingRuns { .. }
            | Self::OnlyOnReal(_)
            | Self::OnlyOnSimulated(_)
            | Self::UnknownCell(_)
            | Self::UnknownContestant { .. }
            | Self::OnlyForRegret(_)
            | Self::OnlyForTables
            | Self::Unreadable { .. }
            | Self::NotARecording { .. }
            | Self::Unwritable { .. } => 2,
            Self::Interrupted(_) => 130,
            Self::Record(refusal) => refusal.exit_code(),
            Self::Write { .. }
            | Self::NotDescribed { .. }
            | Self::Simulated(_)
            | Self::Draw { .. }
            | Self::Judge { .. }
            | Self::Theorem(_)
            | Self::Json(_)
            | Self::Listen(_)
            | Self::Failed(_) => 1,
        }
    }
}

fn nearest(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) }
}
