//! How many of its seats a runtime uses, and how many it would.
//!
//! The paper's two downcalls: "add more processors" when a thread is ready for which none is free, and "this processor is idle" when a carrier has
//! found nothing for a while. With an [`Arbiter`] they go to the other runtimes; without one, nobody hears them, and the limit is the user's.
//!
//! ```text
//! seats    0 1 2 3 | 4 5 6 7        open below `allowed`: those above it close at their carriers' next scheduling points
//! ```
//!
//! # Invariants
//!
//! 1. `allowed` is at least 1, and at most the number of seats.
//!
//! # Orderings
//!
//! Relaxed: a carrier that sees an old number closes its seat, or keeps it, for one scheduling point longer. Seats are closed and opened under the
//! reserve's lock.

use machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::processors::arbiter::Arbiter;

/// The downcalls of a runtime.
pub(crate) struct Demand {
    seats: usize,
    allowed: AtomicUsize,
    /// The most that its user wants it to use.
    limit: AtomicUsize,
    /// Its share of the machine, if it shares that.
    share: AtomicUsize,
    /// Seats whose carriers do not sleep.
    awake: AtomicUsize,
    arbiter: Option<Arbiter>,
}

impl Demand {
    pub(crate) fn new(seats: usize, arbiter: Option<Arbiter>) -> Self {
        if let Some(arbiter) = &arbiter {
            arbiter.want(seats);
        }
        Self {
            seats,
            allowed: AtomicUsize::fresh(seats),
            limit: AtomicUsize::fresh(seats),
            share: AtomicUsize::fresh(seats),
            awake: AtomicUsize::fresh(seats),
            arbiter,
        }
    }

    /// How many there are.
    pub(crate) fn seats(&self) -> usize {
        self.seats
    }

    /// How many seats are open.
    #[inline]
    pub(crate) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Asks what the share is now, if it is shared; whether `allowed` has changed.
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
        let allowed = limit.min(share).clamp(1, self.seats);
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

    /// "Add more processors": something is ready, and no open seat was free for it.
    #[inline]
    pub(crate) fn more(&self) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.want(self.seats);
        }
    }

    /// A seat that was awake has closed, or one that was closed is awake.
    pub(crate) fn closed(&self, closed: bool) {
        // It is still wanted.
        if closed {
            self.awake.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.awake.fetch_add(1, Ordering::Relaxed);
        }
    }
}
