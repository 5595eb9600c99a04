//! Time that a slot was of no use while something was ready: its owner was blocked, and nobody had
//! its place yet.
//!
//! That is what activations are there to make short. It is counted from the first look that finds
//! the owner blocked, something ready, and fewer workers that can run than processors; so not the
//! time before that look (which is the latency of `Blocked`). It ends when another worker runs on
//! the slot, the owner runs again, nothing is ready any more, or others use the processor
//! (`overcommit.rs`). So it is the runtime's delay and the wake-up of a spare, or the length of a
//! block that nobody could stand in for.
//!
//! ```text
//! owner blocks     first look      slot taken       another worker runs
//!       │── Blocked ──►│─── delay ──►│─── its wake-up ───►│
//!                      │◄──────────── short ────────────────►│      also the latency of the hand-over
//!                                       │◄─ ProcessorAdded ─►│
//! ```
//!
//! Why not on slots beyond the processors (`overcommit.rs`): they have no processor that would be
//! idle. So what is lost is at most the time that has passed, on each processor.
//!
//! Why not what a preempted owner loses: its processor is somebody else's then, and no worker
//! could have it.
//!
//! # Orderings
//!
//! Relaxed: statistics. Who takes a beginning out of its word, by an exchange, counts it; so it is
//! counted once.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock;
use machine::presence::Presence;

use crate::stats::histogram::Histogram;
use crate::runtime::state::RuntimeState;
use crate::stats::upcalls::Upcall;

/// No time: the clock has moved on from there when there is a runtime.
const NOTHING: u64 = 0;

/// What is timed at one slot, in ns of the monotonic clock.
pub(crate) struct SlotTimes(CachePadded<Times>);

struct Times {
    /// Since when it is short of a worker.
    since: AtomicU64,
    /// When it was given to its present owner, if that has not gone on yet.
    given: AtomicU64,
}

impl SlotTimes {
    pub(crate) fn new() -> Self {
        let nothing = || AtomicU64::fresh(NOTHING);
        Self(CachePadded::new(Times { since: nothing(), given: nothing() }))
    }

    fn take(word: &AtomicU64) -> Option<u64> {
        // A look first: mostly there is nothing.
        let seen = word.load(Ordering::Relaxed);
        (seen != NOTHING && word.swap(NOTHING, Ordering::Relaxed) == seen).then_some(seen)
    }
}

/// What a runtime counts of it.
#[derive(Default)]
pub(crate) struct LostTime {
    nanos: AtomicU64,
    /// Of the slot_times that a hand-over has ended.
    pub(crate) handovers: Histogram,
}

impl LostTime {
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

impl RuntimeState {
    /// The owner of that slot is blocked, and something is ready.
    pub(crate) fn start_lost_time(&self, slot: usize) {
        // A slot beyond the processors has none that would be idle.
        if self.overcommit().has(slot) {
            return;
        }
        let since = &self.slot_times(slot).0.since;
        if since.load(Ordering::Relaxed) == NOTHING {
            let now = clock::monotonic();
            // If another look was first, it knows better.
            let _ = since.compare_exchange(NOTHING, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Nothing is ready: no slot is missed.
    pub(crate) fn stop_all_lost_time(&self) {
        self.slots_in_use().for_each(|slot| self.stop_lost_time(slot));
    }

    /// That slot is not missed: its owner is back, nothing is ready that it keeps waiting, or no
    /// processor would be idle.
    pub(crate) fn stop_lost_time(&self, slot: usize) {
        if let Some(since) = SlotTimes::take(&self.slot_times(slot).0.since) {
            let owner = self.worker(self.slot(slot).owner());
            // If it is back it has been since its last switch, whoever sees it.
            let runs = owner.presence() == Presence::Running;
            let back = if runs { owner.switched_at() } else { None };
            self.count_lost_time(slot, since, back.unwrap_or_else(clock::monotonic));
        }
    }

    /// That slot is given to a worker.
    pub(crate) fn note_assigned(&self, slot: usize) {
        self.slot_times(slot).0.given.store(clock::monotonic(), Ordering::Relaxed);
    }

    /// The worker goes on that was given that slot.
    pub(crate) fn note_started(&self, slot: usize) {
        let times = &self.slot_times(slot).0;
        let Some(given) = SlotTimes::take(&times.given) else { return };
        let now = clock::monotonic();
        self.told(Upcall::ProcessorAdded, slot, Some(now.saturating_sub(given)));
        if let Some(since) = SlotTimes::take(&times.since) {
            self.lost().handovers.note(self.count_lost_time(slot, since, now));
        }
    }

    fn count_lost_time(&self, slot: usize, since: u64, until: u64) -> u64 {
        let lost = until.saturating_sub(since);
        self.lost().nanos.fetch_add(lost, Ordering::Relaxed);
        if let Some(tracer) = self.tracer() {
            tracer.short(slot, since, lost);
        }
        lost
    }
}
