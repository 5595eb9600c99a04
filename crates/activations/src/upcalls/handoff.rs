//! Taking the seat of a carrier that is stuck in the kernel, and giving it to one that can use it.
//!
//! Whoever looks at a seat sees with a few loads whether its holder is on a processor. If it is
//! blocked, in the middle of a thread, and has been for as long as the runtime's
//! [patience](crate::patience) lasts, and something is ready that it keeps from running, and fewer
//! carriers can run than there are processors, then its seat goes to the carrier that has wanted
//! one longest, else to a spare, else to a new one.
//!
//! Why not at once: a page fault that finds its page, or a short sleep, is over sooner than another
//! kernel thread has woken up, and then two share the processor. Why only if something is ready: a
//! seat is of no use to who has nothing to do. Why only if a processor would be idle: where
//! carriers of the surplus run (`surplus.rs`), one that blocks leaves its processor to one of them.
//!
//! ```text
//!              Blocked, first seen          patience ends, something ready, confirmed
//! holder runs ────────────────────► noted ───────────────────────────────────────────► taken (standing: USER to LOST)
//!      ▲                              │                                                     │ wanting, spare or new carrier
//!      └──────── runs again ──────────┘                                                     ▼
//!                                                    its old holder comes back: LOST, so it rests or wants a seat
//! ```
//!
//! A stop, by a debugger or SIGSTOP, reads as a block of every carrier; so what the records say is
//! confirmed by the kernel's own state of the thread before a seat is taken
//! ([`presence::examine`]).
//!
//! # Invariants
//!
//! 1. Who has taken a seat gives it to a carrier, or leaves it vacant for the next that rests
//!    (`reserve.rs`). No seat is lost.
//!
//! Since when it has been blocked, and that this was told, is noted with the carrier (`note.rs`).

use std::sync::Arc;

use machine::clock;
use machine::presence::{self, Presence};
use machine::stack::half_of_address_space_is_used;

use crate::processors::worker_record::Carrier;
use crate::detection::observed::{Noted, Seen};
use crate::detection::handoff_delay::LEAST_NS;
use crate::runtime::state::Shared;
use crate::stats::upcalls::Upcall;

/// When one that is off its processor, and not blocked, is looked at again.
const AGAIN_NS: u64 = 1_000_000;

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
    /// Its holder is blocked, and nothing is ready that it keeps from running.
    Unneeded,
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
        let noted = self.carrier(holder).note().read();
        match Seen::of(self.carrier(holder).presence()) {
            Seen::Runs => self.runs(seat, holder, noted),
            seen => self.look_closely(seat, holder, (noted, seen), looks),
        }
    }

    /// The same where the kernel does not record switches: some microseconds.
    pub(crate) fn examine(self: &Arc<Self>, seat: usize) -> Found {
        let holder = self.seat(seat).holder();
        let noted = self.carrier(holder).note().read();
        if self.carrier(holder).seen_as().map(presence::examine) == Some(Presence::Blocked) {
            return self.look_closely(seat, holder, (noted, Seen::Blocked), Looks::Blindly);
        }
        self.runs(seat, holder, noted)
    }

    /// The holder of that seat runs, of whom that was noted.
    #[inline]
    fn runs(&self, seat: usize, holder: usize, noted: Noted) -> Found {
        if noted.seen() != Seen::Runs {
            self.is_seen(seat, holder, (noted, Seen::Runs));
        }
        Found::Fine
    }

    /// The calling carrier runs, on its seat or having lost that.
    #[inline]
    pub(crate) fn runs_here(&self, carrier: usize) {
        self.runs(self.carrier(carrier).seat(), carrier, self.carrier(carrier).note().read());
    }

    /// The holder of that seat is not any more as was noted: whoever finds that first tells what it
    /// means.
    #[cold]
    fn is_seen(&self, seat: usize, holder: usize, (noted, seen): (Noted, Seen)) {
        let carrier = self.carrier(holder);
        let at = carrier.switched_at();
        // If that is still the last switch.
        let at = at.filter(|_| Seen::of(carrier.presence()) == seen);
        if !carrier.note().see(noted, seen, clock::now()) {
            return;
        }
        if noted.seen() == Seen::Blocked {
            carrier.ends_unreplaced_block();
        }
        for &upcall in noted.tells(seen) {
            // One that has been preempted since it was back was switched in before that.
            let known = upcall != Upcall::Unblocked || seen == Seen::Runs;
            let at = at.filter(|_| known);
            self.told(upcall, seat, at.map(|at| clock::monotonic().saturating_sub(at)));
        }
        if noted.seen() == Seen::Blocked && self.seat(seat).holder() == holder {
            self.is_not_short(seat);
        }
    }

    #[cold]
    fn look_closely(
        self: &Arc<Self>,
        seat: usize,
        holder: usize,
        (noted, seen): (Noted, Seen),
        looks: Looks,
    ) -> Found {
        let carrier = self.carrier(holder);
        if !carrier.standing().is_in_thread() {
            return Found::Fine;
        }
        if noted.seen() != seen {
            self.is_seen(seat, holder, (noted, seen));
        }
        let idles = || looks == Looks::Blindly || self.leaves_processor_idle(seat);
        let is_needed = self.has_work();
        if seen == Seen::Preempted || !is_needed || !idles() {
            self.is_not_short(seat);
            let unneeded = seen == Seen::Blocked && !is_needed;
            return if unneeded { Found::Unneeded } else { Found::Fine };
        }
        self.is_short(seat);
        let noted = carrier.note().read();
        if noted.seen() != seen {
            // It is back.
            return Found::Fine;
        }
        let waited = clock::now().nanos_since(noted.since());
        let patience = match looks {
            // The block has lasted for as long as it took to wake the lookout.
            Looks::Woken => self.patience().nanos(),
            Looks::Passing | Looks::Blindly => self.patience().nanos().max(LEAST_NS),
        };
        if waited < patience {
            return Found::Blocked(patience - waited);
        }
        // Asked again a while later, not at each look.
        if !self.can_replace() {
            if carrier.begins_unreplaced_block() {
                self.counters().unreplaced.raise();
            }
            carrier.note().see(noted, Seen::Blocked, clock::now());
            return Found::Fine;
        }
        let state = carrier.seen_as().map(presence::examine);
        if state != Some(Presence::Blocked) {
            // On its way back, or stopped.
            carrier.note().see(noted, Seen::Blocked, clock::now());
            return Found::Blocked(AGAIN_NS);
        }
        carrier.kind().has_blocked();
        self.surplus().allow(usize::MAX);
        if self.take_seat(seat, holder) { Found::Taken } else { Found::Fine }
    }

    /// Whether a processor would be idle because the holder of that seat is blocked.
    fn leaves_processor_idle(&self, seat: usize) -> bool {
        // Without more seats than processors each that is blocked leaves one.
        let its_own = seat < self.demand().allowed() && !self.surplus().is_open();
        its_own || self.lacks_runners()
    }

    /// Whether a processor would be idle for want of a carrier that can run: those that have been
    /// given a seat are about to.
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

    /// Takes this seat of a carrier that runs a thread there, and gives it to another; whether it
    /// was there to be taken.
    pub(crate) fn take_seat(self: &Arc<Self>, seat: usize, holder: usize) -> bool {
        let carrier = self.carrier(holder);
        // Before the exchange: one that is back at once asks when it was.
        carrier.loses_seat(clock::now());
        if !carrier.standing().take(seat) {
            return false;
        }
        self.seat(seat).set_turns(self.seat(seat).turns().saturating_add(1));
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
            Ok(None) | Err(_) => match self.reserve().vacate(seat) {
                Some(to) => self.seat_carrier(seat, to),
                None => self.counters().unreplaced.raise(),
            },
        }
    }

    /// A carrier without a seat and without guests, which is the caller's to seat; a new one, if
    /// all others have either.
    pub(crate) fn free_carrier(self: &Arc<Self>) -> Option<usize> {
        self.reserve().take_free().or_else(|| {
            // Where address space is short it is for stacks, and for the program. If the system
            // refuses a kernel thread, those that are there have to do.
            let is_short = self.is_full() || half_of_address_space_is_used();
            if is_short { None } else { self.start_carrier().ok().flatten() }
        })
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

    /// Whether something is ready that another carrier than the one that it is ready at could run,
    /// or a time has come for which somebody waits.
    pub(crate) fn has_work(&self) -> bool {
        self.reserve().waiting() > 0
            || self.ready_queue().len() > 0
            || self.unusual().any()
            || self.is_time()
    }
}
