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
//! 1. `allowed` is at least 1, and at most the number of slots. It is written under the lock of
//!    `most`, and so is never older than the two numbers there.
//! 2. Of workers that fall asleep or wake up at the same time, the last request counts all.
//!
//! # Orderings
//!
//! Relaxed for `allowed`: a worker that sees an old number closes its slot, or keeps it, for one
//! scheduling point longer. Slots are closed and opened under the lock of `idle_workers.rs`. For
//! `awake`, see `request_awake`.

use crossbeam_utils::CachePadded;
use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use super::arbiter::Arbiter;

/// The limit of a runtime, and its downcalls.
pub struct ProcessorLimit {
    /// The number of slots that are always there.
    slots: usize,
    /// The number of slots that are open: the smaller of the two numbers in `most` (Invariant 1).
    allowed: AtomicUsize,
    /// The two numbers. Written by a worker that asks the arbiter, and by the user's thread.
    most: Mutex<Most>,
    /// The open slots with a worker that is awake. Changed by those workers, while others read the
    /// words beside it: so it has a line of its own.
    awake: CachePadded<AtomicUsize>,
    /// The runtime's part in the division, if it takes part in one.
    arbiter: Option<Arbiter>,
}

/// The numbers that `allowed` follows.
struct Most {
    /// The most that the user allows. Written by the user's thread.
    user_limit: usize,
    /// The runtime's share of the machine. Written by a worker, if there is an arbiter.
    share: usize,
}

impl ProcessorLimit {
    /// Returns the limit of a runtime with so many slots.
    pub fn new(slots: usize, arbiter: Option<Arbiter>) -> Self {
        let limit = Self {
            slots,
            allowed: AtomicUsize::fresh(slots),
            most: Mutex::new(Most { user_limit: slots, share: slots }),
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
    pub fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Asks the arbiter for the share, if there is an arbiter. Returns whether `allowed` has
    /// changed.
    #[inline]
    pub fn poll(&self, look_at_clock: bool) -> bool {
        let arbiter = self.arbiter.as_ref();
        arbiter.is_some_and(|arbiter| arbiter.has_news(look_at_clock) && self.ask(arbiter))
    }

    #[cold]
    fn ask(&self, arbiter: &Arbiter) -> bool {
        // Another worker asks already. If it began before the last news, these are still news when
        // it has ended.
        let Some(mut most) = self.most.try_lock() else { return false };
        most.share = arbiter.work_out();
        self.follow(&most)
    }

    /// Sets the most that the user allows. Returns whether `allowed` has changed.
    pub(crate) fn set_user_limit(&self, processors: usize) -> bool {
        let mut most = self.most.lock();
        most.user_limit = processors;
        self.follow(&most)
    }

    /// Sets `allowed` under the lock of `most`. Returns whether it has changed.
    fn follow(&self, most: &Most) -> bool {
        let allowed = most.user_limit.min(most.share).clamp(1, self.slots);
        let changes = self.allowed() != allowed;
        self.allowed.store(allowed, Ordering::Relaxed);
        changes
    }

    fn request(&self, processors: usize) {
        if let Some(arbiter) = &self.arbiter {
            arbiter.request(processors);
        }
    }

    /// "This processor is idle": the worker of an open slot goes to sleep.
    pub fn worker_sleeps(&self) {
        self.request_awake(self.awake.fetch_sub(1, Ordering::Relaxed) - 1);
    }

    /// Takes that back: the worker has woken up.
    pub fn worker_wakes(&self) {
        self.request_awake(self.awake.fetch_add(1, Ordering::Relaxed) + 1);
    }

    /// Asks for a processor for each worker that is awake.
    fn request_awake(&self, mut awake: usize) {
        let Some(arbiter) = &self.arbiter else { return };
        // Asks again only if another worker has fallen asleep or woken up meanwhile.
        loop {
            arbiter.request(awake);
            // Relaxed: of two workers, the one that asks last sees here what the other did before
            // (`arbiter/wanted.rs`).
            let now = self.awake.load(Ordering::Relaxed);
            if now == awake {
                break;
            }
            awake = now;
        }
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
