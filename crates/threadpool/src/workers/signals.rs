//! What others tell one worker: signals, and calls in its mailbox.
//!
//! # Orders
//!
//! Others tell a worker something by a bit in its seat's word, which it looks at between two tasks,
//! while it searches, and while it waits.
//!
//! | order | given by | until |
//! | --- | --- | --- |
//! | mail | a broadcast | the worker empties its box |
//! | leave | a pool that becomes smaller, or is closed | the thread has ended; or the pool becomes larger again before the worker has seen it |
//! | left | the worker itself: it has seen `leave`, which cannot be taken back any more | the seat's next thread is started |
//! | serve | who lends a spare | the spare has seen it |
//! | lent | who has seen the worker blocked (`lookout.rs`) | somebody has seen that it is not any more |
//!
//! # Orderings
//!
//! An order is given with Release and seen with Acquire: who is told to leave because the pool was
//! closed sees that it was, and does not leave as if it had become smaller; a spare that is told to
//! serve rests after it was enlisted. Whoever gives an order tells the worker afterwards, so that
//! its last look before it sleeps sees it.

use machine::atomic::Ordering;

use super::pool_state::Common;
use super::worker::Worker;
use super::worker_info::Mail;
use crate::threads::table::Roster;

/// There is mail for this worker.
pub(crate) const MAIL: u32 = 1;
/// It is to end.
pub(crate) const LEAVE: u32 = 2;
/// It ends: nobody can take `LEAVE` back any more.
pub(crate) const LEFT: u32 = 4;
/// A spare is to take part.
pub(crate) const SERVE: u32 = 8;
/// It was seen blocked, and a spare was lent for it.
pub(crate) const LENT: u32 = 16;

impl Common {
    /// Sends mail to each member that has a thread. `before` is called first, with their number.
    pub(crate) fn send_to_all(&self, before: impl FnOnce(usize), mail: impl Fn() -> Mail) {
        // The members do not change while the mail is sent.
        let roster = self.roster.lock();
        before(roster.present().count());
        for seat in roster.present() {
            self.send(seat, mail());
        }
    }

    /// Puts `mail` into the seat's box and tells its worker.
    pub(crate) fn send(&self, seat: usize, mail: Mail) {
        self.seat(seat).mail.lock().push_back(mail);
        self.order(seat, MAIL);
    }

    /// The seat's thread has ended, and no other one comes: the seat gets no mail from now on, and
    /// what it has got is told so.
    pub(crate) fn abandon(&self, seat: usize) {
        self.roster.lock().abandoned[seat] = true;
        loop {
            let mail = self.seat(seat).mail.lock().pop_front();
            match mail {
                Some(mail) => mail(self, None),
                None => break,
            }
        }
    }

    /// Tells the seat's worker to end.
    pub(crate) fn dismiss(&self, seat: usize) {
        self.order(seat, LEAVE);
    }

    /// Takes back that the seat's worker is to end. False, if it ends already.
    pub(crate) fn retain(&self, seat: usize) -> bool {
        // Relaxed: the roster's lock is held, and `may_leave` decides by the word alone.
        let retained =
            self.seat(seat).orders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |orders| {
                (orders & LEFT == 0).then_some(orders & !LEAVE)
            });
        retained.is_ok()
    }

    /// Whether the worker, which has seen that it is to end, does. Not while it has mail: that was
    /// sent to a member, perhaps since it looked.
    pub(crate) fn may_leave(&self, worker: &Worker) -> bool {
        // Relaxed: as in `retain`.
        let left = self.seat(worker.index()).orders.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |orders| (orders & (LEAVE | MAIL) == LEAVE).then_some(orders | LEFT),
        );
        left.is_ok()
    }

    /// Clears what the last thread of this seat was told, for the next, or for itself if it begins
    /// again. The roster's lock is held.
    pub(crate) fn reset(&self, seat: usize) {
        // Relaxed: the last thread is through, and the next is not started. Mail stays: it is for
        // the seat.
        self.seat(seat).orders.fetch_and(MAIL, Ordering::Relaxed);
    }

    /// Whether the seat's thread has left, and its seat is a member's again, or was for long enough
    /// to get mail. The roster's lock is held.
    pub(crate) fn is_wanted_again(&self, roster: &Roster, seat: usize) -> bool {
        // Relaxed: whoever refused to take `LEAVE` back, or sent mail, had the lock.
        let orders = self.seat(seat).orders.load(Ordering::Relaxed);
        orders & LEFT != 0 && (seat < roster.target || orders & MAIL != 0)
    }

    pub(crate) fn order(&self, seat: usize, order: u32) {
        // Release: pairs with the Acquire of `orders`.
        self.seat(seat).orders.fetch_or(order, Ordering::Release);
        self.sleeping.tell_only(seat);
    }

    pub(crate) fn orders(&self, worker: &Worker) -> u32 {
        // Acquire: pairs with the Release of `order`.
        self.seat(worker.index()).orders.load(Ordering::Acquire)
    }

    pub(crate) fn has_mail(&self, worker: &Worker) -> bool {
        self.orders(worker) & MAIL != 0
    }

    /// Runs what is meant for this worker only.
    #[inline]
    pub(crate) fn run_mail(&self, worker: &Worker) {
        let orders = self.orders(worker);
        if orders & LENT != 0 {
            self.come_back(worker.index());
        }
        if orders & MAIL != 0 {
            self.run_mail_now(worker);
        }
    }

    #[cold]
    fn run_mail_now(&self, worker: &Worker) {
        let seat = self.seat(worker.index());
        // Before the box is emptied, so that what comes later is not forgotten. Relaxed: the box
        // has a lock.
        seat.orders.fetch_and(!MAIL, Ordering::Relaxed);
        loop {
            let mail = seat.mail.lock().pop_front();
            match mail {
                Some(mail) => mail(self, Some(worker)),
                None => break,
            }
        }
    }
}
