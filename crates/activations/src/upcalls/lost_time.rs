//! Time that a seat was of no use while something was ready: its holder was blocked, and nobody had
//! its place yet.
//!
//! That is what activations are there to make short. It is counted from the first look that finds
//! the holder blocked, something ready, and fewer carriers that can run than processors; so not the
//! time before that look (which is the latency of `Blocked`). It ends when another carrier runs on
//! the seat, the holder runs again, nothing is ready any more, or others use the processor
//! (`surplus.rs`). So it is the runtime's patience and the wake-up of a spare, or the length of a
//! block that nobody could stand in for.
//!
//! ```text
//! holder blocks     first look      seat taken       another carrier runs
//!       │── Blocked ──►│─── patience ──►│─── its wake-up ───►│
//!                      │◄──────────── short ────────────────►│      also the latency of the hand-over
//!                                       │◄─ ProcessorAdded ─►│
//! ```
//!
//! Why not on seats beyond the processors (`surplus.rs`): they have no processor that would be
//! idle. So what is lost is at most the time that has passed, on each processor.
//!
//! Why not what a preempted holder loses: its processor is somebody else's then, and no carrier
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
use crate::runtime::state::Shared;
use crate::stats::upcalls::Upcall;

/// No time: the clock has moved on from there when there is a runtime.
const NOTHING: u64 = 0;

/// What is timed at one seat, in ns of the monotonic clock.
pub(crate) struct Shortage(CachePadded<Times>);

struct Times {
    /// Since when it is short of a carrier.
    since: AtomicU64,
    /// When it was given to its present holder, if that has not gone on yet.
    given: AtomicU64,
}

impl Shortage {
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
pub(crate) struct Lost {
    nanos: AtomicU64,
    /// Of the shortages that a hand-over has ended.
    pub(crate) handovers: Histogram,
}

impl Lost {
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// The holder of that seat is blocked, and something is ready.
    pub(crate) fn is_short(&self, seat: usize) {
        // A seat beyond the processors has none that would be idle.
        if self.surplus().has(seat) {
            return;
        }
        let since = &self.shortage(seat).0.since;
        if since.load(Ordering::Relaxed) == NOTHING {
            let now = clock::monotonic();
            // If another look was first, it knows better.
            let _ = since.compare_exchange(NOTHING, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Nothing is ready: no seat is missed.
    pub(crate) fn is_short_of_none(&self) {
        self.seats_in_use().for_each(|seat| self.is_not_short(seat));
    }

    /// That seat is not missed: its holder is back, nothing is ready that it keeps waiting, or no
    /// processor would be idle.
    pub(crate) fn is_not_short(&self, seat: usize) {
        if let Some(since) = Shortage::take(&self.shortage(seat).0.since) {
            let holder = self.carrier(self.seat(seat).holder());
            // If it is back it has been since its last switch, whoever sees it.
            let runs = holder.presence() == Presence::Running;
            let back = if runs { holder.switched_at() } else { None };
            self.has_lost(seat, since, back.unwrap_or_else(clock::monotonic));
        }
    }

    /// That seat is given to a carrier.
    pub(crate) fn is_given(&self, seat: usize) {
        self.shortage(seat).0.given.store(clock::monotonic(), Ordering::Relaxed);
    }

    /// The carrier goes on that was given that seat.
    pub(crate) fn is_seated(&self, seat: usize) {
        let times = &self.shortage(seat).0;
        let Some(given) = Shortage::take(&times.given) else { return };
        let now = clock::monotonic();
        self.told(Upcall::ProcessorAdded, seat, Some(now.saturating_sub(given)));
        if let Some(since) = Shortage::take(&times.since) {
            self.lost().handovers.note(self.has_lost(seat, since, now));
        }
    }

    fn has_lost(&self, seat: usize, since: u64, until: u64) -> u64 {
        let lost = until.saturating_sub(since);
        self.lost().nanos.fetch_add(lost, Ordering::Relaxed);
        if let Some(tracer) = self.tracer() {
            tracer.short(seat, since, lost);
        }
        lost
    }
}
