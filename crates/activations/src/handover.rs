//! Taking the seat of a carrier that is stuck in the kernel, and giving it to one that can use it.
//!
//! Whoever looks at a seat sees with a few loads whether its holder is on a processor. If it is blocked, in the middle of a thread, and has been for
//! as long as the runtime's [patience](crate::patience) lasts, and something is ready that it keeps from running, and fewer carriers can run than there are
//! processors, then its seat goes to the carrier that has wanted one longest, else to a spare, else to a new one.
//!
//! Why not at once: a page fault that finds its page, or a short sleep, is over sooner than another kernel thread has woken up, and then two share the
//! processor. Why only if something is ready: a seat is of no use to who has nothing to do. Why only if a processor would be idle: where carriers of the
//! surplus run (`surplus.rs`), one that blocks leaves its processor to one of them.
//!
//! ```text
//!              Blocked, first seen          patience ends, something ready, confirmed
//! holder runs ────────────────────► noted ───────────────────────────────────────────► taken (standing: USER to LOST)
//!      ▲                              │                                                     │ wanting, spare or new carrier
//!      └──────── runs again ──────────┘                                                     ▼
//!                                                    its old holder comes back: LOST, so it rests or wants a seat
//! ```
//!
//! A stop, by a debugger or SIGSTOP, reads as a block of every carrier; so what the records say is confirmed by the kernel's own state of the thread
//! before a seat is taken ([`presence::examine`]).
//!
//! # Invariants
//!
//! 1. Who has taken a seat gives it to a carrier, or leaves it vacant for the next that rests (`reserve.rs`). No seat is lost.
//!
//! # Orderings
//!
//! Notes are Relaxed: they say when something was first seen, and a wrong one costs a hand-over too early or too late.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::{self, Ticks};
use machine::presence::{self, Presence};

use crate::carrier::Carrier;
use crate::patience::LEAST_NS;
use crate::shared::Shared;
use crate::upcall::Upcall;

/// When one that is off its processor, and not blocked, is looked at again.
const AGAIN_NS: u64 = 1_000_000;

/// Since when a seat's holder has been seen off its processor.
pub(crate) struct Note(CachePadded<AtomicU64>);

/// No note: the clock does not stand there but for one tick in 584 years.
const NOTHING: u64 = 0;

/// The lowest bit says what was seen: such ticks are as good as their neighbours.
const PREEMPTED: u64 = 1;

impl Note {
    pub(crate) fn new() -> Self {
        Self(CachePadded::new(AtomicU64::fresh(NOTHING)))
    }

    /// It runs; whether a block had been noted.
    fn clear(&self) -> bool {
        let noted = self.0.load(Ordering::Relaxed);
        if noted != NOTHING {
            self.0.store(NOTHING, Ordering::Relaxed);
        }
        noted != NOTHING && noted & PREEMPTED == 0
    }

    /// It is off its processor, for that reason: since when that is known, and whether it is new.
    fn make(&self, preempted: bool, now: Ticks) -> (Ticks, bool) {
        let noted = self.0.load(Ordering::Relaxed);
        if noted != NOTHING && (noted & PREEMPTED != 0) == preempted {
            return (Ticks::from_bits(noted), false);
        }
        let bits = now.to_bits() & !PREEMPTED | u64::from(preempted);
        self.0.store(bits, Ordering::Relaxed);
        (Ticks::from_bits(bits), true)
    }

    /// It is blocked still, as has been told; and counts as if it were only from now on.
    fn begin_again(&self, now: Ticks) {
        self.0.store(now.to_bits() & !PREEMPTED, Ordering::Relaxed);
    }
}

/// Who looks at a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// A carrier, at a scheduling point.
    Passing,
    /// The lookout, whom a switch has woken, or its clock.
    Woken,
    /// The lookout, where the kernel does not record switches.
    Blindly,
}

/// What a look at a seat has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing to be done.
    Fine,
    /// Its holder is blocked, and its seat will be taken if it still is after so many nanoseconds.
    Blocked(u64),
    /// Its seat was taken.
    Taken,
}

impl Shared {
    /// Looks where the holder of a seat is, and takes the seat if that is stuck.
    #[inline]
    pub(crate) fn look_at(self: &Arc<Self>, seat: usize, looks: Looks) -> Found {
        let holder = self.seat(seat).holder();
        match self.carrier(holder).presence() {
            Presence::Running | Presence::Unknown => {
                if self.note(seat).clear() {
                    self.told_of(Upcall::Unblocked, seat, self.carrier(holder));
                    self.is_not_short(seat);
                }
                Found::Fine
            }
            off => self.look_closely(seat, holder, off == Presence::Preempted, looks),
        }
    }

    /// The same where the kernel does not record switches: some microseconds.
    pub(crate) fn examine(self: &Arc<Self>, seat: usize) -> Found {
        let holder = self.seat(seat).holder();
        match self.carrier(holder).seen_as().map(presence::examine) {
            Some(Presence::Blocked) => self.look_closely(seat, holder, false, Looks::Blindly),
            _ => {
                if self.note(seat).clear() {
                    self.is_not_short(seat);
                }
                Found::Fine
            }
        }
    }

    #[cold]
    fn look_closely(
        self: &Arc<Self>,
        seat: usize,
        holder: usize,
        preempted: bool,
        looks: Looks,
    ) -> Found {
        let carrier = self.carrier(holder);
        if !carrier.standing().is_in_thread() {
            return Found::Fine;
        }
        let now = clock::now();
        let (since, new) = self.note(seat).make(preempted, now);
        if new {
            let upcall = if preempted { Upcall::Preempted } else { Upcall::Blocked };
            self.told_of(upcall, seat, carrier);
        }
        let idles = || looks == Looks::Blindly || self.leaves_processor_idle(seat);
        if preempted || !self.has_work() || !idles() {
            self.is_not_short(seat);
            return Found::Fine;
        }
        self.is_short(seat);
        let waited = now.nanos_since(since);
        let patience = match looks {
            // The block has lasted for as long as it took to wake the lookout.
            Looks::Woken => self.patience().nanos(),
            Looks::Passing | Looks::Blindly => self.patience().nanos().max(LEAST_NS),
        };
        if waited < patience {
            return Found::Blocked(patience - waited);
        }
        if !self.can_replace() {
            self.counters().vain.raise();
            self.note(seat).begin_again(now);
            return Found::Fine;
        }
        let state = carrier.seen_as().map(presence::examine);
        if state != Some(Presence::Blocked) {
            // On its way back, or stopped. Asked again a while later, not at each look.
            self.note(seat).begin_again(now);
            return Found::Blocked(AGAIN_NS);
        }
        self.surplus().allow(usize::MAX);
        if self.take_seat(seat, holder) { Found::Taken } else { Found::Fine }
    }

    /// Whether a processor would be idle because the holder of that seat is blocked.
    fn leaves_processor_idle(&self, seat: usize) -> bool {
        // Without more seats than processors each that is blocked leaves one.
        let its_own = seat < self.demand().allowed() && !self.surplus().is_open();
        its_own || self.lacks_runners()
    }

    /// Whether a processor would be idle for want of a carrier that can run: those that have been given a seat are about to.
    pub(crate) fn lacks_runners(&self) -> bool {
        let runs = |carrier: &Carrier| {
            carrier.presence() != Presence::Blocked || !carrier.standing().is_in_thread()
        };
        self.count_carriers(runs) < self.demand().allowed()
    }

    /// Whether a processor is idle, as far as this runtime goes.
    pub(crate) fn has_idle_processor(&self) -> bool {
        self.count_carriers(|carrier| carrier.presence() != Presence::Blocked)
            < self.demand().allowed()
    }

    /// How many of those that have seats.
    pub(crate) fn count_carriers(&self, which: impl Fn(&Carrier) -> bool) -> usize {
        self.seats_in_use().filter(|&seat| which(self.carrier(self.seat(seat).holder()))).count()
    }

    /// Takes this seat of a carrier that runs a thread there, and gives it to another; whether it was there to be taken.
    pub(crate) fn take_seat(self: &Arc<Self>, seat: usize, holder: usize) -> bool {
        let carrier = self.carrier(holder);
        if !carrier.standing().take(seat) {
            return false;
        }
        carrier.lost_seat(clock::now());
        self.note(seat).clear();
        self.counters().handovers.raise();
        if self.has_work() {
            // Also one that has said beforehand that it will block.
            self.is_short(seat);
        }
        self.give_to_another(seat);
        true
    }

    /// Gives a seat that the caller has taken to whoever can use it.
    pub(crate) fn give_to_another(self: &Arc<Self>, seat: usize) {
        if self.reserve().give(true, |to| self.seat_carrier(seat, to)) {
            return;
        }
        // A new one; nobody else knows it yet.
        match self.start_carrier() {
            Ok(Some(to)) => self.seat_carrier(seat, to),
            Ok(None) | Err(_) => {
                self.counters().vain.raise();
                if let Some(to) = self.reserve().vacate(seat) {
                    self.seat_carrier(seat, to);
                }
            }
        }
    }

    /// Gives a seat to a carrier that has none.
    pub(crate) fn seat_carrier(&self, seat: usize, to: usize) {
        self.seat(seat).hand_to(to);
        self.is_given(seat);
        self.carrier(to).take_seat(seat);
    }

    /// Opens what is allowed and closed.
    #[cold]
    pub(crate) fn open_seats(self: &Arc<Self>) {
        while let Some(seat) = self.reserve().open(self.demand().allowed()) {
            self.demand().closed(false);
            self.give_to_another(seat);
        }
    }

    /// Whether something is ready that another carrier than the one that it is ready at could run, or a time has come for which somebody waits.
    pub(crate) fn has_work(&self) -> bool {
        self.reserve().waiting() > 0
            || self.ready_queue().len() > 0
            || self.unusual().any()
            || self.is_time()
    }
}
