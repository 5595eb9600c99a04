//! Threads that are to be unparked when a time has come.
//!
//! Nobody watches the clock: a carrier looks at its scheduling points whether the first of them is due, and an idle one sleeps no longer than until
//! then.
//!
//! # Invariants
//!
//! 1. `first` is no later than the first entry whenever the lock is free, but for entries whose thread has been unparked otherwise.
//!
//! # Orderings
//!
//! `first` is Relaxed: who adds an earlier entry tells a sleeper by `sleeping.rs`, whose fences order it.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use machine::atomic::{AtomicBool, AtomicUsize, Fresh, Ordering};
use machine::clock::Deadline;
use machine::sync::Arc;
use stanchion_competitive::Mutex;

use crate::thread::Thread;

/// Whether a thread still waits for its time.
pub(crate) type Waits = Arc<AtomicBool>;

struct Entry {
    due: Deadline,
    thread: Thread,
    waits: Waits,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

/// The times of a runtime.
pub(crate) struct Timers {
    count: AtomicUsize,
    heap: Mutex<BinaryHeap<Reverse<Entry>>>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self { count: AtomicUsize::fresh(0), heap: Mutex::new(BinaryHeap::new()) }
    }

    /// Unparks `thread` when `due` has come, unless what is returned says by then that it does not wait any more.
    /// And whether that is before all others.
    pub(crate) fn add(&self, due: Deadline, thread: Thread) -> (Waits, bool) {
        let waits = Arc::new(AtomicBool::fresh(true));
        let mut heap = self.heap.lock();
        let is_first = heap.peek().is_none_or(|Reverse(first)| due < first.due);
        heap.push(Reverse(Entry { due, thread, waits: waits.clone() }));
        // Relaxed: under the lock.
        self.count.store(heap.len(), Ordering::Relaxed);
        (waits, is_first)
    }

    /// Whether there is one, as far as is known.
    pub(crate) fn any(&self) -> bool {
        // Relaxed: a hint; who goes to sleep has a fence before it looks.
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Nobody waits any more: forgets the threads that did.
    pub(crate) fn clear(&self) {
        let mut heap = self.heap.lock();
        // Relaxed: under the lock.
        self.count.store(0, Ordering::Relaxed);
        let entries = core::mem::take(&mut *heap);
        drop(heap);
        drop(entries);
    }

    /// Unparks whose time has come; when the next one's will.
    pub(crate) fn run(&self) -> Deadline {
        if !self.any() {
            return Deadline::NEVER;
        }
        loop {
            let mut heap = self.heap.lock();
            let Some(Reverse(first)) = heap.peek() else { return Deadline::NEVER };
            // Relaxed: only whether it is worth while.
            let waits = first.waits.load(Ordering::Relaxed);
            if waits && !first.due.passed() {
                return first.due;
            }
            let entry = heap.pop();
            // Relaxed: under the lock.
            self.count.store(heap.len(), Ordering::Relaxed);
            drop(heap);
            // Relaxed: which of the two was first decides nothing but what the thread is told.
            if let Some(Reverse(entry)) = entry
                && entry.waits.swap(false, Ordering::Relaxed)
            {
                entry.thread.unpark();
            }
        }
    }
}
