//! Spare threads: lent for workers that block, and put to rest.

use std::io;

use machine::atomic::Ordering;

use super::Registry;
use crate::strategy::Strategy;
use crate::threads::table::Roster;
use crate::workers::signals::SERVE;
use crate::workers::worker::Worker;

impl<S: Strategy> Registry<S> {
    /// Has a spare serve for each lease, as far as there are spares. Says whether all leases are
    /// met.
    pub(crate) fn lend_spare(&self) -> bool {
        self.lend_spare_if(|_| true)
    }

    /// The same for one more lease, if `may` says so under the roster's lock. Says whether all
    /// leases are met.
    pub(crate) fn lend_spare_if(&self, may: impl FnOnce(&Roster) -> bool) -> bool {
        let common = &self.common;
        let mut named: Option<(usize, io::Result<Option<String>>)> = None;
        let mut roster = common.roster.lock();
        if !may(&roster) {
            return false;
        }
        roster.leases += 1;
        while roster.serving < roster.leases {
            if let Some(seat) = roster.idle_spares.pop_front() {
                common.closing.enlist();
                common.order(seat, SERVE);
            } else {
                let seat = roster.regular + roster.spares;
                if seat == common.seats() {
                    break;
                }
                let Some((_, name)) = named.take_if(|(whose, _)| *whose == seat) else {
                    drop(roster);
                    named = Some((seat, common.name(seat)));
                    roster = common.roster.lock();
                    continue;
                };
                if name.and_then(|name| self.hire(&mut roster, seat, name)).is_err() {
                    break;
                }
                roster.spares += 1;
            }
            roster.serving += 1;
        }
        common.note_surplus(&roster);
        roster.serving >= roster.leases
    }

    /// Whether a spare that serves is one too many; it does not serve any more then, and may be
    /// told at once to do so again.
    pub(super) fn retires(&self, worker: &Worker) -> bool {
        let mut roster = self.common.roster.lock();
        // Whoever lends from now on sees that it does not serve.
        self.common.settle(&mut roster, worker.index());
        let retires = roster.serving > roster.leases;
        if retires {
            roster.serving -= 1;
            roster.idle_spares.push_back(worker.index());
            self.common.note_surplus(&roster);
        }
        retires
    }

    /// A spare, which [retires](Self::retires), sleeps until it is to serve again. False, if it is
    /// to end: that is when all is over, because a task of a closed pool may block as well.
    pub(super) fn rest(&self, worker: &Worker) -> bool {
        let common = &self.common;
        // Relaxed: a hint.
        common.members.fetch_sub(1, Ordering::Relaxed);
        let _away = common.away(worker);
        if self.release(worker.place()) {
            // This one, if there is no other.
            self.lend_spare();
        }
        let serves = || common.orders(worker) & SERVE != 0;
        let stays = || !serves() && !common.closing.is_over();
        while stays() {
            common.sleeping.sleep_apart(worker.index(), stays);
        }
        let serves = serves();
        // Relaxed: given under the roster's lock, once for each time it lay idle.
        common.seat(worker.index()).orders.fetch_and(!SERVE, Ordering::Relaxed);
        // Relaxed: a hint.
        common.members.fetch_add(1, Ordering::Relaxed);
        serves
    }
}
