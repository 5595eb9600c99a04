//! The graph of lock orders, and its cycles. It is pure: it knows no thread, clock or memory of
//! the process.
//!
//! # Definition
//!
//! An *acquisition* is a thread that holds a set of locks and blocks for another one. A *cycle*
//! is a sequence of at least two acquisitions for which all of these hold:
//!
//! 1. No two of them are of the same thread.
//! 2. Each blocks for a lock that the next one holds, in a mode that blocks. The last one blocks
//!    for a lock of the first. No lock is passed twice.
//! 3. Any two of the sets can be held at the same time. A lock that is in both, and exclusive in
//!    one, is a *gate*: it keeps the two acquisitions apart.
//!
//! A cycle is *firm* if each mode conflicts with the one that is held. Otherwise a reader in it
//! blocks a reader only while a writer waits for the same lock.
//!
//! # Bounds
//!
//! Cycles of more than [`LONGEST`] locks are not found. A pair keeps at most [`CONTEXTS`] sets, and
//! a search takes at most [`STEPS`] steps. What is cut off is counted in [`Cuts`].

mod search;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::mode::Mode;

/// The most locks of a cycle that is found.
pub(crate) const LONGEST: usize = 8;

/// The most sets of held locks that are kept for a pair.
pub(crate) const CONTEXTS: usize = 16;

/// The most steps of one search.
pub(crate) const STEPS: usize = 20_000;

/// A lock and the mode in which it is held or taken.
pub(crate) type Hold = (u64, Mode);

/// One pair of an acquisition: a held lock, and the lock that the thread blocks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'a> {
    /// The thread that acquires.
    pub(crate) thread: u64,
    /// The held lock.
    pub(crate) held: Hold,
    /// The lock that the thread blocks for.
    pub(crate) taken: Hold,
    /// All locks that keep the acquisition apart from others, sorted.
    pub(crate) set: &'a [Hold],
}

/// A pair under one set of held locks.
struct Context<P> {
    /// The mode in which the first lock is held.
    held: Mode,
    /// The mode in which the second lock is taken.
    taken: Mode,
    /// The held locks, sorted.
    set: Vec<Hold>,
    /// The first [`LONGEST`] threads that were seen: a cycle needs no more to choose from.
    threads: Vec<u64>,
    /// The caller's note from when the context was new.
    note: Arc<P>,
}

impl<P> Context<P> {
    /// Returns true if each cycle through `pair` has a cycle through this context.
    fn covers(&self, pair: &Pair<'_>) -> bool {
        self.is_weaker(pair) && (self.is_full() || self.threads.contains(&pair.thread))
    }

    /// Returns true if the context blocks as `pair` does, under no other locks.
    fn is_weaker(&self, pair: &Pair<'_>) -> bool {
        self.held == pair.held.1
            && self.taken == pair.taken.1
            && self.set.iter().all(|hold| pair.set.contains(hold))
    }

    /// Returns true if no thread is added any more.
    fn is_full(&self) -> bool {
        self.threads.len() >= LONGEST
    }
}

/// One step of a cycle.
pub(crate) struct Link<P> {
    /// The thread that takes the step.
    pub(crate) thread: u64,
    /// The lock that it holds.
    pub(crate) held: Hold,
    /// The lock that it blocks for, which the next link holds.
    pub(crate) taken: Hold,
    /// The caller's note from when this was seen for the first time.
    pub(crate) note: Arc<P>,
}

/// Acquisitions that can block each other forever.
pub(crate) struct Cycle<P> {
    /// The acquisitions, each blocked by the next one and the last by the first.
    pub(crate) links: Vec<Link<P>>,
    /// False if a writer has to wait for one of the locks as well.
    pub(crate) firm: bool,
}

/// The counts of what the bounds cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Searches that ended after [`STEPS`] steps.
    pub(crate) searches: u64,
    /// Sets of held locks beyond [`CONTEXTS`].
    pub(crate) contexts: u64,
}

/// The orders of all threads.
pub(crate) struct Graph<P> {
    /// The contexts of each pair, by the held lock and then by the taken one.
    pairs: BTreeMap<u64, BTreeMap<u64, Vec<Context<P>>>>,
    /// For each taken lock the locks that were held.
    before: BTreeMap<u64, BTreeSet<u64>>,
    /// The locks of each cycle that was returned, and true if it was firm. No lock has ended.
    found: BTreeMap<Vec<u64>, bool>,
    /// The counts of what the bounds have cut off.
    cuts: Cuts,
}

impl<P> Graph<P> {
    /// Returns a graph without pairs.
    pub(crate) const fn new() -> Self {
        Self {
            pairs: BTreeMap::new(),
            before: BTreeMap::new(),
            found: BTreeMap::new(),
            cuts: Cuts { searches: 0, contexts: 0 },
        }
    }

    /// Returns true if [`add`](Self::add) would change nothing.
    pub(crate) fn knows(&self, pair: &Pair<'_>) -> bool {
        let contexts = self.pairs.get(&pair.held.0).and_then(|of| of.get(&pair.taken.0));
        contexts.is_some_and(|contexts| contexts.iter().any(|context| context.covers(pair)))
    }

    /// Returns true if a thread has taken the two locks in this order, under whichever locks.
    #[cfg(test)]
    pub(crate) fn has(&self, held: u64, taken: u64) -> bool {
        self.pairs.get(&held).is_some_and(|of| of.contains_key(&taken))
    }

    /// Adds a pair, and returns the cycles that it closes and that were not returned before. A
    /// cycle is returned a second time if it has become firm.
    pub(crate) fn add(&mut self, pair: Pair<'_>, note: &Arc<P>) -> Vec<Cycle<P>> {
        let contexts = self.pairs.entry(pair.held.0).or_default().entry(pair.taken.0).or_default();
        if contexts.iter().any(|context| context.covers(&pair)) {
            return Vec::new();
        }
        let same = |context: &&mut Context<P>| {
            context.held == pair.held.1 && context.taken == pair.taken.1 && context.set == pair.set
        };
        if let Some(context) = contexts.iter_mut().find(same) {
            context.threads.push(pair.thread);
        } else if contexts.len() < CONTEXTS {
            contexts.push(Context {
                held: pair.held.1,
                taken: pair.taken.1,
                set: pair.set.to_vec(),
                threads: vec![pair.thread],
                note: Arc::clone(note),
            });
        } else {
            // The pair is searched from all the same, but no later search finds it.
            self.cuts.contexts += 1;
        }
        self.before.entry(pair.taken.0).or_default().insert(pair.held.0);
        self.close(pair, note)
    }

    /// Forgets a lock, all its pairs and its cycles. Returns the pairs, each as it was seen first.
    /// A number is never given to another lock.
    pub(crate) fn remove(&mut self, lock: u64) -> Vec<Link<P>> {
        let mut removed = Vec::new();
        self.found.retain(|locks, _| !locks.contains(&lock));
        for (taken, contexts) in self.pairs.remove(&lock).into_iter().flatten() {
            removed.extend(first_of(lock, taken, &contexts));
            if let Some(before) = self.before.get_mut(&taken) {
                before.remove(&lock);
                if before.is_empty() {
                    self.before.remove(&taken);
                }
            }
        }
        for held in self.before.remove(&lock).into_iter().flatten() {
            if let Some(of) = self.pairs.get_mut(&held) {
                let contexts = of.remove(&lock);
                removed.extend(contexts.and_then(|contexts| first_of(held, lock, &contexts)));
                if of.is_empty() {
                    self.pairs.remove(&held);
                }
            }
        }
        removed
    }

    /// Returns each pair as it was seen first.
    pub(crate) fn first_seen(&self) -> impl Iterator<Item = Link<P>> {
        let of = |(&held, taken): (&u64, &'_ BTreeMap<u64, Vec<Context<P>>>)| {
            taken
                .iter()
                .filter_map(move |(&taken, contexts)| first_of(held, taken, contexts))
                .collect::<Vec<_>>()
        };
        self.pairs.iter().flat_map(of)
    }

    /// Returns the number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.pairs.values().map(BTreeMap::len).sum()
    }

    /// Returns what the bounds have cut off.
    pub(crate) fn cuts(&self) -> Cuts {
        self.cuts
    }
}

/// Returns a pair as it was seen first.
fn first_of<P>(held: u64, taken: u64, contexts: &[Context<P>]) -> Option<Link<P>> {
    let context = contexts.first()?;
    Some(Link {
        thread: *context.threads.first()?,
        held: (held, context.held),
        taken: (taken, context.taken),
        note: Arc::clone(&context.note),
    })
}
