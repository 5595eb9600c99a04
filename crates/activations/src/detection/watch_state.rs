//! Stuck-worker detection: one word shared by the monitor and every thread that makes work ready.
//! It says which of them would notice a blocked worker.
//!
//! - `UNWATCHED`. Meaning: no thread would notice. Changed by: a thread that makes work ready for
//!   which no slot is free, or the monitor, to either of the others.
//! - `ARMED`. Meaning: the kernel wakes the monitor when it switches a worker that has a slot, or
//!   it has just done so. Changed by: the monitor, to either of the others.
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
//! All accesses are Relaxed. The fences of two handshakes, `LEAVE` and `ARM`, order them. In
//! each, at least one of the two sides sees the other.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};

/// Ready work against a monitor that leaves: the thread that makes work ready sees `UNWATCHED`, or
/// the monitor sees the work when it looks once more. Any thread may make work ready, and its fence
/// is that of `processors/parking.rs`, which it needs for the sleeping slots.
const LEAVE: Handshake<Symmetric> =
    Handshake::symmetric("ready work", "WatchState", Reach::AllThreads);

/// A worker that registers against a thread that arms the workers: the worker sees `ARMED` and
/// arms itself, or the thread sees the worker and arms it. Any thread may become a worker. Both
/// sides are rare.
const ARM: Handshake<Symmetric> =
    Handshake::symmetric("WorkerRecord", "WatchState", Reach::AllThreads);

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
        ARM.fence();
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
        LEAVE.fence();
    }

    /// Returns whether a worker that has just registered is to arm itself.
    pub fn worker_begins(&self) -> bool {
        ARM.fence();
        self.is_armed()
    }
}
