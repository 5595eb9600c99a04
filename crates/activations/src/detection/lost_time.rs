//! Lost processor time: the time for which a slot was of no use while a thread was ready. Its owner
//! was blocked, and no other worker had the slot yet.
//!
//! Scheduler activations are there to make this time short. It is counted from the first look that
//! finds the owner blocked, a thread ready, and fewer workers that can run than processors. The
//! time before that look is the latency of `Blocked`. It ends when another worker runs on the
//! slot, the owner runs again, no thread is ready any more, or others use the processor
//! (`processors/overcommit.rs`). So it is the hand-off delay and the wake-up of a spare worker, or
//! the length of a block that no worker could stand in for.
//!
//! ```text
//! owner blocks      first look      slot taken       another worker runs
//!       │── Blocked ──►│──── delay ────►│─── its wake-up ───►│
//!                      │◄──────────── lost ─────────────────►│   also the hand-off's latency
//!                                       │◄─ ProcessorAdded ─►│
//! ```
//!
//! Why not on slots beyond the processors (`processors/overcommit.rs`): they have no processor that
//! would be idle. So the lost time of each processor is at most the time that has passed.
//!
//! Why not the time that a preempted owner loses: another program has its processor then, and no
//! worker could have it.
//!
//! The decisions are in `upcalls/lost_time.rs`.
//!
//! # Orderings
//!
//! Relaxed: statistics. The thread that takes a beginning out of its word, by an exchange, counts
//! it. So it is counted once.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock;

use crate::stats::histogram::Histogram;

/// No time: the clock has moved on from there when there is a runtime.
const NOTHING: u64 = 0;

/// The times of one slot, in ns of the monotonic clock.
pub(crate) struct SlotTimes(CachePadded<Times>);

struct Times {
    /// The time since which the slot's processor time is lost. Written by threads that look.
    lost_since: AtomicU64,
    /// The time at which the slot was given to its present owner, if that has not started yet.
    /// Written by the thread that gives it.
    assigned: AtomicU64,
}

impl SlotTimes {
    pub(crate) fn new() -> Self {
        let nothing = || AtomicU64::fresh(NOTHING);
        Self(CachePadded::new(Times { lost_since: nothing(), assigned: nothing() }))
    }

    /// Begins to count lost time, unless that was begun.
    pub(crate) fn start_losing(&self) {
        let since = &self.0.lost_since;
        if since.load(Ordering::Relaxed) == NOTHING {
            let now = clock::monotonic();
            // If another look was first, its time is the better one.
            let _ = since.compare_exchange(NOTHING, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Takes the time since which processor time is lost.
    pub(crate) fn take_lost_since(&self) -> Option<u64> {
        take(&self.0.lost_since)
    }

    /// Records that the slot is given to a worker.
    pub(crate) fn set_assigned(&self) {
        self.0.assigned.store(clock::monotonic(), Ordering::Relaxed);
    }

    /// Takes the time at which the slot was given to its present owner.
    pub(crate) fn take_assigned(&self) -> Option<u64> {
        take(&self.0.assigned)
    }
}

fn take(word: &AtomicU64) -> Option<u64> {
    // A load first: most often there is nothing.
    let seen = word.load(Ordering::Relaxed);
    (seen != NOTHING && word.swap(NOTHING, Ordering::Relaxed) == seen).then_some(seen)
}

/// The lost time of a runtime.
#[derive(Default)]
pub(crate) struct LostTime {
    /// The sum, in ns. Raised by the threads that end a loss.
    nanos: AtomicU64,
    /// The losses that a hand-off has ended.
    pub(crate) handoffs: Histogram,
}

impl LostTime {
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}
