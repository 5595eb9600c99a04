//! Waiting at one channel or at several: the word of a thread that waits, and its entries in the
//! queues of the channels.
//!
//! | word | meaning | changed by |
//! | --- | --- | --- |
//! | `WAITING` | any of the channels may serve the thread | |
//! | `CLAIMED` | one thread serves an entry | that thread, from `WAITING` |
//! | `SERVED` | the entry is served, and the waiter goes on | the same thread, from `CLAIMED` |
//! | `GONE` | the waiter has given up: no entry is served any more | the waiter, from `WAITING` |
//!
//! # Invariants
//!
//! 1. An entry is put into a queue, taken out of it and served under the lock of its channel.
//!    `is_queued` is read and written under that lock.
//! 2. The compare-exchange from `WAITING` has one winner. A server that loses leaves the entry out
//!    of the queue and tries the next one.
//! 3. The waiter stays until all of its entries are out of their queues: it takes the lock of each
//!    channel and removes those that are left.
//! 4. Between `CLAIMED` and `SERVED`, the entry's message and the waiter's handle are the server's.
//!    Before and afterwards they are the waiter's.
//! 5. After it has stored `SERVED`, the server touches neither the waiter nor the entry. It calls
//!    the handle that it took out before.
//!
//! # Orderings
//!
//! The server of an entry holds the lock under which the entry was queued, so it sees what the
//! waiter wrote. `SERVED` is stored with Release and loaded with Acquire, so the waiter sees the
//! message, and which entry it is. The exchanges are Relaxed: they decide, and publish nothing.
//!
//! Source: `chan.go` and `select.go` of Go's runtime. Its `sudog` is the entry, and its
//! `selectDone` is the word.

use stanchion_competitive::list::{Link, Linked, List};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::Deadline;

use crate::thread::handle::Thread;
use crate::worker::context;
use crate::worker::wait::wait_until;

const WAITING: u32 = 0;
const CLAIMED: u32 = 1;
const SERVED: u32 = 2;
const GONE: u32 = 3;

/// A thread that waits at one channel or at several.
pub struct Waiter {
    /// See the table above.
    word: AtomicU32,
    /// The thread's handle, until a server takes it out (Invariant 4).
    thread: UnsafeCell<Option<Thread>>,
}

impl Waiter {
    /// The calling thread's.
    pub fn new() -> Self {
        Self { word: AtomicU32::fresh(WAITING), thread: UnsafeCell::new(Some(context::current())) }
    }

    /// Waits until an entry is served, or until the deadline. Returns whether one is served; if
    /// none is, none will be.
    pub(super) fn wait(&self, deadline: Deadline) -> bool {
        let is_served = || self.is_served();
        // A thread that has claimed an entry serves it at once, and notifies this one.
        wait_until(deadline, is_served) || !self.give_up() && wait_until(Deadline::NEVER, is_served)
    }

    /// Returns whether an entry is served.
    pub fn is_served(&self) -> bool {
        // Acquire: pairs with the Release of `serve`.
        self.word.load(Ordering::Acquire) == SERVED
    }

    /// Gives up. Returns `false` if a thread has claimed an entry already.
    pub fn give_up(&self) -> bool {
        // Relaxed: Invariant 2.
        self.word.compare_exchange(WAITING, GONE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Claims the right to serve one entry of this waiter.
    fn handle(&self) -> bool {
        // Relaxed: Invariant 2.
        self.word.compare_exchange(WAITING, CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Ends the wait. The caller has claimed it, and calls the thread when it has released the
    /// lock.
    fn serve(&self) -> Option<Thread> {
        // SAFETY: Invariant 4.
        let thread = self.thread.with_mut(|thread| unsafe { (*thread).take() });
        // Release: pairs with the Acquire of `wait`. From here on the waiter may be gone (Invariant
        // 5).
        self.word.store(SERVED, Ordering::Release);
        thread
    }
}

/// An operation that waits in a queue of a channel: a send with its message, or a receive with a
/// place for one.
pub struct Entry<T> {
    link: Link<Self>,
    /// The entry itself, for its owner and the server, see [`Entry::with`].
    content: UnsafeCell<Content<T>>,
}

/// The parts of an entry beside its link.
pub struct Content<T> {
    /// The waiter of the entry, while it is in a queue.
    waiter: *const Waiter,
    /// Set while it is in a queue (Invariant 1).
    is_queued: bool,
    /// Set when the operation has ended.
    pub is_done: bool,
    /// Of a send, what it sends; of a receive, what it has received.
    pub message: Option<T>,
}

// SAFETY: its own link, which only the list uses.
unsafe impl<T> Linked for Entry<T> {
    fn link(&self) -> &Link<Self> {
        &self.link
    }
}

impl<T> Entry<T> {
    /// Returns an entry in no queue with `message`.
    pub fn new(message: Option<T>) -> Self {
        let content =
            Content { waiter: core::ptr::null(), is_queued: false, is_done: false, message };
        Self { link: Link::new(), content: UnsafeCell::new(content) }
    }

    /// Calls `body` with the content.
    ///
    /// # Safety
    ///
    /// The caller holds the channel's lock, or the entry is in no queue and no thread serves it
    /// (Invariants 1 and 4). `body` does not call this.
    pub unsafe fn with<R>(&self, body: impl FnOnce(&mut Content<T>) -> R) -> R {
        // SAFETY: the caller's promise.
        self.content.with_mut(|content| body(unsafe { &mut *content }))
    }

    pub(super) fn into_content(self) -> Content<T> {
        self.content.into_inner()
    }
}

/// The entries that wait for the other side of a channel, first come, first served.
pub struct Entries<T>(List<Entry<T>>);

impl<T> Entries<T> {
    /// Returns a queue without entries.
    pub const fn new() -> Self {
        Self(List::new())
    }

    /// Returns whether no entry waits. If one does, its waiter may have been served elsewhere.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().next().is_none()
    }

    /// Puts an entry at the end.
    ///
    /// # Safety
    ///
    /// The caller holds the channel's lock. The entry is in no queue. It and the waiter stay until
    /// [`remove`](Self::remove) was called for it.
    pub unsafe fn push(&mut self, entry: &Entry<T>, waiter: &Waiter) {
        // SAFETY: the caller's promise.
        unsafe {
            entry.with(|content| {
                content.waiter = waiter;
                content.is_queued = true;
            });
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.push(entry) };
    }

    /// Takes an entry out if it is still in the queue.
    ///
    /// # Safety
    ///
    /// The caller holds the channel's lock. If the entry is in a queue, it is this one.
    pub unsafe fn remove(&mut self, entry: &Entry<T>) {
        // SAFETY: the caller's promise.
        let was_queued =
            unsafe { entry.with(|content| core::mem::replace(&mut content.is_queued, false)) };
        if was_queued {
            // SAFETY: it is in a queue, and so in this one.
            unsafe { self.0.remove(entry) };
        }
    }

    /// Serves the first entry with a waiter that still waits: calls `body` with the place of its
    /// message, and ends its operation.
    ///
    /// Returns what `body` does, and the thread to call after the lock is released. `body` must not
    /// unwind.
    ///
    /// # Safety
    ///
    /// The caller holds the channel's lock.
    pub unsafe fn serve_first<R>(
        &mut self,
        body: impl FnOnce(&mut Option<T>) -> R,
    ) -> Option<(R, Option<Thread>)> {
        loop {
            // SAFETY: an entry that was in the queue stays until its thread has had the lock
            // (Invariant 3).
            let entry = unsafe { self.0.pop().as_ref() }?;
            // SAFETY: under the lock, which the caller holds.
            let waiter = unsafe {
                entry.with(|content| {
                    content.is_queued = false;
                    content.waiter
                })
            };
            // SAFETY: a waiter stays as long as its entries.
            let waiter = unsafe { &*waiter };
            if waiter.handle() {
                // SAFETY: as above.
                let result = unsafe {
                    entry.with(|content| {
                        content.is_done = true;
                        body(&mut content.message)
                    })
                };
                return Some((result, waiter.serve()));
            }
        }
    }
}
