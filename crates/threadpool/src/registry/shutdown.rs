//! How a pool is closed, finds out that all is over, and is waited for.

use super::Registry;
use crate::shutdown::termination;
use crate::sleep::MOST_WORKERS;
use crate::strategy::{Strategy, WorkerSlot};
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
    pub(crate) fn terminate(&self) {
        let mut table = self.pool.threads.lock();
        table.closed = true;
        // Who has left, and was wanted again before this, takes part: two tasks may need as many
        // threads.
        for slot in 0..table.handles.len() {
            if table.handles[slot].is_some() && self.pool.must_restart(&table, slot) {
                self.pool.termination.register();
                table.restarts[slot] = true;
            }
        }
        // Before anybody is told to leave by it: who sees that sees this.
        self.pool.termination.close();
        for slot in 0..self.pool.num_slots() {
            if table.handles[slot].is_some() {
                self.pool.request_stop(slot);
            }
        }
    }

    /// Waits until all threads have ended, apart from the calling one.
    pub(crate) fn join_all(&self) {
        // A guest has worked until all is over.
        let is_mine = |worker: &&Worker| {
            worker.belongs_to(&self.pool) && !self.pool.is_current_thread(worker.index())
        };
        let mine = Worker::with_current(|current| current.filter(is_mine).map(Worker::index));
        let _excused = mine.and_then(|slot| self.pool.excuse_slot(slot));
        let lent = Worker::with_current(|current| {
            current.filter(is_mine).map(|worker| self.idle_in_shutdown(worker.slot()))
        });
        for slot in 0..self.pool.num_slots() {
            let itself = Worker::with_current(|current| {
                current
                    .is_some_and(|worker| worker.belongs_to(&self.pool) && worker.index() == slot)
            });
            let (handle, past) = {
                let mut table = self.pool.threads.lock();
                let handle = if itself { None } else { table.handles[slot].take() };
                (handle, table.ended[slot].take())
            };
            for thread in [past, handle].into_iter().flatten() {
                thread.join();
            }
        }
        if lent == Some(true) {
            // The lease alone: all spares have ended.
            self.pool.threads.lock().leases -= 1;
        }
        if lent.is_some() {
            self.pool.termination.set_busy();
        } else if let Some(monitor) = &self.pool.monitor
            && !self.pool.config.uses_current_thread
        {
            // It ends after the last worker; one that calls this is still there, and so is a guest.
            monitor.join();
        }
    }

    /// A task of the pool waits for its end: the thread rests. Says whether it has lent a spare for
    /// what is ready.
    pub(super) fn idle_in_shutdown(&self, slot: &WorkerSlot) -> bool {
        let termination = &self.pool.termination;
        let mut lent = false;
        loop {
            // Somebody runs what is ready, if the pool has no other thread.
            if !lent && self.strategy.is_ready(slot) {
                lent = true;
                self.lease_spare();
            }
            termination.set_idle();
            let Some(rested) = termination.all_idle() else { return lent };
            let ready = self.strategy.is_ready(slot);
            if ready && !lent {
                termination.set_busy();
                continue;
            }
            // There may be nobody else who would say so: only spares that are not needed. If
            // somebody has gone on meanwhile, he looks afterwards.
            if !ready {
                termination.declare_done(rested);
            }
            // It is over, or what was ready may have been run meanwhile: those who rest look again.
            self.pool.sleep.notify_all();
            return lent;
        }
    }

    /// Takes out what is ready after the last thread has left, and drops it.
    #[cold]
    pub(super) fn drop_late_tasks(&self) {
        let core: &dyn Core = self;
        // SAFETY: all threads have left their seats, and `Drain` lets one in at a time. `self` is
        // borrowed for longer.
        let worker = unsafe { self.pool.info(0).bind_worker(core) };
        let slot = worker.slot();
        let mut failed_searches = 0;
        while failed_searches < LAST_LOOKS {
            match self.strategy.next(slot, None, &mut None) {
                Some(task) => {
                    // SAFETY: out of the strategy, so filled and not run yet.
                    let block = unsafe { job::run(task, worker, Fate::Dropped) };
                    self.strategy.release(Some(slot), block);
                    failed_searches = 0;
                }
                None if self.strategy.is_ready(slot) => failed_searches += 1,
                None => break,
            }
        }
    }

    /// A worker of a closed pool has found nothing: it waits until there is something, or all is
    /// over. Says which.
    pub(super) fn wait_for_termination(&self, worker: &Worker) -> bool {
        let (pool, slot) = (&self.pool, worker.slot());
        let _excused = pool.excuse(worker);
        pool.termination.set_idle();
        pool.sleep.start_searching();
        let more = || self.strategy.is_ready(slot) || pool.has_calls(worker) || pool.has_forks();
        let changed = || more() || pool.termination.all_idle().is_some();
        let over = loop {
            // Both, in this order: what was made ready before all rested is seen.
            let rested = pool.termination.all_idle();
            if more() {
                pool.termination.set_busy();
                break false;
            }
            match rested {
                Some(rested) if pool.termination.declare_done(rested) => {
                    // Spares that are not needed as well.
                    pool.sleep.notify_all();
                    break true;
                }
                // Somebody has gone on since: there was something.
                Some(_) => {}
                None if pool.spin_until(changed) => {}
                None => {
                    pool.sleep.sleep(slot.index(), None, |_| changed());
                }
            }
        };
        pool.sleep.stop_searching(|| self.has_ready());
        over
    }

    /// The calling worker does not take part any more. If the pool is closed it may have been the
    /// last that was busy, and those who rest may all be such as look for nothing: they wait in
    /// `shutdown`. Then it says so itself that all is over; or, with true, that something is ready.
    pub(super) fn deregister(&self, slot: &WorkerSlot) -> bool {
        let termination = &self.pool.termination;
        if !termination.deregister() {
            return false;
        }
        let rested = termination.all_idle();
        let ready = self.strategy.is_ready(slot);
        if let Some(rested) = rested
            && !ready
        {
            termination.declare_done(rested);
        }
        self.pool.sleep.notify_all();
        ready && rested.is_some()
    }
}
