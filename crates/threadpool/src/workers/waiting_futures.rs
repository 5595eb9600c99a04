//! The futures of a seat that have waited and are not done, so that the pool can abort them when it ends.
//!
//! Why not all futures: most that are spawned for their parallelism are ready at their first poll, and never come here. Why a list for each seat: a
//! lock that nobody else wants. Why not links in the futures: an index is checked.
//!
//! # Invariants
//!
//! 1. `free` is the first of a list of free entries through their numbers, which ends at the length of `entries`.
//! 2. Once it is closed, it holds nothing.

use std::sync::Arc;

use stanchion_competitive::Mutex;

/// What can be aborted.
pub(crate) trait Abort: Send + Sync {
    fn abort(self: Arc<Self>);
}

/// Futures that are not done.
pub(crate) struct WaitingFutures(Mutex<Entries>);

struct Entries {
    entries: Vec<Entry>,
    free: usize,
    closed: bool,
}

enum Entry {
    Used(Arc<dyn Abort>),
    /// The next free one.
    Free(usize),
}

impl WaitingFutures {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Entries { entries: Vec::new(), free: 0, closed: false }))
    }

    /// Holds a future, under the number that is returned. None, if nothing is held any more.
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

    /// Gives up the future with this number, which the caller has as well: nothing is dropped under the lock that is the last of its kind.
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

    /// Holds nothing from now on, and aborts what was held.
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
