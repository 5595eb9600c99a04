//! Threads that are to be notified when a time has come.
//!
//! No thread watches the clock while there is work: a worker looks at its scheduling points whether
//! the first time has come. Of the workers that sleep, one is the *timekeeper*. It sleeps no longer
//! than until the first time. When it goes to work, or an earlier time is added, another sleeper is
//! woken, to be the timekeeper. So a thread that computes for long does not delay timers while a
//! worker is idle, and a time wakes one of the idle workers, not all.
//!
//! If no worker sleeps, all have work, and look at the next scheduling point. But a worker that is
//! blocked in the kernel comes to none. So a time that has come is work like any other, for which
//! the slot of a blocked worker is taken. While a worker is blocked and no other sleeps, the
//! monitor sleeps no longer than until the first time, and an earlier one that is added wakes it.
//! One case remains late: a time that comes while every worker computes.
//!
//! Why a tree and not a heap: a thread that is woken before its time takes its entry out, in O(log
//! n). So there are never more entries than threads that wait, and a thread that has gone on is
//! not notified.
//!
//! # Invariants
//!
//! 1. `first` is the first time in the tree whenever the lock is free. `timekeeper` has the time
//!    until which the timekeeper sleeps.
//! 2. `monitor_deadline` is the time until which the monitor sleeps, if it sleeps for a time.
//! 3. A thread is notified under the lock. So when it finds its entry gone, that has happened.
//!
//! # Orderings
//!
//! `first` is Relaxed: a thread that looks at it looks again soon, or has the lock before it
//! sleeps.

use std::collections::BTreeMap;

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Deadline;

use crate::thread::handle::Thread;

/// The key of an entry: its time, and a number that makes the key unique.
pub(crate) type TimerKey = (Deadline, u64);

#[derive(Default)]
struct Tree {
    /// Added and removed by the threads that wait.
    entries: BTreeMap<TimerKey, Thread>,
    /// The number of the next key.
    next: u64,
    /// The slot of the timekeeper, and the time until which it sleeps. Written by its worker.
    timekeeper: Option<(usize, Deadline)>,
    /// See Invariant 2. Written by the monitor.
    monitor_deadline: Option<Deadline>,
}

/// The threads to wake because they sleep for longer than until a time that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateSleepers {
    /// The timekeeper, or another sleeper if there is no timekeeper.
    pub timekeeper: bool,
    /// The monitor.
    pub monitor: bool,
}

/// The times of a runtime.
pub struct Timers {
    /// The first time (Invariant 1). Written under the lock.
    first: AtomicU64,
    /// The timers in order. Changed by threads that begin or end a wait for a time.
    tree: Mutex<Tree>,
}

impl Timers {
    /// Returns an empty tree.
    pub fn new() -> Self {
        Self { first: AtomicU64::fresh(Deadline::NEVER.to_bits()), tree: Mutex::default() }
    }

    /// Stores the first time of the tree, which has changed. Called under the lock.
    fn update_first(&self, tree: &Tree) -> Deadline {
        let first = tree.entries.first_key_value().map_or(Deadline::NEVER, |(&(due, _), _)| due);
        // Relaxed: see the header.
        self.first.store(first.to_bits(), Ordering::Relaxed);
        first
    }

    /// Adds an entry: `thread` is notified at `due`, unless the entry is [removed](Self::remove)
    /// before. Returns its key, and the threads to wake.
    pub fn add(&self, due: Deadline, thread: Thread) -> (TimerKey, LateSleepers) {
        let mut tree = self.tree.lock();
        let key = (due, tree.next);
        tree.next += 1;
        tree.entries.insert(key, thread);
        let is_first = self.update_first(&tree) == due;
        let late = LateSleepers {
            timekeeper: is_first && tree.timekeeper.is_none_or(|(_, until)| due < until),
            monitor: tree.monitor_deadline.is_some_and(|until| due < until),
        };
        (key, late)
    }

    /// Returns the time until which the monitor, which is about to sleep, may sleep. `for_times`
    /// says whether it wakes up for times.
    pub(crate) fn monitor_deadline(&self, for_times: bool) -> Deadline {
        let mut tree = self.tree.lock();
        let first = self.update_first(&tree);
        tree.monitor_deadline = for_times.then_some(first);
        if for_times { first } else { Deadline::NEVER }
    }

    /// Removes an entry. Called when its thread does not wait any more.
    pub fn remove(&self, key: TimerKey) {
        let mut tree = self.tree.lock();
        let entry = tree.entries.remove(&key);
        self.update_first(&tree);
        drop(tree);
        drop(entry);
    }

    /// Notifies the threads for which the time has come. This costs one load if there are no
    /// entries, and a reading of the clock if none is due.
    pub fn run(&self) {
        while self.is_due() {
            let mut tree = self.tree.lock();
            // Another worker was faster.
            if !tree.entries.first_key_value().is_some_and(|(&(due, _), _)| due.passed()) {
                continue;
            }
            let entry = tree.entries.pop_first();
            self.update_first(&tree);
            if let Some((_, thread)) = &entry {
                thread.notify();
            }
            drop(tree);
            drop(entry);
        }
    }

    /// Returns whether there is an entry, as far as is known.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: see the header.
        self.first.load(Ordering::Relaxed) != Deadline::NEVER.to_bits()
    }

    /// Returns whether a time has come.
    #[inline]
    pub fn is_due(&self) -> bool {
        // Relaxed: see the header.
        let first = Deadline::from_bits(self.first.load(Ordering::Relaxed));
        first != Deadline::NEVER && first.passed()
    }

    /// Returns the time until which the worker on this slot, which is about to sleep, may sleep. It
    /// becomes the timekeeper, if there is no other that sleeps as short.
    pub fn become_timekeeper(&self, slot: usize) -> Deadline {
        let mut tree = self.tree.lock();
        let first = self.update_first(&tree);
        if tree.timekeeper.is_some_and(|(keeper, until)| keeper != slot && until <= first) {
            return Deadline::NEVER;
        }
        tree.timekeeper = (first != Deadline::NEVER).then_some((slot, first));
        first
    }

    /// Says that the worker on this slot has work, and is not the timekeeper any more. Returns
    /// whether another worker is to be woken, to be the timekeeper.
    pub fn resign_timekeeper(&self, slot: usize) -> bool {
        let mut tree = self.tree.lock();
        if tree.timekeeper.is_none_or(|(keeper, _)| keeper != slot) {
            return false;
        }
        tree.timekeeper = None;
        !tree.entries.is_empty()
    }
}
