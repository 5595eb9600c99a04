//! The loop of each thread of a pool.

use std::sync::Arc;

use stanchion_machine::atomic::Ordering;
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::{presence, topology};

use super::Registry;
use crate::strategy::Strategy;
use crate::workers::{Core, START, STOP, UNSEEN, Work, Worker, job};

/// The reason why a worker leaves the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopExit {
    /// The pool is closed and done.
    Done,
    /// The pool has become smaller.
    Stopped,
    /// It is a spare that is not needed now.
    Surplus,
}

impl<S: Strategy> Registry<S> {
    /// Runs the thread of `slot`, from its first instruction to its last.
    ///
    /// # Safety
    ///
    /// The slot is this thread's (Invariant 1 of `mod.rs`).
    pub(crate) unsafe fn main_loop(self: &Arc<Self>, slot: usize) {
        let bomb =
            AbortOnUnwind::armed("a worker of a thread pool unwound: its tasks would be lost");
        let pool = &self.pool;
        let _pinned = pool.config.pinned.then(|| {
            let processors = topology::processors();
            (!processors.is_empty())
                .then(|| topology::pin(processors[slot % processors.len()]).ok())
        });
        let core: &dyn Core = &**self;
        // SAFETY: the slot is this thread's, which has an `Arc` of the registry.
        let worker = unsafe { pool.info(slot).bind_worker(core) };
        let registration = pool.monitor.is_some().then(presence::register).and_then(Result::ok);
        let number = registration.as_ref().map_or(UNSEEN, |registration| registration.index() + 1);
        let presence = &pool.info(slot).presence;
        loop {
            // Relaxed: hints, here and below.
            presence.store(number, Ordering::Relaxed);
            if let Some(monitor) = &pool.monitor {
                monitor.notify_thread();
            }
            pool.active_threads.fetch_add(1, Ordering::Relaxed);
            worker.enter(|| {
                if let Some(handler) = &pool.config.start_handler {
                    pool.contain(|| handler(slot));
                }
                // A spare that is not needed sleeps until it is.
                while self.run_tasks(worker) == LoopExit::Surplus && self.park_spare(worker) {}
                if let Some(handler) = &pool.config.exit_handler {
                    pool.contain(|| handler(slot));
                    // This may be the last thread, so it runs what the handler created (Invariant 2
                    // of `mod.rs`).
                    while pool.is_closed() && worker.yield_now() {}
                }
            });
            // Relaxed: hints.
            pool.active_threads.fetch_sub(1, Ordering::Relaxed);
            presence.store(0, Ordering::Relaxed);
            if !self.restarts(worker) {
                break;
            }
        }
        // From here on the worker, and with it the slot, is not used.
        self.thread_left();
        bomb.defuse();
    }

    /// Counts a thread out that does not use its slot any more. The last one ends the pool.
    pub(super) fn thread_left(&self) {
        let pool = &self.pool;
        if pool.drain.deregister() {
            pool.drain.finish(|| self.drop_late_tasks());
            // Each aborted future makes a task, which is dropped at once.
            pool.abort_futures();
            if let Some(monitor) = &pool.monitor {
                monitor.end();
            }
        }
    }

    /// Ends the part of the thread that has built the pool, and leaves its work to the others.
    pub(crate) fn leave_slot(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that leaves a pool unwound");
        if let Some(target) = self.strategy.leave(worker.slot()) {
            self.notify(target);
        }
        // Its tasks may lie in a queue at which no other worker looks without being notified.
        self.pool.sleep.notify_all();
        self.pool.abandon(worker.index());
        // Relaxed: a hint.
        self.pool.active_threads.fetch_sub(1, Ordering::Relaxed);
        self.thread_left();
        bomb.defuse();
    }

    /// Runs tasks until the pool is done, on the thread that has built the pool and shuts it down.
    pub(crate) fn run_until_done(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that shuts a pool down unwound");
        // Before the pool is closed, so that the other threads do not declare it done.
        self.pool.termination.register();
        self.terminate();
        while self.run_tasks(worker) != LoopExit::Done {}
        if self.pool.termination.deregister() {
            self.pool.sleep.notify_all();
        }
        bomb.defuse();
    }

    /// Runs tasks until the worker is to stop, or is a spare that is not needed.
    pub(super) fn run_tasks(&self, worker: &Worker) -> LoopExit {
        let pool = &self.pool;
        let slot = worker.slot();
        let mut finished = None;
        let exit = loop {
            let signals = pool.signals(worker);
            // Signals: make calls, then see whether to stop.
            if signals != 0 {
                pool.run_calls(worker);
                // In this order: a worker that is told to stop because the pool is closed sees that
                // it is, and stays until the pool is done.
                if signals & STOP != 0 && !pool.is_closed() && pool.commit_stop(worker) {
                    break LoopExit::Stopped;
                }
            }
            // More spares are active than there are leases: this one goes back to sleep.
            if pool.is_surplus(worker) && self.retire_spare(worker) {
                break LoopExit::Surplus;
            }
            let task = self.next_task(slot, finished.take()).map(Work::Task);
            let work = match task.or_else(|| worker.steal_fork().map(Work::Fork)) {
                // A task was ready, or else a fork.
                Some(work) => work,
                // Nothing was ready in a closed pool: wait until something is, or the pool is done.
                None if pool.is_closed() => {
                    if self.wait_for_termination(worker) {
                        break LoopExit::Done;
                    }
                    continue;
                }
                // Nothing was ready: search, then sleep.
                None => {
                    let stop = || pool.signals(worker) & !START != 0 || pool.is_surplus(worker);
                    match self.search(worker, &stop, &|| !stop()) {
                        Some(work) => work,
                        None => continue,
                    }
                }
            };
            match work {
                Work::Task(task) => {
                    worker.counters().tasks.add(1);
                    // SAFETY: it is out of the strategy, so it is filled and has not run.
                    finished = Some(unsafe { job::run(task, worker, pool.fate()) });
                }
                Work::Fork(stolen) => worker.run_stolen(stolen),
            }
            // Other workers may have blocked while this one ran: look now and then.
            if let Some(monitor) = &pool.monitor
                && worker.may_check_for_blocked()
                && self.has_ready()
            {
                self.check_for_blocked(monitor, false);
            }
        };
        // The block of the last task goes back.
        if let Some(block) = finished {
            self.strategy.release(Some(slot), block);
        }
        // What only this worker would find goes to the others.
        if let Some(target) = self.strategy.leave(slot) {
            self.notify(target);
        }
        if exit == LoopExit::Stopped {
            // Now that the others can see all that this worker had.
            if self.deregister(slot) {
                self.lease_spare();
            }
        }
        exit
    }
}
