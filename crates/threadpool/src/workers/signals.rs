//! Signals to one worker, and the calls in its mailbox.
//!
//! A signal is a bit in the word of the worker's slot. The worker looks at it between two tasks,
//! while it searches, and while it waits.
//!
//! | signal | set by | until |
//! | --- | --- | --- |
//! | `CALLS` | a broadcast | the worker empties its mailbox |
//! | `STOP` | a pool that becomes smaller or is closed | the thread has ended, or see below |
//! | `STOPPED` | the worker that has seen `STOP`, which is then final | the next thread starts |
//! | `START` | a thread that leases a spare | the spare has seen it |
//! | `COMPENSATED` | a thread that has seen the worker blocked | a thread sees it run again |
//!
//! `STOP` is withdrawn if the pool becomes larger again before the worker has seen it.
//!
//! # Orderings
//!
//! A signal is set with Release and seen with Acquire. A worker that must stop because the pool was
//! closed sees that it was, and does not stop as if the pool had become smaller. A spare that is
//! started is idle only after it was registered. The thread that sets a signal then notifies the
//! worker, so the worker's last look before it sleeps sees the signal.

use stanchion_machine::atomic::Ordering;

use crate::threads::ThreadTable;
use crate::workers::{Call, PoolState, Worker};

/// The worker's mailbox has calls.
pub(crate) const CALLS: u32 = 1;
/// The worker is to stop.
pub(crate) const STOP: u32 = 2;
/// The worker stops: `STOP` cannot be withdrawn any more.
pub(crate) const STOPPED: u32 = 4;
/// The spare is to take part.
pub(crate) const START: u32 = 8;
/// The worker was seen blocked, and a spare was leased for it.
pub(crate) const COMPENSATED: u32 = 16;

impl PoolState {
    /// Sends a call to each member that has a thread. First calls `before` with their number.
    pub(crate) fn call_all(&self, before: impl FnOnce(usize), call: impl Fn() -> Call) {
        // The members do not change while the calls are sent.
        let table = self.threads.lock();
        before(table.present_members().count());
        for slot in table.present_members() {
            self.send_call(slot, call());
        }
    }

    /// Puts `call` into the slot's mailbox and notifies its worker.
    pub(crate) fn send_call(&self, slot: usize, call: Call) {
        self.info(slot).mailbox.lock().push_back(call);
        self.signal(slot, CALLS);
    }

    /// Marks a slot that has no thread any more and gets no other one. It gets no calls from
    /// now on, and the calls in its mailbox are made without a worker.
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

    /// Signals the slot's worker to stop.
    pub(crate) fn request_stop(&self, slot: usize) {
        self.signal(slot, STOP);
    }

    /// Withdraws the signal to stop. Returns false if the worker stops already.
    pub(crate) fn withdraw_stop(&self, slot: usize) -> bool {
        // Relaxed: the lock of the thread table is held, and `commit_stop` decides by the word
        // alone.
        let retained =
            self.info(slot).signals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |signals| {
                (signals & STOPPED == 0).then_some(signals & !STOP)
            });
        retained.is_ok()
    }

    /// Returns whether the worker, which has seen `STOP`, does stop. It does not while it has
    /// calls: those were sent to a member, perhaps since it looked.
    pub(crate) fn commit_stop(&self, worker: &Worker) -> bool {
        // Relaxed: as in `withdraw_stop`.
        let left = self.info(worker.index()).signals.fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            |signals| (signals & (STOP | CALLS) == STOP).then_some(signals | STOPPED),
        );
        left.is_ok()
    }

    /// Clears the signals of the slot's last thread, for the next one, or for the same if it
    /// restarts. The lock of the thread table is held.
    pub(crate) fn reset_signals(&self, slot: usize) {
        // Relaxed: the last thread is through, and the next is not started. Calls stay: they are
        // for the slot.
        self.info(slot).signals.fetch_and(CALLS, Ordering::Relaxed);
    }

    /// Returns whether a slot needs its stopped thread again: it is a member's again, or
    /// was for long enough to get calls. The lock of the thread table is held.
    pub(crate) fn must_restart(&self, table: &ThreadTable, slot: usize) -> bool {
        // Relaxed: a thread that found `STOP` final, or sent a call, had the lock.
        let signals = self.info(slot).signals.load(Ordering::Relaxed);
        signals & STOPPED != 0 && (slot < table.members || signals & CALLS != 0)
    }

    /// Sets a signal and notifies the worker.
    pub(crate) fn signal(&self, slot: usize, signal: u32) {
        // Release: pairs with the Acquire of `signals`.
        self.info(slot).signals.fetch_or(signal, Ordering::Release);
        self.sleep.notify_worker(slot);
    }

    /// Returns the worker's signals.
    pub(crate) fn signals(&self, worker: &Worker) -> u32 {
        // Acquire: pairs with the Release of `signal`.
        self.info(worker.index()).signals.load(Ordering::Acquire)
    }

    /// Returns whether the worker's mailbox has calls.
    pub(crate) fn has_calls(&self, worker: &Worker) -> bool {
        self.signals(worker) & CALLS != 0
    }

    /// Makes the calls in the worker's mailbox, and ends its compensation if it has one.
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

    /// Empties the mailbox.
    #[cold]
    fn run_all_calls(&self, worker: &Worker) {
        let slot = self.info(worker.index());
        // Before the mailbox is emptied, so that a later call is not forgotten. Relaxed: the
        // mailbox has a lock.
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
