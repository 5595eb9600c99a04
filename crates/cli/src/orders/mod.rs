//! The orders in which a program's threads take locks, from a file of `stanchion-order`.
//!
//! ```text
//! file ──read──▶ Orders ──▶ text, or Graph ──▶ a picture in report.html
//! ```
//!
//! The file has text for a person, and lines of JSON that are read here. A program's processes, and
//! several runs of it, append to one file. A finding of equal places is listed once.

mod draw;
mod graph;
mod hide;
mod page;
mod read;
mod text;

use std::collections::BTreeMap;

use serde::Deserialize;

pub(crate) use page::{warning, write};
pub(crate) use text::lines;

/// The orders of locks of a program.
#[derive(Debug, Default)]
pub(crate) struct Orders {
    /// The numbers of the processes.
    pub(crate) processes: Vec<u64>,
    /// The number of processes that have no end in the file.
    pub(crate) unended: u64,
    /// The number of locks that were recorded.
    pub(crate) locks: u64,
    /// Possible deadlocks of locks.
    pub(crate) cycles: Vec<Cycle>,
    /// The same by the places at which locks were made.
    pub(crate) hints: Vec<Cycle>,
    /// Locks that a thread took while it held them: held and taken lock are the same.
    pub(crate) recursions: Vec<Step>,
    /// The pairs of locks, the ones of cycles among them.
    pub(crate) pairs: Vec<Pair>,
    /// The counts of what was not recorded.
    pub(crate) losses: Losses,
}

/// A held and a taken lock.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The step, as it was seen first.
    pub(crate) step: Step,
    /// True if it is a part of a cycle.
    pub(crate) is_in_cycle: bool,
}

/// Acquisitions of different threads that can block each other.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Cycle {
    /// True if it needs a writer that waits.
    pub(crate) needs_writer: bool,
    /// The steps: each takes the lock that the next one holds.
    pub(crate) steps: Vec<Step>,
    /// The number of cycles with these places.
    #[serde(skip)]
    pub(crate) times: u64,
}

/// A thread that held a lock and took another one.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Step {
    /// The thread.
    pub(crate) thread: String,
    /// The lock that was held.
    pub(crate) held: Lock,
    /// The mode in which it was held.
    pub(crate) held_mode: String,
    /// The place at which it was taken.
    pub(crate) held_at: String,
    /// The lock that was taken.
    pub(crate) taken: Lock,
    /// The mode in which it was taken.
    pub(crate) taken_mode: String,
    /// The place at which it was taken.
    pub(crate) taken_at: String,
    /// The program's functions that took it, the outermost first.
    pub(crate) calls: Vec<String>,
}

/// A lock.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Lock {
    /// The process, as a place in [`Orders::processes`].
    #[serde(skip)]
    pub(crate) process: usize,
    /// The lock's number in its process.
    pub(crate) number: u64,
    /// The place at which it was created, or first used.
    pub(crate) place: String,
    /// True if the place is that of its creation.
    pub(crate) created: bool,
}

/// The counts of what was not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Losses {
    /// Locks that left the graph, because a release was not seen.
    pub(crate) unseen_releases: u64,
    /// Acquisitions by threads that held too many locks.
    pub(crate) too_deep: u64,
    /// Searches for cycles that ended early.
    pub(crate) cut_searches: u64,
    /// Pairs under more sets of held locks than are kept.
    pub(crate) cut_contexts: u64,
    /// Findings beyond those that are kept.
    pub(crate) cut_findings: u64,
    /// Pairs beyond those that are kept.
    pub(crate) cut_pairs: u64,
}

/// The reason why a file of orders cannot be reported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRead {
    #[error("line {line}: {reason}. The file was cut or edited: record again")]
    Damaged { line: usize, reason: serde_json::Error },

    #[error(
        "line {line} is of version {version}, where this stanchion reads 1: use a later stanchion"
    )]
    Version { line: usize, version: u64 },

    #[error("line {0} has {1}: it was edited")]
    Wrong(usize, &'static str),

    #[error("it has no line for tools: it is of an earlier stanchion-order. Record again")]
    TextOnly,
}

/// The places of a step, by which it is known again in another process.
type Places<'s> = [&'s str; 6];

impl Step {
    /// Returns what is equal in each run of the program.
    fn places(&self) -> Places<'_> {
        let Self { held, held_mode, held_at, taken, taken_mode, taken_at, .. } = self;
        [&held.place, held_mode, held_at, &taken.place, taken_mode, taken_at]
    }

    /// Returns the innermost function of the program.
    fn function(&self) -> &str {
        self.calls.last().map_or("an unknown function", String::as_str)
    }
}

impl Lock {
    /// Returns the lock's name, with its process if there are several.
    fn name(&self, orders: &Orders) -> String {
        match orders.processes.get(self.process) {
            Some(process) if orders.processes.len() > 1 => {
                format!("lock {} of process {process}", self.number)
            }
            _ => format!("lock {}", self.number),
        }
    }

    /// Returns the name and the place.
    fn words(&self, orders: &Orders) -> String {
        let verb = if self.created { "created" } else { "first used" };
        format!("{} ({verb} at {})", self.name(orders), self.place)
    }
}

impl Cycle {
    /// Returns the places of the steps, turned so that the least comes first.
    fn places(&self) -> Vec<Places<'_>> {
        let mut places: Vec<_> = self.steps.iter().map(Step::places).collect();
        let least = places.iter().enumerate().min_by_key(|(_, places)| **places);
        let least = least.map_or(0, |(index, _)| index);
        places.rotate_left(least);
        places
    }
}

/// Puts cycles of equal places together.
fn merge(cycles: Vec<Cycle>) -> Vec<Cycle> {
    let mut merged: Vec<Cycle> = Vec::new();
    let mut known = BTreeMap::<Vec<String>, usize>::new();
    for cycle in cycles {
        let places = cycle.places().concat().into_iter().map(str::to_owned).collect();
        match known.get(&places) {
            Some(&index) => {
                merged[index].times += 1;
                merged[index].needs_writer &= cycle.needs_writer;
            }
            None => {
                known.insert(places, merged.len());
                merged.push(Cycle { times: 1, ..cycle });
            }
        }
    }
    merged
}

impl Losses {
    /// Returns a sentence for each kind of loss.
    fn words(&self) -> Vec<String> {
        [
            (self.unseen_releases, "locks that left the graph, because a release was not seen"),
            (self.too_deep, "acquisitions by threads that held too many locks"),
            (self.cut_searches, "searches for cycles that ended early"),
            (self.cut_contexts, "pairs under more sets of held locks than are kept"),
            (self.cut_findings, "findings beyond those that are kept"),
            (self.cut_pairs, "pairs of locks beyond those that are kept"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, of)| format!("Not recorded: {of}: {count}."))
        .collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
