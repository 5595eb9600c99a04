//! Spare threads that were lent for a worker that was seen blocked, and their return.

use machine::atomic::Ordering;
use machine::presence::{self, Presence};

use super::monitor::{BRIEF_US, Lookout};
use super::pool_state::Common;
use super::signals::LENT;
use super::worker_info::{Seat, UNSEEN};
use crate::threads::table::Roster;

impl Common {
    /// A worker that was compensated works again: the lease ends. Whoever sees it first does it.
    #[cold]
    pub(crate) fn come_back(&self, seat: usize) {
        let mut roster = self.roster.lock();
        self.settle(&mut roster, seat);
    }

    /// The same, with the roster's lock held; Invariant 1.
    pub(crate) fn settle(&self, roster: &mut Roster, seat: usize) {
        let Some(lookout) = &self.lookout else { return };
        let one = self.seat(seat);
        // Relaxed: the roster's lock is held.
        if one.orders.fetch_and(!LENT, Ordering::Relaxed) & LENT == 0 {
            return;
        }
        roster.leases -= 1;
        self.note_surplus(roster);
        // Relaxed: statistics.
        let lent = one.suspicion.lent.load(Ordering::Relaxed);
        if lookout.micros().wrapping_sub(lent) < BRIEF_US {
            lookout.brief.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the thread of a seat that can be seen is blocked in a task. `closely`, where records
    /// are refused: by the process table.
    pub(crate) fn is_blocked(&self, seat: &Seat, closely: bool) -> bool {
        // Relaxed: hints.
        let number = seat.presence.load(Ordering::Relaxed);
        if number == 0 || number == UNSEEN || seat.suspicion.away.load(Ordering::Relaxed) != 0 {
            return false;
        }
        match presence::of(number - 1) {
            Presence::Unknown => closely && presence::examine(number - 1) == Presence::Blocked,
            seen => seen == Presence::Blocked,
        }
    }
}

impl Lookout {
    /// Whether the records do not tell of the seat's thread.
    pub(crate) fn is_blind(&self, seat: &Seat) -> bool {
        // Relaxed: a hint.
        let number = seat.presence.load(Ordering::Relaxed);
        self.watch.refused().is_some()
            || number == UNSEEN
            || presence::of(number.wrapping_sub(1)) == Presence::Unknown
    }
}
