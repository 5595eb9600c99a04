//! The arguments that choose a lock, and the files that go with them.

use crate::policies::{self, Chosen};
use crate::{Program, locks};
use clap::Args;
use stanchion_competitive::Policy;
use stanchion_competitive::policy::OptimalOnline;
use stanchion_competitive::waits::{self, FileError, Thresholds};
use std::cell::Cell;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// `--lock NAME` or `--policy NAME`, not both; to be flattened into an example's arguments.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// The lock.
    #[arg(long, value_name = "NAME", default_value = locks::DEFAULT, value_parser = locks::values(), conflicts_with = "policy")]
    lock: String,

    /// Instead of a lock, a policy of the mutex that spins and then blocks.
    #[arg(long, value_name = "NAME", value_parser = policies::Parser)]
    policy: Option<Chosen>,

    /// Writes the waits of each lock to this file, for `stanchion advise FILE`; with --policy only.
    #[arg(long, value_name = "FILE", requires = "policy", conflicts_with = "lock")]
    waits: Option<PathBuf>,
}

/// A file that stands in the way of a run.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It cannot be read.
    #[error("{}: cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, #[source] io::Error),
    /// It is no file of thresholds.
    #[error("{}: {}", .0.display(), .1)]
    Thresholds(PathBuf, #[source] FileError),
    /// It cannot be written.
    #[error("{}: cannot be written: {}", .0.display(), .1)]
    Unwritable(PathBuf, #[source] io::Error),
}

impl Choice {
    /// Opens the files, so that their faults are known before the run.
    ///
    /// # Errors
    ///
    /// [`Refused`] names the file.
    pub fn open(&self) -> Result<Locks<'_>, Refused> {
        let thresholds = match &self.policy {
            Some(Chosen::OptimalOnline(file)) => Some(read(file)?),
            _ => None,
        };
        let waits = match &self.waits {
            None => None,
            Some(path) => {
                // What is there already stays until there is something else to write.
                let file = OpenOptions::new().create(true).write(true).truncate(false).open(path);
                Some((path.as_path(), file.map_err(|error| unwritable(path, error))?))
            }
        };
        Ok(Locks { choice: self, thresholds, waits, known: Cell::new(0), made: Cell::new(0) })
    }
}

/// As in `lock mcs` or `policy last-three`.
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.policy {
            Some(policy) => write!(f, "policy {policy}"),
            None => write!(f, "lock {}", self.lock),
        }
    }
}

/// The chosen locks, with which a program runs.
#[derive(Debug)]
pub struct Locks<'a> {
    /// The choice.
    choice: &'a Choice,
    /// The thresholds of the policy, if they come from a file.
    thresholds: Option<Thresholds>,
    /// The file for the recorded waits, if there is one.
    waits: Option<(&'a Path, File)>,
    /// Locks made that have a threshold in the file.
    known: Cell<usize>,
    /// Locks made with thresholds.
    made: Cell<usize>,
}

impl Locks<'_> {
    /// Runs `program`.
    pub fn run<P: Program>(&self, program: P) -> P::Outcome {
        let recorded = self.waits.is_some();
        match (&self.choice.policy, &self.thresholds) {
            (_, Some(thresholds)) => {
                policies::run_with(|name| self.optimal(thresholds, name), recorded, program)
            }
            (Some(Chosen::Named(policy)), None) => policies::run(policy, recorded, program),
            _ => locks::run(&self.choice.lock, program),
        }
    }

    fn optimal(&self, thresholds: &Thresholds, name: &str) -> OptimalOnline {
        self.made.set(self.made.get() + 1);
        match thresholds.of(name) {
            Some(nanos) => {
                self.known.set(self.known.get() + 1);
                OptimalOnline::with_threshold(nanos)
            }
            None => OptimalOnline::INIT,
        }
    }

    /// Ends the run: writes the waits, if they are wanted, and writes to `out` what the files were
    /// used for.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the waits cannot be written. A failure to write to `out` is left for its next
    /// user to find.
    pub fn finish(self, out: &mut dyn Write) -> Result<(), Refused> {
        if let Some(thresholds) = &self.thresholds {
            let _ = writeln!(
                out,
                "\n{} of {} locks have thresholds from the waits of {}; the others spin for what blocking costs",
                self.known.get(),
                self.made.get(),
                thresholds.program,
            );
        }
        let Some((path, mut file)) = self.waits else { return Ok(()) };
        let recording = waits::snapshot();
        let text = recording.to_json();
        replace(&mut file, &text).map_err(|error| unwritable(path, error))?;
        let _ = writeln!(
            out,
            "\n{}: the waits of {} locks that had any; blocking costs {} ns",
            path.display(),
            recording.locks.len(),
            recording.cost_ns,
        );
        Ok(())
    }
}

/// More of a file is not read.
const LONGEST: u64 = 1 << 27;

fn read(path: &Path) -> Result<Thresholds, Refused> {
    let mut bytes = Vec::new();
    // A file may be endless. One that is longer than this is refused for its length.
    let file = File::open(path).and_then(|file| file.take(LONGEST).read_to_end(&mut bytes));
    file.map_err(|error| Refused::Unreadable(path.to_owned(), error))?;
    Thresholds::from_json(&bytes).map_err(|error| Refused::Thresholds(path.to_owned(), error))
}

fn replace(file: &mut File, text: &str) -> io::Result<()> {
    // A pipe has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text.as_bytes())
}

fn unwritable(path: &Path, error: io::Error) -> Refused {
    Refused::Unwritable(path.to_owned(), error)
}
