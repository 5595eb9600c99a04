//! Histories of threads that take and release locks, and the definition of a cycle by brute force.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::graph::{Graph, Hold, Pair};
use crate::mode::{Blocks, Mode};

/// The cycles, by their locks from the smallest on, and true if firm.
pub(super) type Found = BTreeMap<Vec<u64>, bool>;

/// One act of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Take { thread: u64, lock: u64, mode: Mode, blocks: bool },
    ReleaseAll { thread: u64 },
    Release { thread: u64, index: usize },
    Remove { lock: u64 },
}

/// A blocking acquisition, whole.
#[derive(Clone, Debug)]
struct Acquisition {
    /// The thread that acquires.
    thread: u64,
    /// The locks that it holds.
    held: Vec<Hold>,
    /// The lock that it blocks for.
    taken: Hold,
}

/// A history that is played into a graph.
#[derive(Default)]
pub(super) struct History {
    /// The locks that each thread holds.
    held: BTreeMap<u64, Vec<Hold>>,
    /// All blocking acquisitions.
    acquisitions: Vec<Acquisition>,
    /// The graph, once something was added.
    graph: Option<Graph<()>>,
    /// The cycles that the graph has returned.
    pub(super) found: Found,
}

impl History {
    /// Plays an act, and returns false if it was impossible and nothing was done.
    pub(super) fn play(&mut self, act: Act) -> bool {
        match act {
            Act::Take { thread, lock, mode, blocks } => self.take(thread, lock, mode, blocks),
            Act::ReleaseAll { thread } => {
                self.held.remove(&thread);
                true
            }
            Act::Release { thread, index } => {
                let Some(held) = self.held.get_mut(&thread).filter(|held| !held.is_empty()) else {
                    return false;
                };
                held.remove(index % held.len());
                true
            }
            Act::Remove { lock } => {
                if self.held.values().flatten().any(|hold| hold.0 == lock) {
                    return false;
                }
                self.graph.get_or_insert_with(Graph::new).remove(lock);
                true
            }
        }
    }

    fn take(&mut self, thread: u64, lock: u64, mode: Mode, blocks: bool) -> bool {
        let conflicts = |hold: &Hold| hold.0 == lock && hold.1.conflicts(mode);
        let of_own = self.held.get(&thread).is_some_and(|of| of.iter().any(|hold| hold.0 == lock));
        if of_own || self.held.values().flatten().any(conflicts) {
            return false;
        }
        let mut set = self.held.get(&thread).cloned().unwrap_or_default();
        set.sort_unstable();
        if blocks {
            for &held in &set {
                let pair = Pair { thread, held, taken: (lock, mode), set: &set };
                let graph = self.graph.get_or_insert_with(Graph::new);
                for cycle in graph.add(pair, &Arc::new(())) {
                    let locks = turned(cycle.links.iter().map(|link| link.held.0).collect());
                    self.found.insert(locks, cycle.firm);
                }
                assert!(graph.knows(&pair), "a pair that was added is known");
            }
            self.acquisitions.push(Acquisition { thread, held: set, taken: (lock, mode) });
        }
        self.held.entry(thread).or_default().push((lock, mode));
        true
    }

    /// Returns the cycles of all acquisitions so far, by the definition.
    pub(super) fn defined(&self) -> Found {
        let mut found = Found::new();
        let mut chosen = Vec::new();
        self.choose(&mut chosen, &mut found);
        found
    }

    /// Returns what the graph has cut off.
    pub(super) fn cuts(&self) -> crate::graph::Cuts {
        self.graph.as_ref().map(Graph::cuts).unwrap_or_default()
    }

    /// Tries each sequence of acquisitions of different threads.
    fn choose(&self, chosen: &mut Vec<usize>, found: &mut Found) {
        if chosen.len() >= 2 {
            self.hold_all(chosen, &mut Vec::new(), found);
        }
        for index in 0..self.acquisitions.len() {
            let thread = self.acquisitions[index].thread;
            if chosen.iter().all(|&before| self.acquisitions[before].thread != thread) {
                chosen.push(index);
                self.choose(chosen, found);
                chosen.pop();
            }
        }
    }

    /// Tries each choice of a held lock for each acquisition of a sequence.
    fn hold_all(&self, chosen: &[usize], holds: &mut Vec<Hold>, found: &mut Found) {
        if holds.len() == chosen.len() {
            if let Some(firm) = self.blocks(chosen, holds) {
                let locks = turned(holds.iter().map(|hold| hold.0).collect());
                *found.entry(locks).or_default() |= firm;
            }
            return;
        }
        for &hold in &self.acquisitions[chosen[holds.len()]].held {
            holds.push(hold);
            self.hold_all(chosen, holds, found);
            holds.pop();
        }
    }

    /// Returns `Some` if the sequence is a cycle, with true if it is firm.
    fn blocks(&self, chosen: &[usize], holds: &[Hold]) -> Option<bool> {
        let mut firm = true;
        for (at, &index) in chosen.iter().enumerate() {
            let next = holds[(at + 1) % holds.len()];
            let taken = self.acquisitions[index].taken;
            let passed = holds.iter().filter(|hold| hold.0 == taken.0).count();
            if taken.0 != next.0 || passed != 1 {
                return None;
            }
            match next.1.blocks(taken.1) {
                Blocks::Always => {}
                Blocks::BehindWriter => firm = false,
                Blocks::Never => return None,
            }
            for &other in &chosen[at + 1..] {
                for one in &self.acquisitions[index].held {
                    for with in &self.acquisitions[other].held {
                        if one.0 == with.0 && one.1.conflicts(with.1) {
                            return None;
                        }
                    }
                }
            }
        }
        Some(firm)
    }
}

/// Turns a cycle so that its smallest lock is the first.
fn turned(mut locks: Vec<u64>) -> Vec<u64> {
    let least = locks.iter().enumerate().min_by_key(|(_, lock)| **lock).map_or(0, |(at, _)| at);
    locks.rotate_left(least);
    locks
}
