//! How many of its slots a runtime uses, and how many it would.
//!
//! The paper's two downcalls: "add more processors" when a thread is ready for which none is free, and "this processor is idle" when a worker has
//! found nothing for a while. With an [`Arbiter`] they go to the other runtimes; without one, nobody hears them, and the limit is the user's.
//!
//! ```text
//! slots    0 1 2 3 | 4 5 6 7        open below `allowed`: those above it close at their workers' next scheduling points
//! ```
//!
//! # Invariants
//!
//! 1. `allowed` is at least 1, and at most the number of slots.
//!
//! # Orderings
//!
//! Relaxed: a worker that sees an old number closes its slot, or keeps it, for one scheduling point longer. Seats are closed and opened under the
//! idle_workers's lock.

use machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::processors::arbiter::Arbiter;

/// The downcalls of a runtime.
pub(crate) struct ProcessorLimit {
    slots: usize,
    allowed: AtomicUsize,
    /// The most that its user wants it to use.
    limit: AtomicUsize,
    /// Its share of the machine, if it shares that.
    share: AtomicUsize,
    /// Seats whose workers do not sleep.
    awake: AtomicUsize,
    arbiter: Option<Arbiter>,
}

impl ProcessorLimit {
    pub(crate) fn new(slots: usize, arbiter: Option<Arbiter>) -> Self {
        if let Some(arbiter) = &arbiter {
            arbiter.want(slots);
        }
        Self {
            slots,
            allowed: AtomicUsize::fresh(slots),
            limit: AtomicUsize::fresh(slots),
            share: AtomicUsize::fresh(slots),
            awake: AtomicUsize::fresh(slots),
            arbiter,
        }
    }

    /// How many there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// How many slots are open.
    #[inline]
    pub(crate) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Asks what the share is now, if it is runtime; whether `allowed` has changed.
    #[inline]
    pub(crate) fn poll(&self, look_at_clock: bool) -> bool {
        let Some(share) = self.arbiter.as_ref().and_then(|arbiter| arbiter.poll(look_at_clock))
        else {
            return false;
        };
        self.share.store(share, Ordering::Relaxed);
        self.update()
    }

    /// Uses no more than so many.
    pub(crate) fn limit(&self, processors: usize) -> bool {
        self.limit.store(processors, Ordering::Relaxed);
        self.update()
    }

    fn update(&self) -> bool {
        let (limit, share) =
            (self.limit.load(Ordering::Relaxed), self.share.load(Ordering::Relaxed));
        let allowed = limit.min(share).clamp(1, self.slots);
        self.allowed.swap(allowed, Ordering::Relaxed) != allowed
    }

    /// "This processor is idle."
    pub(crate) fn sleeps(&self) {
        let awake = self.awake.fetch_sub(1, Ordering::Relaxed) - 1;
        if let Some(arbiter) = &self.arbiter {
            arbiter.want(awake);
        }
    }

    /// It is not any more.
    pub(crate) fn wakes(&self) {
        let awake = self.awake.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(arbiter) = &self.arbiter {
            arbiter.want(awake);
        }
    }

    /// "Add more processors": something is ready, and no open slot was free for it.
    #[inline]
    pub(crate) fn more(&self) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.want(self.slots);
        }
    }

    /// A slot that was awake has closed, or one that was closed is awake.
    pub(crate) fn closed(&self, closed: bool) {
        // It is still wanted.
        if closed {
            self.awake.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.awake.fetch_add(1, Ordering::Relaxed);
        }
    }
}
