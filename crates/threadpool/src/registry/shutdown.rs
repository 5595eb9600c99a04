//! The end of a pool: it is closed, it detects that it is done, and its threads are waited for.

use super::Registry;
use crate::shutdown::termination;
use crate::sleep::MOST_WORKERS;
use crate::strategy::{Strategy, WorkerSlot};
use crate::workers::{Core, Fate, Worker, job};

/// The most looks in vain for a last task that is said to be ready, before it is given up.
/// Strategies leave the only task of a slot to its owner for some looks.
const LAST_LOOKS: u32 = 16;

const _: () = assert!(2 * MOST_WORKERS <= termination::COUNT, "see `termination.rs`");

impl<S: Strategy> Registry<S> {
    /// Closes the pool: its threads stop when it is done, and no thread starts any more.
    pub(crate) fn terminate(&self) {
        let mut table = self.pool.threads.lock();
        table.closed = true;
        // A thread that has left, and was needed again before this, takes part: two tasks may need
        // as many threads.
        for slot in 0..table.handles.len() {
            if table.handles[slot].is_some() && self.pool.must_restart(&table, slot) {
                self.pool.termination.register();
                table.restarts[slot] = true;
            }
        }
        // Before any worker is signalled to stop: a worker that sees the signal sees this.
        self.pool.termination.close();
        for slot in 0..self.pool.num_slots() {
            if table.handles[slot].is_some() {
                self.pool.request_stop(slot);
            }
        }
    }

    /// Waits until all threads have ended, except the calling one.
    pub(crate) fn join_all(&self) {
        // The thread that has built the pool has worked until the pool was done.
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
            // Only the lease is left: all spares have ended.
            self.pool.threads.lock().leases -= 1;
        }
        if lent.is_some() {
            self.pool.termination.set_busy();
        } else if let Some(monitor) = &self.pool.monitor
            && !self.pool.config.uses_current_thread
        {
            // The monitor ends after the last worker. A worker that calls this is still there, and
            // so is the thread that has built the pool.
            monitor.join();
        }
    }

    /// Counts the calling worker as idle while one of its tasks waits for the pool's end. Returns
    /// whether it has leased a spare for what is ready.
    pub(super) fn idle_in_shutdown(&self, slot: &WorkerSlot) -> bool {
        let termination = &self.pool.termination;
        let mut lent = false;
        loop {
            // A spare runs what is ready, if the pool has no other thread.
            if !lent && self.strategy.is_ready(slot) {
                lent = true;
                self.lease_spare();
            }
            termination.set_idle();
            let Some(all_idle) = termination.all_idle() else { return lent };
            let ready = self.strategy.is_ready(slot);
            // All are idle, but a task is ready: lease a spare for it.
            if ready && !lent {
                termination.set_busy();
                continue;
            }
            // Perhaps no other thread would declare it: only spares that are not needed are left. A
            // thread that has resumed meanwhile decides afterwards itself.
            if !ready {
                termination.declare_done(all_idle);
            }
            // The pool is done, or what was ready may have been run meanwhile: idle threads look
            // again.
            self.pool.sleep.notify_all();
            return lent;
        }
    }

    /// Takes out what is ready after the last thread has left, and drops it.
    #[cold]
    pub(super) fn drop_late_tasks(&self) {
        let core: &dyn Core = self;
        // SAFETY: all threads have left their slots, and `Drain` lets one in at a time. `self` is
        // borrowed for longer.
        let worker = unsafe { self.pool.info(0).bind_worker(core) };
        let slot = worker.slot();
        let mut failed_searches = 0;
        while failed_searches < LAST_LOOKS {
            match self.strategy.next(slot, None, &mut None) {
                Some(task) => {
                    // SAFETY: it is out of the strategy, so it is filled and has not run.
                    let block = unsafe { job::run(task, worker, Fate::Dropped) };
                    self.strategy.release(Some(slot), block);
                    failed_searches = 0;
                }
                // A task is said to be ready, and was not given away: look again, some times.
                None if self.strategy.is_ready(slot) => failed_searches += 1,
                None => break,
            }
        }
    }

    /// Waits until something is ready, or the pool is done. The calling worker has found nothing in
    /// a closed pool. Returns whether the pool is done.
    pub(super) fn wait_for_termination(&self, worker: &Worker) -> bool {
        let (pool, slot) = (&self.pool, worker.slot());
        let _excused = pool.excuse(worker);
        pool.termination.set_idle();
        pool.sleep.start_searching();
        let more = || self.strategy.is_ready(slot) || pool.has_calls(worker) || pool.has_forks();
        let changed = || more() || pool.termination.all_idle().is_some();
        let over = loop {
            // Both, in this order: what was made ready before all were idle is seen.
            let all_idle = pool.termination.all_idle();
            // Something is ready: go back to work.
            if more() {
                pool.termination.set_busy();
                break false;
            }
            match all_idle {
                // All are idle and nothing is ready: the pool is done.
                Some(all_idle) if pool.termination.declare_done(all_idle) => {
                    // Wakes spares that are not needed as well.
                    pool.sleep.notify_all();
                    break true;
                }
                // A thread has resumed since: there was something.
                Some(_) => {}
                // Others are busy: spin, then sleep.
                None if worker.spin_until(changed) => {}
                None => {
                    pool.sleep.sleep(slot.index(), None, |_| changed());
                }
            }
        };
        pool.sleep.stop_searching(|| self.has_ready());
        over
    }

    /// Counts the calling worker out. In a closed pool it may have been the last busy one, and the
    /// idle ones may all wait in `shutdown` and look for nothing. So it declares the pool done
    /// itself. Returns whether something is ready instead, while all others are idle.
    pub(super) fn deregister(&self, slot: &WorkerSlot) -> bool {
        let termination = &self.pool.termination;
        if !termination.deregister() {
            return false;
        }
        let all_idle = termination.all_idle();
        let ready = self.strategy.is_ready(slot);
        if let Some(all_idle) = all_idle
            && !ready
        {
            termination.declare_done(all_idle);
        }
        self.pool.sleep.notify_all();
        ready && all_idle.is_some()
    }
}
