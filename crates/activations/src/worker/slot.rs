//! How a carrier comes by a seat, and how it gives it up: to one that wants it, because it is going
//! to block, or because there are too many.
//!
//! Who has been without one does not go on before [`await_seat`](Local::await_seat) has returned.

use machine::clock;
use machine::topology;
use stanchion_threadpool::Told;

use crate::processors::idle_workers::Rest;
use crate::processors::ownership::Called;
use crate::thread::header::Thread;

use super::scheduler_loop::{Local, SHARE};

impl Local {
    /// It is about to block: gives its seat to somebody who has something to do, if there is such
    /// work, or if nobody would notice when there is.
    pub(crate) fn gives_way(&self) {
        let shared = &self.shared;
        self.will_block();
        if (shared.has_work() || !shared.activations()) && shared.can_replace() {
            shared.take_seat(self.carrier().seat(), self.index);
        }
    }

    /// Whether its seat is one of those that the runtime uses; if not it is closed, and the carrier
    /// has none.
    #[inline]
    pub(super) fn stays_open(&self, looks: u32) -> bool {
        let (shared, seat) = (&self.shared, self.carrier().seat());
        if shared.surplus().has(seat) {
            return !shared.surplus().has_too_many() || !self.close_one_too_many(seat);
        }
        if shared.demand().poll(looks.is_multiple_of(SHARE)) {
            shared.open_seats();
        }
        seat < shared.demand().allowed() || !self.close_seat(seat)
    }

    /// It gives up its seat, or has slept on it: what is ready there is for others from now on.
    /// Whom to tell.
    pub(super) fn leave_place(&self) -> Option<Told> {
        self.shared.is_not_short(self.carrier().seat());
        self.with_hold(|hold| hold.and_then(|hold| self.shared.ready_queue().leave(&hold.place)))
    }

    /// Its seat is one of the surplus: closes it, if there are too many.
    #[cold]
    fn close_one_too_many(&self, seat: usize) -> bool {
        let told = self.leave_place();
        let closed = self.shared.surplus().close_one_too_many(seat);
        if closed {
            self.has_seat.set(false);
        }
        if let Some(told) = told {
            self.shared.tell(told);
        }
        closed
    }

    #[cold]
    fn close_seat(&self, seat: usize) -> bool {
        self.unwatch();
        let shared = &self.shared;
        let told = self.leave_place();
        let closed = shared.reserve().close(seat, || seat < shared.demand().allowed());
        if closed {
            self.has_seat.set(false);
            shared.demand().closed(true);
        }
        // Somebody else has to do what this one was told of.
        shared.tell(told.unwrap_or(Told::Anyone(1)));
        closed
    }

    /// Gives the seat away to a carrier that wants one; whether there was one.
    pub(super) fn give_seat(&self) -> bool {
        self.unwatch();
        let seat = self.carrier().seat();
        self.shared.is_not_short(seat);
        self.leave_turns();
        let given = self.shared.reserve().give(false, |to| self.shared.seat_carrier(seat, to));
        if given {
            self.has_seat.set(false);
        }
        given
    }

    /// Leaves its seat, with a thread that may run on any carrier, to one without guests. Gives the
    /// thread back if there is none.
    #[cold]
    pub(super) fn send_on(&self, thread: Thread) -> Option<Thread> {
        let shared = &self.shared;
        let Some(to) = shared.free_carrier() else { return Some(thread) };
        self.unwatch();
        let seat = self.carrier().seat();
        shared.is_not_short(seat);
        self.leave_turns();
        shared.carrier(to).mail(thread);
        self.has_seat.set(false);
        shared.seat_carrier(seat, to);
        None
    }

    /// It has no seat: waits until it is given one. `false` if the runtime ends.
    pub(super) fn await_seat(&self) -> bool {
        if self.carrier().has_mail() {
            self.read_mail();
        }
        let wants = self.bound.borrow().highest();
        let shared = &self.shared;
        let goes_on = self.count_return()
            && (wants.is_some() || shared.has_work())
            && shared.has_idle_processor();
        let rest = match goes_on.then(|| shared.surplus().open()).flatten() {
            Some(seat) => {
                shared.counters().surplus.raise();
                Rest::Seat(seat)
            }
            None => {
                self.pinned.take();
                shared.reserve().rest(self.index, self.carrier(), wants, self.guests.has_any())
            }
        };
        match rest {
            Rest::Seat(seat) => self.shared.seat_carrier(seat, self.index),
            Rest::Wanting => self.shared.tell(Told::Anyone(1)),
            Rest::Spare => {
                self.shared.end_if_done();
            }
        }
        // Its sleep is nothing that the lookout need be told of.
        shared.lookout().pause(self.carrier());
        if self.carrier().standing().sleep() == Called::End {
            return false;
        }
        self.settle();
        true
    }

    /// It has come back to find its seat taken, or has given it away itself: whether it is the
    /// former.
    fn count_return(&self) -> bool {
        let carrier = self.carrier();
        let was_taken = carrier.standing().is_lost();
        if was_taken {
            self.shared.runs_here(self.index);
            if self.shared.patience().learn(clock::now().nanos_since(carrier.lost_at())) {
                self.shared.counters().false_handovers.raise();
            }
        }
        was_taken
    }

    /// It has been given a seat.
    pub(super) fn settle(&self) {
        self.has_seat.set(true);
        self.begin_turns();
        self.shared.lookout().begin(self.carrier());
        let seat = self.carrier().seat();
        self.shared.is_seated(seat);
        if let Some(processor) = self.shared.processor_of(seat) {
            let mut pinned = self.pinned.borrow_mut();
            if pinned.as_ref().is_none_or(|&(on, _)| on != processor) {
                // The old one first: guards are dropped in reverse order of their making.
                drop(pinned.take());
                *pinned = topology::pin(processor).ok().map(|pin| (processor, pin));
            }
        }
    }
}
