//! The event count: a thread sleeps until something may have changed, if the things that it waits
//! for lie in other structures.
//!
//! A worker has looked into all its sources of work and found nothing. It must sleep, but not if
//! work was published after its look. A condition variable would want all sources under one mutex.
//! Here the worker first registers that it is about to sleep. It looks once more, and sleeps only
//! if no thread has notified since it registered.
//!
//! Why not a semaphore or a thread's token: those remember a notification without a waiter,
//! so a producer pays for every item. Here a notification that finds no thread registered is a load
//! and a branch: [`REGISTRATION`] is a [`Handshake`] with a light fence on this side.
//!
//! ```text
//! consumer                              producer
//! --------                              --------
//! (1) prepare: key = epoch              (a) publish the work
//! (2)          registered += 1          (b) notify: light()
//! (3)          heavy()                  (c)         is a thread registered?
//! (4) look into all sources             (d)         under the lock: epoch += 1,
//! (5) under the lock: epoch still key?              take sleepers out of the queue
//!     join the queue; then sleep        (e)         wake them
//! ```
//!
//! # No wake-up is lost
//!
//! If (c) does not see the registration, [`REGISTRATION`] makes (4) see the work that (a)
//! published, and the consumer does not sleep. If it does, there is a (d). Where does (1) read the
//! epoch? If before (d) has moved it: either (5) comes before (d), and the sleeper is found in the
//! queue, or (5) comes after it, and the thread does not sleep. If (1) reads the value that (d)
//! wrote: then the heavy fence comes after a value that was written after the light one, so again
//! (4) sees the work that (a) published.
//!
//! A consumer that has prepared and panics drops its key, which takes the registration back. A
//! consumer that forgets its key leaves it registered: then every notification takes the slow path,
//! and is right.
//!
//! # Invariants
//!
//! 1. `registered` = keys alive + threads in the queue. It counts a thread from (2) until the key
//!    is dropped, it times out, or a notifier takes it out.
//! 2. `epoch` moves under the lock of the queue, in the step that takes sleepers out, and whether
//!    or not there are any.
//!
//! # Wrap-around
//!
//! A consumer that stands still between (1) and (5) while a multiple of 2^64 notifications pass
//! (2^32 if pointers have 32 bits) would sleep through them. The first takes five centuries at a
//! notification each nanosecond.
//!
//! # Orderings
//!
//! All are Relaxed: (2) and (c) are ordered by [`REGISTRATION`], (5) and (d) by the lock. So a
//! thread that comes back from [`EventCount::wait`] sees everything that the notifier did before,
//! whether it slept (the queue orders that) or not (the lock does).
//!
//! Source: Reed and Kanodia, "Synchronization with Eventcounts and Sequencers", CACM 1979, for the
//! name; the order of steps is Vyukov's (2008).

use core::fmt;

use stanchion_machine::atomic::{AtomicU32, AtomicUsize, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::handshake::{Handshake, Reach};

use crate::sleepers::{Sleepers, Slept};

/// The work of a notifier against a thread that registers: the notifier sees the registration, or
/// the thread sees the work when it looks once more. Any thread may publish work.
const REGISTRATION: Handshake =
    Handshake::new("the sources of work", "EventCount::registered", Reach::AllThreads);

/// Lets threads sleep until work may have appeared at any of several sources, without a lock around
/// them.
///
/// - [`notify_one`](Self::notify_one) with no thread registered costs two loads where
///   [`light`](stanchion_machine::asymmetric::light) is free, else a fence and a load.
/// - With a thread registered it costs a spin lock, and a system call for each thread woken.
/// - [`prepare`](Self::prepare) costs two locked instructions and
///   [`heavy`](stanchion_machine::asymmetric::heavy): some 2 µs with one other running thread, and
///   more with each further one. Search for a while before.
/// - Order: first asleep, first woken.
/// - Size: 48 bytes. Threads that wait bring their own memory.
///
/// Each call of [`notify_one`](Self::notify_one) wakes one sleeper if there is any; besides,
/// threads that have prepared but do not sleep yet come back as well. So a thread that comes back
/// must look into its sources, and may find them empty. It never comes back without a notification.
///
/// In the child of a fork no thread of the parent sleeps, and none is woken in place of others.
/// Keys that threads of the parent had stay registered there: notifications take the slow path.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use stanchion_competitive::EventCount;
///
/// static WORK: AtomicU32 = AtomicU32::new(0);
/// static EVENTS: EventCount = EventCount::new();
///
/// fn take() -> u32 {
///     loop {
///         if WORK.load(Relaxed) != 0 {
///             return WORK.swap(0, Relaxed);
///         }
///         let key = EVENTS.prepare();
///         // Between registering and sleeping, all sources must be looked at once more.
///         if WORK.load(Relaxed) != 0 {
///             EVENTS.cancel(key);
///         } else {
///             EVENTS.wait(key);
///         }
///     }
/// }
///
/// let taker = std::thread::spawn(take);
/// WORK.store(7, Relaxed);
/// EVENTS.notify_one();
/// assert_eq!(taker.join().unwrap(), 7);
/// ```
pub struct EventCount {
    /// The number of threads that must be notified (Invariant 1). Counted by those threads, and
    /// down by notifiers.
    registered: AtomicU32,
    /// The number of notifications that found a thread registered (Invariant 2). Written by
    /// notifiers.
    epoch: AtomicUsize,
    /// The queue of the threads that sleep.
    sleepers: Sleepers,
}

/// More registrations than this are refused: there are not so many threads, so keys have been
/// forgotten.
const MOST: u32 = u32::MAX / 2;

/// The right to sleep on an [`EventCount`], unless it is notified first. Dropping it cancels.
#[must_use = "a key that is dropped cancels: look into all sources of work, then wait with it"]
pub struct Key<'e> {
    /// The event count that it is of.
    events: &'e EventCount,
    /// The epoch when it was prepared.
    epoch: usize,
}

impl EventCount {
    /// Creates an event count without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            registered: AtomicU32::new(0),
            epoch: AtomicUsize::new(0),
            sleepers: Sleepers::new(),
        }
    }

    /// Registers the calling thread: from here on every notification is one for it. Look into all
    /// sources of work, then
    /// [`cancel`](Self::cancel) or [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// If 2^31 keys are alive, which only forgetting them can do.
    #[inline]
    pub fn prepare(&self) -> Key<'_> {
        // Relaxed: before the heavy fence. So if it reads the value of a notifier, that fence makes
        // everything visible that the notifier did before its light one.
        let epoch = self.epoch.load(Ordering::Relaxed);
        // Relaxed: ordered by `REGISTRATION`.
        if self.registered.fetch_add(1, Ordering::Relaxed) >= MOST {
            self.too_many();
        }
        REGISTRATION.heavy();
        Key { events: self, epoch }
    }

    #[cold]
    fn too_many(&self) -> ! {
        self.unregister(1);
        panic!(
            "the event count at {self:p} has {MOST} registrations: keys were forgotten with `mem::forget`; drop them, or wait with them"
        );
    }

    fn unregister(&self, count: u32) {
        // Relaxed: a notifier that still sees it only works in vain.
        self.registered.fetch_sub(count, Ordering::Relaxed);
    }

    /// There was something to do after all. The same as dropping the key.
    #[inline]
    pub fn cancel(&self, key: Key<'_>) {
        drop(key);
    }

    /// Sleeps until the next notification after [`prepare`](Self::prepare); returns at once if
    /// there was one.
    ///
    /// # Panics
    ///
    /// If the key is that of another event count.
    #[inline]
    pub fn wait(&self, key: Key<'_>) {
        self.wait_until(key, Deadline::NEVER);
    }

    /// Does the same as [`wait`](Self::wait), but gives up when the deadline has passed. Returns
    /// `false` if there was no notification until then.
    ///
    /// A thread that has given up has not used up any notification.
    ///
    /// # Panics
    ///
    /// If the key is that of another event count.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stanchion_machine::clock::Deadline;
    /// use stanchion_competitive::EventCount;
    ///
    /// let events = EventCount::new();
    /// let key = events.prepare();
    /// assert!(!events.wait_until(key, Deadline::after(Duration::from_millis(1))));
    ///
    /// let key = events.prepare();
    /// events.notify_one();
    /// assert!(events.wait_until(key, Deadline::PAST), "notified before it would have slept");
    /// ```
    pub fn wait_until(&self, key: Key<'_>, deadline: Deadline) -> bool {
        self.wait_as(key, usize::MAX, deadline)
    }

    /// [`wait_until`](Self::wait_until) under a name, by which [`notify_only`](Self::notify_only)
    /// wakes this thread and no other. Names need not be unique; `usize::MAX` names no thread.
    ///
    /// # Panics
    ///
    /// If the key is that of another event count.
    pub fn wait_as(&self, key: Key<'_>, name: usize, deadline: Deadline) -> bool {
        assert!(
            core::ptr::eq(self, key.events),
            "this key was prepared by the event count at {:p} and is waited with on the one at {self:p}: wait where it was prepared",
            key.events
        );
        // Relaxed: asked under the lock that it is written under (Invariant 2).
        let joins = || self.epoch.load(Ordering::Relaxed) == key.epoch;
        match self.sleepers.sleep_as(name, joins, || (), deadline) {
            Slept::Refused => true,
            // The notifier has taken the registration back.
            Slept::Woken => {
                core::mem::forget(key);
                true
            }
            Slept::TimedOut => false,
        }
    }

    /// Wakes a thread that sleeps, if there is one, and lets those through that are about to. Says
    /// how many were asleep: 0 or 1.
    ///
    /// What the caller did before is seen by each thread that returns from [`wait`](Self::wait) for
    /// it.
    #[inline]
    pub fn notify_one(&self) -> usize {
        self.notify_many(1)
    }

    /// Wakes at most `count` threads that sleep, longest first, and lets those through that are
    /// about to. Says how many were asleep.
    #[inline]
    pub fn notify_many(&self, count: usize) -> usize {
        REGISTRATION.light();
        // Relaxed: ordered by `REGISTRATION`.
        if self.registered.load(Ordering::Relaxed) == 0 { 0 } else { self.notify(count) }
    }

    /// Wakes all threads that sleep, and lets those through that are about to. Says how many were
    /// asleep.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.notify_many(usize::MAX)
    }

    /// Wakes a thread that sleeps under this name, if there is one, and lets those threads through
    /// that are about to sleep under any name. Returns whether one was asleep.
    ///
    /// For a notification that one thread can do something with: it costs a look at every sleeper
    /// that came before.
    ///
    /// ```
    /// use stanchion_machine::clock::Deadline;
    /// use stanchion_competitive::EventCount;
    ///
    /// static EVENTS: EventCount = EventCount::new();
    /// let seventh = std::thread::spawn(|| EVENTS.wait_as(EVENTS.prepare(), 7, Deadline::NEVER));
    /// // Either it sleeps and is woken, or it was about to and is let through.
    /// while !EVENTS.notify_only(7) && !seventh.is_finished() {
    ///     std::thread::yield_now();
    /// }
    /// assert!(seventh.join().unwrap());
    /// ```
    #[inline]
    pub fn notify_only(&self, name: usize) -> bool {
        REGISTRATION.light();
        // Relaxed: as in `notify_many`.
        self.registered.load(Ordering::Relaxed) != 0 && self.notify_name(name)
    }

    #[cold]
    #[inline(never)]
    fn notify_name(&self, name: usize) -> bool {
        self.sleepers.wake_only(name, |taken| {
            // Relaxed: as in `notify`.
            self.epoch.fetch_add(1, Ordering::Relaxed);
            self.unregister(taken as u32);
        })
    }

    #[cold]
    #[inline(never)]
    fn notify(&self, count: usize) -> usize {
        if count == 0 {
            return 0;
        }
        self.sleepers.wake(count, |taken| {
            // Relaxed: under the lock (Invariant 2). Once for each batch does no harm: the
            // notification is still going on.
            self.epoch.fetch_add(1, Ordering::Relaxed);
            // The queue is not longer than there are registrations, which fit.
            self.unregister(taken as u32);
        })
    }

    /// Returns the number of threads that sleep or are about to. A hint.
    #[must_use]
    pub fn registered(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.registered.load(Ordering::Relaxed) as usize
    }
}

impl Drop for Key<'_> {
    #[inline]
    fn drop(&mut self) {
        self.events.unregister(1);
    }
}

impl Default for EventCount {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EventCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventCount").field("registered", &self.registered()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
