//! The futures of a worker slot that have waited and are not done. The pool aborts them when it
//! ends.
//!
//! Why not all futures: most that are spawned for their parallelism are ready at their first poll,
//! and never come here. Why a list for each slot: its lock is free most of the time. Why not links
//! in the futures: an index is checked.
//!
//! # Invariants
//!
//! 1. `free` is the first of a list of free entries through their numbers. The list ends at the
//!    length of `entries`.
//! 2. Once it is closed, it holds nothing.

use std::sync::Arc;

use stanchion_competitive::Mutex;

/// A future that can be aborted.
pub(crate) trait Abort: Send + Sync {
    /// Aborts it.
    fn abort(self: Arc<Self>);
}

/// Futures that have waited and are not done.
pub(crate) struct WaitingFutures(Mutex<Entries>);

struct Entries {
    entries: Vec<Entry>,
    /// The first free entry (Invariant 1).
    free: usize,
    /// True if the pool has ended.
    closed: bool,
}

enum Entry {
    Used(Arc<dyn Abort>),
    /// The number of the next free entry.
    Free(usize),
}

impl WaitingFutures {
    /// Creates an empty list.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Entries { entries: Vec::new(), free: 0, closed: false }))
    }

    /// Holds a future. Returns its number; `None` if the list is closed.
    pub(crate) fn insert(&self, future: Arc<dyn Abort>) -> Option<usize> {
        let mut list = self.0.lock();
        if list.closed {
            return None;
        }
        let number = list.free;
        if number == list.entries.len() {
            list.entries.push(Entry::Used(future));
            list.free = number + 1;
        } else if let Entry::Free(next) =
            core::mem::replace(&mut list.entries[number], Entry::Used(future))
        {
            list.free = next;
        }
        Some(number)
    }

    /// Releases the future with this number. The caller owns it too, so no future is dropped under
    /// the lock.
    pub(crate) fn remove(&self, number: usize) {
        let mut list = self.0.lock();
        if list.closed {
            return;
        }
        let free = list.free;
        let was = core::mem::replace(&mut list.entries[number], Entry::Free(free));
        list.free = number;
        drop(list);
        drop(was);
    }

    /// Closes the list and aborts what it held.
    pub(crate) fn abort_all(&self) {
        let mut list = self.0.lock();
        list.closed = true;
        let entries = core::mem::take(&mut list.entries);
        drop(list);
        for entry in entries {
            if let Entry::Used(future) = entry {
                future.abort();
            }
        }
    }
}
