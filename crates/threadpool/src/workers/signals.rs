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

use super::pool_state::PoolState;
use super::worker::Worker;
use super::worker_info::Call;
use crate::threads::table::ThreadTable;

/// There is mail for this worker.
pub(crate) const CALLS: u32 = 1;
/// It is to end.
pub(crate) const STOP: u32 = 2;
/// It ends: nobody can take `STOP` back any more.
pub(crate) const STOPPED: u32 = 4;
/// A spare is to take part.
pub(crate) const START: u32 = 8;
/// It was seen blocked, and a spare was lent for it.
pub(crate) const COMPENSATED: u32 = 16;

impl PoolState {
    /// Sends mail to each member that has a thread. `before` is called first, with their number.
    pub(crate) fn call_all(&self, before: impl FnOnce(usize), call: impl Fn() -> Call) {
        // The members do not change while the mail is sent.
        let table = self.threads.lock();
        before(table.present_members().count());
        for slot in table.present_members() {
            self.send_call(slot, call());
        }
    }

    /// Puts `mail` into the seat's box and tells its worker.
    pub(crate) fn send_call(&self, slot: usize, call: Call) {
        self.info(slot).mailbox.lock().push_back(call);
        self.signal(slot, CALLS);
    }

    /// The seat's thread has ended, and no other one comes: the seat gets no mail from now on, and
    /// what it has got is told so.
    pub(crate) fn abandon(&self, slot: usize) {
        self.threads.lock().abandoned[slot] = true;
        loop {
            let call = self.info(slot).mailbox.lock().pop_front();
            match call {
                Some(call) => call(self, None),
                None => break,
            }
        }
    }

    /// Tells the seat's worker to end.
    pub(crate) fn request_stop(&self, slot: usize) {
        self.signal(slot, STOP);
    }

    /// Takes back that the seat's worker is to end. False, if it ends already.
    pub(crate) fn withdraw_stop(&self, slot: usize) -> bool {
        // Relaxed: the roster's lock is held, and `commit_stop` decides by the word alone.
        let retained =
            self.info(slot).signals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |signals| {
                (signals & STOPPED == 0).then_some(signals & !STOP)
            });
        retained.is_ok()
    }

    /// Whether the worker, which has seen that it is to end, does. Not while it has mail: that was
    /// sent to a member, perhaps since it looked.
    pub(crate) fn commit_stop(&self, worker: &Worker) -> bool {
        // Relaxed: as in `retain`.
        let left = self.info(worker.index()).signals.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |signals| (signals & (STOP | CALLS) == STOP).then_some(signals | STOPPED),
        );
        left.is_ok()
    }

    /// Clears what the last thread of this seat was told, for the next, or for itself if it begins
    /// again. The roster's lock is held.
    pub(crate) fn reset_signals(&self, slot: usize) {
        // Relaxed: the last thread is through, and the next is not started. Mail stays: it is for
        // the seat.
        self.info(slot).signals.fetch_and(CALLS, Ordering::Relaxed);
    }

    /// Whether the seat's thread has left, and its seat is a member's again, or was for long enough
    /// to get mail. The roster's lock is held.
    pub(crate) fn must_restart(&self, table: &ThreadTable, slot: usize) -> bool {
        // Relaxed: whoever refused to take `STOP` back, or sent mail, had the lock.
        let signals = self.info(slot).signals.load(Ordering::Relaxed);
        signals & STOPPED != 0 && (slot < table.members || signals & CALLS != 0)
    }

    pub(crate) fn signal(&self, slot: usize, signal: u32) {
        // Release: pairs with the Acquire of `signals`.
        self.info(slot).signals.fetch_or(signal, Ordering::Release);
        self.sleep.notify_worker(slot);
    }

    pub(crate) fn signals(&self, worker: &Worker) -> u32 {
        // Acquire: pairs with the Release of `order`.
        self.info(worker.index()).signals.load(Ordering::Acquire)
    }

    pub(crate) fn has_calls(&self, worker: &Worker) -> bool {
        self.signals(worker) & CALLS != 0
    }

    /// Runs what is meant for this worker only.
    #[inline]
    pub(crate) fn run_calls(&self, worker: &Worker) {
        let signals = self.signals(worker);
        if signals & COMPENSATED != 0 {
            self.come_back(worker.index());
        }
        if signals & CALLS != 0 {
            self.run_all_calls(worker);
        }
    }

    #[cold]
    fn run_all_calls(&self, worker: &Worker) {
        let slot = self.info(worker.index());
        // Before the box is emptied, so that what comes later is not forgotten. Relaxed: the box
        // has a lock.
        slot.signals.fetch_and(!CALLS, Ordering::Relaxed);
        loop {
            let call = slot.mailbox.lock().pop_front();
            match call {
                Some(call) => call(self, Some(worker)),
                None => break,
            }
        }
    }
}
