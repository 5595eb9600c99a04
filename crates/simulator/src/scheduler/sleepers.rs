//! The threads that sleep on words, and the marks of watches.
//!
//! A word is known by its identity. Its sleepers are woken in the order in which they came.

use super::thread::{Outcome, ThreadId};
use super::threads::Threads;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The queues of sleepers, by word.
#[derive(Default)]
pub(crate) struct Sleepers {
    /// By the identity of the word, in the order in which they came: each thread with the number
    /// of its sleep.
    parked: HashMap<u64, VecDeque<(ThreadId, u64)>>,
    /// The words of watches that have seen a switch and have not been taken yet; see `os::watch`.
    seen_switch: BTreeSet<u64>,
}

impl Sleepers {
    /// Adds a thread that is about to sleep on a word. The number of its sleep tells this one from
    /// the next on the same word.
    pub(super) fn add(&mut self, word: u64, id: ThreadId, sleep: u64) {
        self.parked.entry(word).or_default().push_back((id, sleep));
    }

    /// Takes a thread out of the queue of a word: later wake-ups pass it by.
    pub(super) fn remove(&mut self, word: u64, id: ThreadId) {
        if let Some(queue) = self.parked.get_mut(&word) {
            queue.retain(|(other, _)| *other != id);
            if queue.is_empty() {
                self.parked.remove(&word);
            }
        }
    }

    /// Takes the first sleeper of a word out of its queue.
    pub(super) fn next(&mut self, word: u64, threads: &Threads) -> Option<ThreadId> {
        loop {
            let queue = self.parked.get_mut(&word)?;
            let next = queue.pop_front();
            if queue.is_empty() {
                self.parked.remove(&word);
            }
            let (id, sleep) = next?;
            if threads[id].sleeps == sleep && threads[id].outcome == Outcome::Open {
                return Some(id);
            }
        }
    }

    /// Marks the watch of a word: the thread that it is armed for was switched.
    pub(super) fn mark(&mut self, word: u64) {
        self.seen_switch.insert(word);
    }

    /// Returns whether the watch of that word is marked.
    pub(crate) fn is_marked(&self, word: u64) -> bool {
        self.seen_switch.contains(&word)
    }

    /// Takes the mark of a word away. Returns whether it was there.
    pub(crate) fn take_mark(&mut self, word: u64) -> bool {
        self.seen_switch.remove(&word)
    }
}
