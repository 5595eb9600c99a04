//! The processor limit: the number of its slots that a runtime uses, and would use.
//!
//! The paper has two downcalls: "add more processors" when a thread is ready for which no processor
//! is free, and "this processor is idle" when a worker has found nothing for a while. With an
//! [`Arbiter`] they go to the other runtimes. Without one they go nowhere, and the limit is the
//! user's.
//!
//! ```text
//! slots    0 1 2 3 | 4 5 6 7      open below `allowed`; the others close at the next scheduling
//!                                 points of their workers
//! ```
//!
//! # Invariants
//!
//! 1. `allowed` is at least 1, and at most the number of slots.
//!
//! # Orderings
//!
//! Relaxed: a worker that sees an old number closes its slot, or keeps it, for one scheduling point
//! longer. Slots are closed and opened under the lock of `idle_workers.rs`.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use super::arbiter::Arbiter;

/// The limit of a runtime, and its downcalls.
pub(crate) struct ProcessorLimit {
    /// The number of slots that are always there.
    slots: usize,
    /// The number of slots that are open: the smaller of the two below (Invariant 1).
    allowed: AtomicUsize,
    /// The most that the user allows. Written by the user's thread.
    user_limit: AtomicUsize,
    /// The runtime's share of the machine, if it has an arbiter. Written by the worker that asks.
    share: AtomicUsize,
    /// The open slots with a worker that is awake. Changed by those workers, while others read the
    /// words beside it: so it has a line of its own.
    awake: CachePadded<AtomicUsize>,
    arbiter: Option<Arbiter>,
}

impl ProcessorLimit {
    pub(crate) fn new(slots: usize, arbiter: Option<Arbiter>) -> Self {
        let limit = Self {
            slots,
            allowed: AtomicUsize::fresh(slots),
            user_limit: AtomicUsize::fresh(slots),
            share: AtomicUsize::fresh(slots),
            awake: CachePadded::new(AtomicUsize::fresh(slots)),
            arbiter,
        };
        limit.request(slots);
        limit
    }

    /// Returns the number of slots that are always there.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// Returns the number of slots that are open.
    #[inline]
    pub(crate) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Asks the arbiter for the share, if there is an arbiter. Returns whether `allowed` has
    /// changed.
    #[inline]
    pub(crate) fn poll(&self, look_at_clock: bool) -> bool {
        let Some(share) = self.arbiter.as_ref().and_then(|arbiter| arbiter.poll(look_at_clock))
        else {
            return false;
        };
        self.share.store(share, Ordering::Relaxed);
        self.update()
    }

    /// Sets the most that the user allows. Returns whether `allowed` has changed.
    pub(crate) fn set_user_limit(&self, processors: usize) -> bool {
        self.user_limit.store(processors, Ordering::Relaxed);
        self.update()
    }

    fn update(&self) -> bool {
        let user_limit = self.user_limit.load(Ordering::Relaxed);
        let share = self.share.load(Ordering::Relaxed);
        let allowed = user_limit.min(share).clamp(1, self.slots);
        self.allowed.swap(allowed, Ordering::Relaxed) != allowed
    }

    fn request(&self, processors: usize) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.request(processors);
        }
    }

    /// "This processor is idle": the worker of an open slot goes to sleep.
    pub(crate) fn worker_sleeps(&self) {
        self.request(self.awake.fetch_sub(1, Ordering::Relaxed) - 1);
    }

    /// Takes that back: the worker has woken up.
    pub(crate) fn worker_wakes(&self) {
        self.request(self.awake.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// "Add more processors": a thread is ready, and no open slot is free for it.
    #[inline]
    pub(crate) fn request_all(&self) {
        self.request(self.slots);
    }

    /// Counts a slot that is closed while its worker is awake. The processor is still wanted.
    pub(crate) fn slot_closed(&self) {
        self.awake.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a closed slot that is opened for a worker that is awake.
    pub(crate) fn slot_opened(&self) {
        self.awake.fetch_add(1, Ordering::Relaxed);
    }
}
