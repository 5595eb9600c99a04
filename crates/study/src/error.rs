//! Errors of a study.

use std::path::PathBuf;

use crate::command::stanchion;
use crate::units::{count, named};

/// The reason why a study did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A filter matches nothing.
    #[error(
        "no experiment matches `{filter}`{}; `{} study --list` prints all",
        nearest(.near),
        stanchion()
    )]
    UnknownExperiment {
        /// The filter.
        filter: String,
        /// Ids that it may be a misspelling of.
        near: Vec<&'static str>,
    },

    /// A filter is the empty string.
    #[error(
        "an empty filter matches no experiment: leave it out to run all; `{} study --list` prints \
         them",
        stanchion()
    )]
    EmptyFilter,

    /// No chosen experiment has counterfactuals.
    #[error(
        "--counterfactuals: no chosen experiment has any; choose among {}, or leave the option out",
        named(.all)
    )]
    NoCounterfactuals {
        /// The experiments that have some.
        all: Vec<&'static str>,
    },

    /// There is no machine of that name.
    #[error("there is no machine `{name}`{}; there are {}", nearest(.near), .all.join(", "))]
    UnknownMachine {
        /// The name.
        name: String,
        /// Names that it may be a misspelling of.
        near: Vec<&'static str>,
        /// The names of all machines.
        all: Vec<&'static str>,
    },

    /// None of the chosen experiments runs on the machine.
    #[error("{what}: nothing of it runs on {machine}: {why}. Nothing was run and nothing written")]
    NothingRuns {
        /// The chosen experiments.
        what: String,
        /// The machine.
        machine: String,
        /// The reason why the first of them does not run.
        why: String,
    },

    /// A path cannot be written to. This is found before anything runs.
    #[error(
        "cannot write to {}: {source}. Name a writable place with {option}; nothing was run",
        path.display()
    )]
    Unwritable {
        /// The path.
        path: PathBuf,
        /// The option that names it.
        option: &'static str,
        /// The system's error.
        source: std::io::Error,
    },

    /// A file cannot be written.
    #[error("cannot write {}: {source}. What stood there before is whole", path.display())]
    Replace {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },

    /// A device, or standard output, cannot be written to.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },

    /// The description of a machine cannot be read.
    #[error("cannot read the machine's description {}: {source}", path.display())]
    ReadMachine {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },

    /// A file is no description of a machine.
    #[error("{} describes no machine: {source}", path.display())]
    BadMachine {
        /// The file.
        path: PathBuf,
        /// The fault in the description.
        source: Box<stanchion_simulator::machine::Unreadable>,
    },

    /// A cost that a description needs was not measured.
    #[error("no description of this computer can be made: {what} was not measured: {why}")]
    NotDescribed {
        /// The cost.
        what: String,
        /// The reason why it was not measured.
        why: String,
    },

    /// A file of results cannot be read.
    #[error("cannot read the results {}: {why}", path.display())]
    ReadResults {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },

    /// A study cannot go on.
    #[error("cannot resume {}: {why}. {remedy}", path.display())]
    NotResumed {
        /// The file with its results.
        path: PathBuf,
        /// The reason, with the field that differs.
        why: String,
        /// The way out.
        remedy: String,
    },

    /// The folder has no grids to share.
    #[error("there is nothing to share: {} has no random grid of this computer. \
         `{} study regret --random 60 --family locks` measures one", out.display(), stanchion())]
    NothingToShare {
        /// The output folder.
        out: PathBuf,
    },

    /// A file cannot be compared.
    #[error("cannot compare {}: {why}. {remedy}", path.display())]
    NotShared {
        /// The file.
        path: PathBuf,
        /// The reason, with the place in the file.
        why: String,
        /// The way out.
        remedy: &'static str,
    },

    /// Two files have cells of different distributions.
    #[error(
        "cannot compare {} with {}: their {family} were drawn from distributions {} and {}. \
         Measure both with the same version of stanchion", one.0.display(), other.0.display(), one.1, other.1
    )]
    Distributions {
        /// The family.
        family: String,
        /// The first file, and the version of its distributions.
        one: (PathBuf, u32),
        /// The second file, and the version of its distributions.
        other: (PathBuf, u32),
    },

    /// Two files that judge each other are of different computers.
    #[error(
        "cannot judge {} by {}: they are of different computers, or of different kernels. \
         Measure both on one computer", answers.display(), cells.display()
    )]
    NotOneComputer {
        /// The file with the answers.
        answers: PathBuf,
        /// The file with the cells.
        cells: PathBuf,
    },

    /// Two files that judge each other have the same cells.
    #[error(
        "cannot judge {} by {}: both have the cells of seed {seed} ({family}). \
         Measure one with another --seed and another --output", answers.display(), cells.display()
    )]
    SameCells {
        /// The kind of thing.
        family: &'static str,
        /// The seed.
        seed: u64,
        /// The file with the answers.
        answers: PathBuf,
        /// The file with the cells.
        cells: PathBuf,
    },

    /// The results cannot be written as JSON.
    #[error("cannot express the results as JSON: {0}")]
    Json(#[from] serde_json::Error),

    /// The handler of Ctrl-C cannot be installed.
    #[error("cannot listen for Ctrl-C: {0}")]
    Listen(#[from] ctrlc::Error),

    /// This many experiments failed.
    #[error("{} failed; the report says why", count(*.0, "experiment"))]
    Failed(usize),

    /// The user ended the study. The path is that of the report with the finished experiments.
    #[error("interrupted; the finished experiments are in {}", .0.display())]
    Interrupted(PathBuf),
}

impl Error {
    /// Returns the exit code of a command that ends with it: 2 if the command line or a file named
    /// on it is wrong, 130 if the user ended it, and 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownExperiment { .. }
            | Self::EmptyFilter
            | Self::NoCounterfactuals { .. }
            | Self::UnknownMachine { .. }
            | Self::NothingRuns { .. }
            | Self::ReadMachine { .. }
            | Self::BadMachine { .. }
            | Self::ReadResults { .. }
            | Self::NotResumed { .. }
            | Self::NothingToShare { .. }
            | Self::NotShared { .. }
            | Self::Distributions { .. }
            | Self::NotOneComputer { .. }
            | Self::SameCells { .. }
            | Self::Unwritable { .. } => 2,
            Self::Interrupted(_) => 130,
            Self::Replace { .. }
            | Self::Write { .. }
            | Self::NotDescribed { .. }
            | Self::Json(_)
            | Self::Listen(_)
            | Self::Failed(_) => 1,
        }
    }
}

fn nearest(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) }
}
