//! Threads that are to be called when a time has come.
//!
//! Nobody watches the clock while there is work: a worker looks at its scheduling points whether the first time has come. Of those that sleep one, the
//! watch, sleeps no longer than until then; when it goes to work, or an earlier time is added, another one is told to be the watch. So a thread that computes
//! for long does not keep idle workers from what is due, and a time wakes one of them, not all.
//!
//! If nobody sleeps, everybody has work, and looks at the next scheduling point. But who is blocked in the kernel comes to none: so a time that has come is
//! work like any other, for which the slot of one that is blocked is taken. While one is, and nobody sleeps, the monitor sleeps no longer than until the first
//! time; an earlier one that is added wakes it. What remains late: a time that comes while every worker computes.
//!
//! Why a tree and not a heap: a thread that is woken before its time takes its entry out, in O(log n). So there are never more entries than threads that
//! wait, and a thread that has gone on is not called.
//!
//! # Invariants
//!
//! 1. `first` is the first time in the tree whenever the lock is free, and `watch` the time until which the watch sleeps.
//! 2. `monitor` is until when the monitor sleeps, if it does so on behalf of a time.
//! 3. A thread is called under the lock: when it has found its entry gone, that has happened.
//!
//! # Orderings
//!
//! `first` is Relaxed: who looks at it looks again soon, or has the lock before it sleeps.

use std::collections::BTreeMap;

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::Deadline;
use stanchion_competitive::Mutex;

use crate::thread::header::Thread;

/// When, and a number that makes it the only one.
pub(crate) type TimerKey = (Deadline, u64);

#[derive(Default)]
struct Tree {
    entries: BTreeMap<TimerKey, Thread>,
    next: u64,
    /// The slot that watches the clock, and until when it sleeps.
    watch: Option<(usize, Deadline)>,
    monitor: Option<Deadline>,
}

/// Who sleeps for longer than until a time that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Late {
    /// The watch, or there is none.
    pub(crate) watch: bool,
    pub(crate) monitor: bool,
}

/// The times of a runtime.
pub(crate) struct Timers {
    first: AtomicU64,
    tree: Mutex<Tree>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { first: AtomicU64::fresh(Deadline::NEVER.to_bits()), tree: Mutex::default() }
    }

    /// Under the lock: the tree has changed.
    fn note(&self, tree: &Tree) -> Deadline {
        let first = tree.entries.first_key_value().map_or(Deadline::NEVER, |(&(due, _), _)| due);
        // Relaxed: see the header.
        self.first.store(first.to_bits(), Ordering::Relaxed);
        first
    }

    /// Calls `thread` when `due` has come, unless that is [removed](Self::remove) before. And who should be told of it.
    pub(crate) fn add(&self, due: Deadline, thread: Thread) -> (TimerKey, Late) {
        let mut tree = self.tree.lock();
        let key = (due, tree.next);
        tree.next += 1;
        tree.entries.insert(key, thread);
        let is_first = self.note(&tree) == due;
        let late = Late {
            watch: is_first && tree.watch.is_none_or(|(_, until)| due < until),
            monitor: tree.monitor.is_some_and(|until| due < until),
        };
        (key, late)
    }

    /// The monitor is about to sleep: until when at most, if it is to wake up for a time.
    pub(crate) fn watch_workers(&self, for_times: bool) -> Deadline {
        let mut tree = self.tree.lock();
        let first = self.note(&tree);
        tree.monitor = for_times.then_some(first);
        if for_times { first } else { Deadline::NEVER }
    }

    /// The thread does not wait any more.
    pub(crate) fn remove(&self, key: TimerKey) {
        let mut tree = self.tree.lock();
        let entry = tree.entries.remove(&key);
        self.note(&tree);
        drop(tree);
        drop(entry);
    }

    /// Calls whose time has come. One load if there are no entries, and a reading of the clock if none is due.
    pub(crate) fn run(&self) {
        loop {
            if !self.is_due() {
                return;
            }
            let mut tree = self.tree.lock();
            if !tree.entries.first_key_value().is_some_and(|(&(due, _), _)| due.passed()) {
                continue;
            }
            let entry = tree.entries.pop_first();
            self.note(&tree);
            if let Some((_, thread)) = &entry {
                thread.notify();
            }
            drop(tree);
            drop(entry);
        }
    }

    /// Whether there is any, as far as is known.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: see the header.
        self.first.load(Ordering::Relaxed) != Deadline::NEVER.to_bits()
    }

    /// Whether a time has come.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        // Relaxed: see the header.
        let first = Deadline::from_bits(self.first.load(Ordering::Relaxed));
        first != Deadline::NEVER && first.passed()
    }

    /// Who has that slot will sleep: until when, being the watch if there is no other that sleeps as short.
    pub(crate) fn watch(&self, slot: usize) -> Deadline {
        let mut tree = self.tree.lock();
        let first = self.note(&tree);
        if tree.watch.is_some_and(|(watch, until)| watch != slot && until <= first) {
            return Deadline::NEVER;
        }
        tree.watch = (first != Deadline::NEVER).then_some((slot, first));
        first
    }

    /// Who has that slot, and was the watch, has other things to do. Whether another should be told, to be the watch.
    pub(crate) fn unwatch(&self, slot: usize) -> bool {
        let mut tree = self.tree.lock();
        if tree.watch.is_none_or(|(watch, _)| watch != slot) {
            return false;
        }
        tree.watch = None;
        !tree.entries.is_empty()
    }
}
