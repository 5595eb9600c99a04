//! How a pool is closed, finds out that all is over, and is waited for.

use super::Registry;
use crate::shutdown::termination;
use crate::sleep::MOST_WORKERS;
use crate::strategy::{Place, Strategy};
use crate::workers::core::Core;
use crate::workers::job;
use crate::workers::pool_state::Fate;
use crate::workers::worker::Worker;

/// How often who takes out the last tasks looks in vain for one that is said to be there:
/// strategies leave a place's only task to its owner for some looks.
const LAST_LOOKS: u32 = 16;

const _: () = assert!(2 * MOST_WORKERS <= termination::COUNT, "see `termination.rs`");

impl<S: Strategy> Registry<S> {
    /// Tells all threads to end when they find nothing more, and nobody to begin.
    pub(crate) fn close(&self) {
        let mut roster = self.common.roster.lock();
        roster.closed = true;
        // Who has left, and was wanted again before this, takes part: two tasks may need as many
        // threads.
        for seat in 0..roster.handles.len() {
            if roster.handles[seat].is_some() && self.common.is_wanted_again(&roster, seat) {
                self.common.closing.enlist();
                roster.again[seat] = true;
            }
        }
        // Before anybody is told to leave by it: who sees that sees this.
        self.common.closing.close();
        for seat in 0..self.common.seats() {
            if roster.handles[seat].is_some() {
                self.common.dismiss(seat);
            }
        }
    }

    /// Waits until all threads have ended, apart from the calling one.
    pub(crate) fn join_all(&self) {
        // A guest has worked until all is over.
        let is_mine = |worker: &&Worker| {
            worker.belongs_to(&self.common) && !self.common.is_guest(worker.index())
        };
        let mine = Worker::with_current(|current| current.filter(is_mine).map(Worker::index));
        let _away = mine.and_then(|seat| self.common.seat_away(seat));
        let lent = Worker::with_current(|current| {
            current.filter(is_mine).map(|worker| self.rest_in_shutdown(worker.place()))
        });
        for seat in 0..self.common.seats() {
            let itself = Worker::with_current(|current| {
                current
                    .is_some_and(|worker| worker.belongs_to(&self.common) && worker.index() == seat)
            });
            let (handle, past) = {
                let mut roster = self.common.roster.lock();
                let handle = if itself { None } else { roster.handles[seat].take() };
                (handle, roster.past[seat].take())
            };
            for thread in [past, handle].into_iter().flatten() {
                thread.join();
            }
        }
        if lent == Some(true) {
            // The lease alone: all spares have ended.
            self.common.roster.lock().leases -= 1;
        }
        if lent.is_some() {
            self.common.closing.go_on();
        } else if let Some(lookout) = &self.common.lookout
            && !self.common.behaviour.guest
        {
            // It ends after the last worker; one that calls this is still there, and so is a guest.
            lookout.join();
        }
    }

    /// A task of the pool waits for its end: the thread rests. Says whether it has lent a spare for
    /// what is ready.
    pub(super) fn rest_in_shutdown(&self, place: &Place) -> bool {
        let closing = &self.common.closing;
        let mut lent = false;
        loop {
            // Somebody runs what is ready, if the pool has no other thread.
            if !lent && self.strategy.is_ready(place) {
                lent = true;
                self.lend_spare();
            }
            closing.rest();
            let Some(rested) = closing.all_rest() else { return lent };
            let ready = self.strategy.is_ready(place);
            if ready && !lent {
                closing.go_on();
                continue;
            }
            // There may be nobody else who would say so: only spares that are not needed. If
            // somebody has gone on meanwhile, he looks afterwards.
            if !ready {
                closing.declare(rested);
            }
            // It is over, or what was ready may have been run meanwhile: those who rest look again.
            self.common.sleeping.tell_all();
            return lent;
        }
    }

    /// Takes out what is ready after the last thread has left, and drops it.
    #[cold]
    pub(super) fn take_out(&self) {
        let core: &dyn Core = self;
        // SAFETY: all threads have left their seats, and `Ending` lets one in at a time. `self` is
        // borrowed for longer.
        let worker = unsafe { self.common.seat(0).begin_worker(core) };
        let place = worker.place();
        let mut in_vain = 0;
        while in_vain < LAST_LOOKS {
            match self.strategy.next(place, None, &mut None) {
                Some(task) => {
                    // SAFETY: out of the strategy, so filled and not run yet.
                    let block = unsafe { job::run(task, worker, Fate::Dropped) };
                    self.strategy.release(Some(place), block);
                    in_vain = 0;
                }
                None if self.strategy.is_ready(place) => in_vain += 1,
                None => break,
            }
        }
    }

    /// A worker of a closed pool has found nothing: it waits until there is something, or all is
    /// over. Says which.
    pub(super) fn is_over(&self, worker: &Worker) -> bool {
        let (common, place) = (&self.common, worker.place());
        let _away = common.away(worker);
        common.closing.rest();
        common.sleeping.begin();
        let more =
            || self.strategy.is_ready(place) || common.has_mail(worker) || common.has_forks();
        let changed = || more() || common.closing.all_rest().is_some();
        let over = loop {
            // Both, in this order: what was made ready before all rested is seen.
            let rested = common.closing.all_rest();
            if more() {
                common.closing.go_on();
                break false;
            }
            match rested {
                Some(rested) if common.closing.declare(rested) => {
                    // Spares that are not needed as well.
                    common.sleeping.tell_all();
                    break true;
                }
                // Somebody has gone on since: there was something.
                Some(_) => {}
                None if common.spin_until(changed) => {}
                None => {
                    common.sleeping.sleep(place.index(), None, |_| changed());
                }
            }
        };
        common.sleeping.found(|| self.has_ready());
        over
    }

    /// The calling worker does not take part any more. If the pool is closed it may have been the
    /// last that was busy, and those who rest may all be such as look for nothing: they wait in
    /// `shutdown`. Then it says so itself that all is over; or, with true, that something is ready.
    pub(super) fn release(&self, place: &Place) -> bool {
        let closing = &self.common.closing;
        if !closing.release() {
            return false;
        }
        let rested = closing.all_rest();
        let ready = self.strategy.is_ready(place);
        if let Some(rested) = rested
            && !ready
        {
            closing.declare(rested);
        }
        self.common.sleeping.tell_all();
        ready && rested.is_some()
    }
}
