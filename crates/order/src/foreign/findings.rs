//! The findings in a table: possible deadlocks, and threads that take a lock which they hold.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Hold;
use super::table::{Loss, Seen, Table};
use crate::graph::{self, Graph, Pair};
use crate::mode::{Mode, Wanted};

/// The most findings of each kind that are kept.
const FINDINGS: usize = 256;

/// A lock as a finding has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Use {
    /// The number of the lock.
    pub lock: u64,
    /// The mode in which it was held or taken.
    pub mode: Mode,
    /// The name of the lock, if it has one.
    pub name: Option<String>,
    /// The name of the place at which it was taken, if that is known.
    pub place: Option<String>,
}

/// A thread that held a lock and blocked, or could block, for another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Step {
    /// The number of the thread.
    pub thread: u64,
    /// The lock that was held.
    pub held: Use,
    /// The lock that was taken.
    pub taken: Use,
    /// The path of calls to the acquisition, from the first time that it was seen.
    pub path: Option<String>,
}

/// Acquisitions of different threads that block each other if they come at the same time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Cycle {
    /// The number of the process.
    pub process: u64,
    /// The steps: each takes the lock that the next one holds, and the last that of the first.
    pub steps: Vec<Step>,
    /// True if there is a lock that two steps read: it blocks only while a writer waits for it.
    pub needs_writer: bool,
}

/// A thread that took a lock which it held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Recursion {
    /// The number of the process.
    pub process: u64,
    /// The thread, and its two acquisitions of the lock.
    pub step: Step,
    /// True if the second acquisition blocks forever. Otherwise a reader reads again, which blocks
    /// forever only if a writer waits in between.
    pub is_fatal: bool,
}

/// The counts of what was not recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Losses {
    /// Locks that left the graph because a release was not seen.
    pub unseen_releases: u64,
    /// Acquisitions by threads that held too many locks.
    pub too_deep: u64,
    /// Acquisitions of locks that could not be told from others.
    pub unidentified: u64,
    /// Acquisitions for which the table had no room.
    pub cut_acquisitions: u64,
    /// Searches for cycles that ended early, because the graph is too dense.
    pub cut_searches: u64,
    /// Pairs that were seen under more sets of held locks than are kept.
    pub cut_contexts: u64,
    /// Findings that are in no list, because the lists are full.
    pub cut_findings: u64,
}

/// The findings in a table.
///
/// ```
/// # use stanchion_order::foreign::{SIZE, Table, header};
/// # let mut memory = vec![0_u64; SIZE / 8];
/// # memory[0] = u64::from_ne_bytes(header());
/// # // SAFETY: only this table uses the memory.
/// # let table = unsafe { Table::at(memory.as_mut_ptr().cast(), SIZE) }.unwrap();
/// let findings = table.findings();
/// assert!(findings.cycles.is_empty() && findings.pairs == 0);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The possible deadlocks.
    pub cycles: Vec<Cycle>,
    /// Threads that took a lock which they held.
    pub recursions: Vec<Recursion>,
    /// The number of pairs of a held and a taken lock.
    pub pairs: usize,
    /// The counts of what was not recorded.
    pub losses: Losses,
}

impl Table {
    /// Returns the possible deadlocks among the acquisitions in the table. Allocates, takes time in
    /// proportion to the acquisitions and to a bounded search from each, and never panics.
    ///
    /// See [`Table`] for an example.
    #[must_use]
    pub fn findings(&self) -> Findings {
        let (lost, unseen_releases) = self.lost_locks();
        let lost: BTreeSet<(u64, u64)> = lost.into_iter().collect();
        let mut findings = Findings::default();
        let mut of_process = BTreeMap::<u64, Vec<Arc<Seen>>>::new();
        for seen in self.acquisitions() {
            of_process.entry(seen.process).or_default().push(Arc::new(seen));
        }
        for (process, all) in of_process {
            let is_lost = |hold: &Hold| lost.contains(&(process, hold.lock));
            self.search(process, &all, is_lost, &mut findings);
        }
        let losses = &mut findings.losses;
        losses.unseen_releases = unseen_releases;
        losses.too_deep = self.lost(Loss::Deep);
        losses.unidentified = self.lost(Loss::Identity);
        losses.cut_acquisitions = self.lost(Loss::Entry);
        findings
    }

    /// Adds what is found among the acquisitions of one process.
    fn search(
        &self,
        process: u64,
        all: &[Arc<Seen>],
        is_lost: impl Fn(&Hold) -> bool,
        findings: &mut Findings,
    ) {
        let mut graph = Graph::new();
        // By their locks: a cycle that becomes firm is returned a second time.
        let mut cycles = BTreeMap::<Vec<u64>, Cycle>::new();
        for seen in all.iter().filter(|seen| !is_lost(&seen.taken)) {
            let mut set: Vec<_> = seen.held.iter().map(|hold| (hold.lock, hold.mode)).collect();
            set.sort_unstable();
            for held in seen.held.iter().filter(|held| !is_lost(held)) {
                if held.lock == seen.taken.lock {
                    self.recursion(process, seen, held, findings);
                    continue;
                }
                for &thread in &seen.threads {
                    let pair = Pair {
                        thread,
                        held: (held.lock, held.mode),
                        taken: (seen.taken.lock, seen.taken.mode),
                        set: &set,
                    };
                    for cycle in graph.add(pair, seen) {
                        let mut locks: Vec<u64> =
                            cycle.links.iter().map(|link| link.held.0).collect();
                        locks.sort_unstable();
                        cycles.insert(locks, self.told(process, &cycle));
                    }
                }
            }
        }
        findings.pairs += graph.len();
        findings.losses.cut_searches += graph.cuts().searches;
        findings.losses.cut_contexts += graph.cuts().contexts;
        for cycle in cycles.into_values() {
            keep(&mut findings.cycles, cycle, &mut findings.losses.cut_findings);
        }
    }

    /// Adds a second acquisition of a held lock, if it may block.
    fn recursion(&self, process: u64, seen: &Seen, held: &Hold, findings: &mut Findings) {
        if Wanted::New(seen.taken.mode).is_blocked_by_own(held.mode) {
            let thread = seen.threads.first().copied().unwrap_or(0);
            let step = self.step(thread, held, seen);
            let is_fatal = held.mode.conflicts(seen.taken.mode);
            let found = Recursion { process, step, is_fatal };
            keep(&mut findings.recursions, found, &mut findings.losses.cut_findings);
        }
    }

    /// Returns a cycle with its names.
    fn told(&self, process: u64, cycle: &graph::Cycle<Seen>) -> Cycle {
        let step = |link: &graph::Link<Seen>| {
            let held = link.note.held.iter().find(|hold| hold.lock == link.held.0);
            self.step(link.thread, held.unwrap_or(&link.note.taken), &link.note)
        };
        Cycle { process, steps: cycle.links.iter().map(step).collect(), needs_writer: !cycle.firm }
    }

    /// Returns a step with its names.
    fn step(&self, thread: u64, held: &Hold, seen: &Seen) -> Step {
        let text = |index: Option<u32>| self.text(index?);
        let named = |hold: &Hold| Use {
            lock: hold.lock,
            mode: hold.mode,
            name: text(hold.name),
            place: text(hold.place),
        };
        Step { thread, held: named(held), taken: named(&seen.taken), path: text(seen.path) }
    }
}

/// Keeps a finding, or counts it if there is no room.
fn keep<T>(all: &mut Vec<T>, found: T, cut: &mut u64) {
    if all.len() < FINDINGS {
        all.push(found);
    } else {
        *cut += 1;
    }
}
