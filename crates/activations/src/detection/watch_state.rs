//! Stuck-worker detection: one word shared by the monitor and every thread that makes work ready.
//! It says which of them would notice a blocked worker.
//!
//! - `UNWATCHED`. Meaning: no thread would notice. Changed by: a thread that makes work ready for
//!   which no slot is free, or the monitor, to either of the others.
//! - `ARMED`. Meaning: the kernel wakes the monitor when a worker with a slot is switched, unless
//!   that has happened since, and the monitor is being woken. Changed by: the monitor.
//! - `POLLED`. Meaning: the monitor looks every so often. Changed by: the monitor.
//!
//! ```text
//!              work, no free slot: arm                 work, no free slot: poll
//!   ARMED ◄──────────────────────────── UNWATCHED ────────────────────────────► POLLED
//!     └──────────── leave: nothing ready ──► ▲ ◄── leave: nothing ready ────────────┘
//! ```
//!
//! # Orderings
//!
//! All accesses are Relaxed. Fences order them, in two instances of Dekker's protocol. In each, at
//! least one of the two sides sees the other:
//!
//! - the monitor stores `UNWATCHED`, fence of [`leave`](WatchState::leave), looks whether there is
//!   work. The other side: a thread makes work ready, fence of `parking.rs`, looks whether the
//!   word is `UNWATCHED`.
//! - a thread stores `ARMED`, fence of [`arm`](WatchState::arm), looks which workers are
//!   registered, and arms them. The other side: a worker registers, fence of
//!   [`worker_begins`](WatchState::worker_begins), looks whether the word is `ARMED`, and arms
//!   itself.

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};

const UNWATCHED: u32 = 0;
const ARMED: u32 = 1;
const POLLED: u32 = 2;

/// The word.
pub struct WatchState(AtomicU32);

impl WatchState {
    /// Returns the word of a runtime that is not watched.
    pub fn new() -> Self {
        Self(AtomicU32::fresh(UNWATCHED))
    }

    /// Returns whether no thread would notice a blocked worker. Called after a fence.
    #[inline]
    pub fn is_unwatched(&self) -> bool {
        // Relaxed: see the header.
        self.0.load(Ordering::Relaxed) == UNWATCHED
    }

    /// Returns whether workers with slots are to be armed.
    pub(crate) fn is_armed(&self) -> bool {
        // Relaxed: see the header.
        self.0.load(Ordering::Relaxed) == ARMED
    }

    /// Says that the kernel will wake the monitor. The caller arms the workers after this.
    pub fn arm(&self) {
        // Relaxed: see the header.
        self.0.store(ARMED, Ordering::Relaxed);
        // Pairs with the fence of `worker_begins`.
        fence(Ordering::SeqCst);
    }

    /// Says that the monitor looks every so often.
    pub(crate) fn poll(&self) {
        // Relaxed: see the header.
        self.0.store(POLLED, Ordering::Relaxed);
    }

    /// Says that no thread would notice. The monitor looks once more for work after this, and stays
    /// if there is some.
    pub fn leave(&self) {
        // Relaxed: see the header.
        self.0.store(UNWATCHED, Ordering::Relaxed);
        // Pairs with the fence of `ParkedSlots::wake`.
        fence(Ordering::SeqCst);
    }

    /// Returns whether a worker that has just registered is to arm itself.
    pub fn worker_begins(&self) -> bool {
        // Pairs with the fence of `arm`.
        fence(Ordering::SeqCst);
        self.is_armed()
    }
}
