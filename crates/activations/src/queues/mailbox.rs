//! The mail of a worker: threads that began there, and that others have made ready.
//!
//! The worker looks at a word, and takes the lock only if there is something. A worker that waits
//! in the middle of a thread (`scheduler_loop/panicking.rs`) sleeps on the word.
//!
//! | word | means | what changes it, under the lock |
//! | --- | --- | --- |
//! | `NONE` | there is no mail | a sender, to `SOME` |
//! | `SOME` | there is | the worker, which takes all, to `NONE` |
//!
//! # Invariants
//!
//! 1. The word changes under the lock of the list, together with the list.
//! 2. A sender that finds the mail awaited wakes the worker after it has changed the word. So a
//!    worker that has said that it awaits mail finds the word changed, or is woken.
//!
//! No orderings: the lock orders the list, and the word is a hint. A worker that must not miss it
//! has a fence before it looks (`idle_workers.rs`).

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;
use stanchion_competitive::Mutex;

const NONE: u32 = 0;
const SOME: u32 = 1;

/// Mailbox of one worker.
pub(crate) struct Mailbox<T> {
    list: Mutex<Contents<T>>,
    /// `SOME` if there is any, else `NONE`.
    word: AtomicU32,
}

struct Contents<T> {
    items: Vec<T>,
    /// The worker sleeps until there is mail, or is about to.
    is_awaited: bool,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        let list = Contents { items: Vec::new(), is_awaited: false };
        Self { list: Mutex::new(list), word: AtomicU32::fresh(NONE) }
    }

    /// Returns whether there is any, as far as is known.
    pub(crate) fn is_there(&self) -> bool {
        // Relaxed: see the header.
        self.word.load(Ordering::Relaxed) == SOME
    }

    /// Sends `item`, and wakes the worker if it awaits mail.
    pub(crate) fn send(&self, item: T) {
        let mut list = self.list.lock();
        list.items.push(item);
        // Relaxed: under the lock.
        self.word.store(SOME, Ordering::Relaxed);
        if list.is_awaited {
            park::wake_one(&self.word);
        }
    }

    /// Takes all that there is. By the worker.
    pub(crate) fn take(&self, each: impl FnMut(T)) {
        let mut list = self.list.lock();
        // Relaxed: under the lock.
        self.word.store(NONE, Ordering::Relaxed);
        list.items.drain(..).for_each(each);
    }

    /// Returns the greatest of what `of` says of each item; `None` if there is no mail.
    pub(crate) fn greatest<K: Ord>(&self, of: impl FnMut(&T) -> K) -> Option<K> {
        self.list.lock().items.iter().map(of).max()
    }

    /// Returns how many items there are.
    pub(crate) fn len(&self) -> usize {
        self.list.lock().items.len()
    }

    /// Calls `each` with each item, which stays.
    pub(crate) fn look(&self, each: impl FnMut(&T)) {
        self.list.lock().items.iter().for_each(each);
    }

    /// Sleeps until there is mail, or the deadline has passed; may return for nothing. By the
    /// worker.
    pub(crate) fn wait(&self, deadline: Deadline) {
        self.list.lock().is_awaited = true;
        // Invariant 2.
        park::wait(&self.word, NONE, deadline);
        self.list.lock().is_awaited = false;
    }

    /// Returns whether the worker sleeps here, and there is no mail, as far as is known.
    pub(crate) fn is_awaited(&self) -> bool {
        let list = self.list.lock();
        list.is_awaited && list.items.is_empty()
    }
}
