//! The mailbox of a worker: threads that are bound to it, and that other threads have made ready.
//!
//! The worker looks at a word, and takes the lock only if there is something. A worker that waits
//! in the middle of a thread (`worker/panicking.rs`) sleeps on the word.
//!
//! | word | meaning | changed under the lock by |
//! | --- | --- | --- |
//! | `EMPTY` | there is nothing | a sender, to `FULL` |
//! | `FULL` | there is something | the worker, which takes all, to `EMPTY` |
//!
//! # Invariants
//!
//! 1. The word changes under the lock of the contents, together with them.
//! 2. A sender that finds the mailbox awaited wakes the worker after it has changed the word. So a
//!    worker that has said that it waits finds the word changed, or is woken.
//!
//! The lock orders the contents, and the word is a hint, so there are no orderings. A worker that
//! must not miss a thread has a fence before it looks (`processors/idle_workers.rs`).

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

const EMPTY: u32 = 0;
const FULL: u32 = 1;

/// The mailbox of one worker.
pub struct Mailbox<T> {
    /// Filled by any thread, emptied by the worker.
    contents: Mutex<Contents<T>>,
    /// `FULL` if there is something, else `EMPTY` (Invariant 1).
    word: AtomicU32,
}

struct Contents<T> {
    /// Added by senders, taken by the worker.
    items: Vec<T>,
    /// Set while the worker sleeps until there is something, or is about to. Written by the worker.
    is_awaited: bool,
}

impl<T> Mailbox<T> {
    /// Returns an empty mailbox.
    pub fn new() -> Self {
        let contents = Contents { items: Vec::new(), is_awaited: false };
        Self { contents: Mutex::new(contents), word: AtomicU32::fresh(EMPTY) }
    }

    /// Returns whether there is something, as far as is known.
    pub fn is_full(&self) -> bool {
        // Relaxed: see the header.
        self.word.load(Ordering::Relaxed) == FULL
    }

    /// Sends `item`, and wakes the worker if it waits for one.
    pub fn send(&self, item: T) {
        let mut contents = self.contents.lock();
        contents.items.push(item);
        // Relaxed: under the lock.
        self.word.store(FULL, Ordering::Relaxed);
        if contents.is_awaited {
            park::wake_one(&self.word);
        }
    }

    /// Takes all items. Called by the worker.
    pub fn take(&self, each: impl FnMut(T)) {
        let mut contents = self.contents.lock();
        // Relaxed: under the lock.
        self.word.store(EMPTY, Ordering::Relaxed);
        contents.items.drain(..).for_each(each);
    }

    /// Returns the greatest of the keys that `key` gives the items; `None` if there is none.
    pub(crate) fn greatest<K: Ord>(&self, key: impl FnMut(&T) -> K) -> Option<K> {
        self.contents.lock().items.iter().map(key).max()
    }

    /// Returns the number of items.
    pub(crate) fn count(&self) -> usize {
        self.contents.lock().items.len()
    }

    /// Calls `each` with each item, which stays.
    pub(crate) fn inspect(&self, each: impl FnMut(&T)) {
        self.contents.lock().items.iter().for_each(each);
    }

    /// Sleeps until there is something or the deadline passes. May return early. Called by the
    /// worker.
    pub fn wait(&self, deadline: Deadline) {
        self.contents.lock().is_awaited = true;
        // Invariant 2.
        park::wait(&self.word, EMPTY, deadline);
        self.contents.lock().is_awaited = false;
    }

    /// Returns whether the worker sleeps here and there is nothing, as far as is known.
    pub fn is_awaited(&self) -> bool {
        let contents = self.contents.lock();
        contents.is_awaited && contents.items.is_empty()
    }
}
