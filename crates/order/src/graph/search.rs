//! The search for the cycles that a new pair closes.
//!
//! It walks from the taken lock along the pairs, in depth, and keeps a walk only as long as it can
//! be a part of a cycle: a chain of pairs leads on to the held lock, its sets can be held together,
//! and each of its pairs can be of another thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Context, Cycle, Graph, Hold, LONGEST, Link, Pair, STEPS};
use crate::mode::{Blocks, Mode};

/// One pair of a walk.
struct Step<'a, P> {
    /// The held lock.
    held: Hold,
    /// The taken lock.
    taken: Hold,
    /// The held locks.
    set: &'a [Hold],
    /// The threads that may have taken the step.
    threads: &'a [u64],
    /// The note of the step.
    note: &'a Arc<P>,
}

/// A search from one pair.
struct Search<'a, P> {
    /// The graph that is searched.
    pairs: &'a BTreeMap<u64, BTreeMap<u64, Vec<Context<P>>>>,
    /// The locks from which pairs lead to the held lock of the new pair, and that lock.
    reaching: BTreeSet<u64>,
    /// The walk, which begins with the new pair.
    walk: Vec<Step<'a, P>>,
    /// The steps that are left.
    left: usize,
    /// The cycles, by their locks.
    closed: BTreeMap<Vec<u64>, Cycle<P>>,
}

impl<P> Graph<P> {
    /// Returns the new cycles through a pair that is in the graph.
    pub(super) fn close(&mut self, pair: Pair<'_>, note: &Arc<P>) -> Vec<Cycle<P>> {
        // Most new pairs end here: their lock was never held while another one was taken.
        if !self.pairs.contains_key(&pair.taken.0) {
            return Vec::new();
        }
        let reaching = self.reaching(pair.held.0);
        if !reaching.contains(&pair.taken.0) {
            return Vec::new();
        }
        let mut search = Search {
            pairs: &self.pairs,
            reaching,
            walk: vec![Step {
                held: pair.held,
                taken: pair.taken,
                set: pair.set,
                threads: std::slice::from_ref(&pair.thread),
                note,
            }],
            left: STEPS,
            closed: BTreeMap::new(),
        };
        search.extend(true);
        if search.left == 0 {
            self.cuts.searches += 1;
        }
        let closed = search.closed;
        closed
            .into_iter()
            .filter(|(locks, cycle)| match self.found.get(locks) {
                Some(firm) => cycle.firm && !firm,
                None => true,
            })
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(locks, cycle)| {
                self.found.insert(locks, cycle.firm);
                cycle
            })
            .collect()
    }
}

impl<P> Graph<P> {
    /// Returns the locks from which pairs lead to `lock`, and `lock` itself.
    fn reaching(&self, lock: u64) -> BTreeSet<u64> {
        let mut reaching = BTreeSet::from([lock]);
        let mut left = vec![lock];
        while let Some(lock) = left.pop() {
            let before = self.before.get(&lock).into_iter().flatten();
            left.extend(before.copied().filter(|&held| reaching.insert(held)));
        }
        reaching
    }
}

impl<'a, P> Search<'a, P> {
    /// Extends the walk by each pair of the lock that its last step takes. `firm` is true if no
    /// step so far needs a waiting writer.
    fn extend(&mut self, firm: bool) {
        let (Some(first), Some(last)) = (self.walk.first(), self.walk.last()) else { return };
        let (start, at) = (first.held, last.taken);
        let Some(next) = self.pairs.get(&at.0) else { return };
        // The smaller one of two sets is gone through, and looked up in the other one.
        let candidates: Vec<u64> = if next.len() < self.reaching.len() {
            next.keys().copied().filter(|to| self.reaching.contains(to)).collect()
        } else {
            self.reaching.iter().copied().filter(|to| next.contains_key(to)).collect()
        };
        for to in candidates {
            // No lock is passed twice. Two locks of one class are the pair of a class with itself.
            let ends = to == start.0;
            let passed = self.walk.iter().any(|step| step.held.0 == to);
            let of_itself = to == at.0 && !(ends && self.walk.len() == 1);
            let from_itself = start.0 == at.0;
            if of_itself || !ends && (from_itself || passed || self.walk.len() + 1 >= LONGEST) {
                continue;
            }
            for context in next.get(&to).into_iter().flatten() {
                if self.left == 0 {
                    return;
                }
                self.left -= 1;
                self.try_step(context, to, firm);
            }
        }
    }

    /// Adds a step if it can be taken, closes the walk or extends it, and takes the step back.
    fn try_step(&mut self, context: &'a Context<P>, to: u64, firm: bool) {
        let (Some(first), Some(last)) = (self.walk.first(), self.walk.last()) else { return };
        let (start, at) = (first.held, last.taken);
        let ends = to == start.0;
        let blocked = context.held.blocks(at.1);
        let closing = if ends { start.1.blocks(context.taken) } else { Blocks::Always };
        if blocked == Blocks::Never
            || closing == Blocks::Never
            || self.walk.iter().any(|step| !can_be_held(step.set, &context.set))
        {
            return;
        }
        let step = Step {
            held: (at.0, context.held),
            taken: (to, context.taken),
            set: &context.set,
            threads: &context.threads,
            note: &context.note,
        };
        self.walk.push(step);
        let mut threads = Vec::with_capacity(LONGEST);
        if choose(&self.walk, &mut threads) {
            let firm = firm && blocked == Blocks::Always && closing == Blocks::Always;
            if ends {
                self.keep(&threads, firm);
            } else {
                self.extend(firm);
            }
        }
        self.walk.pop();
    }

    /// Keeps the walk as a cycle, unless a cycle of the same locks is at least as firm.
    fn keep(&mut self, threads: &[u64], firm: bool) {
        let locks = turned(self.walk.iter().map(|step| step.held.0).collect());
        if self.closed.get(&locks).is_some_and(|cycle| cycle.firm || !firm) {
            return;
        }
        let links = self
            .walk
            .iter()
            .zip(threads)
            .map(|(step, &thread)| Link {
                thread,
                held: step.held,
                taken: step.taken,
                note: Arc::clone(step.note),
            })
            .collect();
        self.closed.insert(locks, Cycle { links, firm });
    }
}

/// Returns true if the two sets can be held at the same time by different threads.
pub(super) fn can_be_held(one: &[Hold], other: &[Hold]) -> bool {
    let conflicts = |&(lock, mode): &(u64, Mode)| {
        other.iter().any(|&(of, with)| of == lock && mode.conflicts(with))
    };
    !one.iter().any(conflicts)
}

/// Chooses a thread for each step, no thread twice. Returns false if there is no choice.
fn choose<P>(walk: &[Step<'_, P>], chosen: &mut Vec<u64>) -> bool {
    let Some(step) = walk.get(chosen.len()) else { return true };
    for &thread in step.threads {
        if !chosen.contains(&thread) {
            chosen.push(thread);
            if choose(walk, chosen) {
                return true;
            }
            chosen.pop();
        }
    }
    false
}

/// Turns a cycle so that its smallest lock is the first.
pub(super) fn turned(mut locks: Vec<u64>) -> Vec<u64> {
    let least = locks.iter().enumerate().min_by_key(|(_, lock)| **lock);
    if let Some((at, _)) = least {
        locks.rotate_left(at);
    }
    locks
}
