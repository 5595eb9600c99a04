//! The loop that each thread of a pool runs.

use std::sync::Arc;

use machine::atomic::Ordering;
use machine::bomb::AbortOnUnwind;
use machine::{presence, topology};

use super::Registry;
use crate::strategy::Strategy;
use crate::workers::core::{Core, Work};
use crate::workers::job;
use crate::workers::signals::{LEAVE, SERVE};
use crate::workers::worker::Worker;
use crate::workers::worker_info::UNSEEN;

/// Why a worker has stopped to run tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// All is over.
    ToTheEnd,
    /// The pool has become smaller.
    Dismissed,
    /// It is a spare that is not needed now.
    Surplus,
}

impl<S: Strategy> Registry<S> {
    /// The thread of `seat`, from its first instruction to its last.
    ///
    /// # Safety
    ///
    /// The seat is this thread's (Invariant 1).
    pub(crate) unsafe fn work(self: &Arc<Self>, seat: usize) {
        let bomb =
            AbortOnUnwind::armed("a worker of a thread pool unwound: its tasks would be lost");
        let common = &self.common;
        let _pinned = common.behaviour.pinned.then(|| {
            let processors = topology::processors();
            (!processors.is_empty())
                .then(|| topology::pin(processors[seat % processors.len()]).ok())
        });
        let core: &dyn Core = &**self;
        // SAFETY: the seat is this thread's, which has an `Arc` of the registry.
        let worker = unsafe { common.seat(seat).begin_worker(core) };
        let registration = common.are_seen().then(presence::register).and_then(Result::ok);
        let number = registration.as_ref().map_or(UNSEEN, |registration| registration.index() + 1);
        let presence = &common.seat(seat).presence;
        loop {
            // Relaxed: hints, here and below.
            presence.store(number, Ordering::Relaxed);
            if let Some(lookout) = &common.lookout {
                lookout.joined();
            }
            common.members.fetch_add(1, Ordering::Relaxed);
            worker.enter(|| {
                if let Some(handler) = &common.behaviour.start_handler {
                    common.contain(|| handler(seat));
                }
                while self.serve(worker) == Served::Surplus && self.rest(worker) {}
                if let Some(handler) = &common.behaviour.exit_handler {
                    common.contain(|| handler(seat));
                    // Nobody else may be left who would run what it created (Invariant 2).
                    while common.is_closed() && worker.yield_now() {}
                }
            });
            // Relaxed: hints.
            common.members.fetch_sub(1, Ordering::Relaxed);
            presence.store(0, Ordering::Relaxed);
            if !self.begins_again(worker) {
                break;
            }
        }
        // From here on the worker, and with it the place, is not used.
        self.left();
        bomb.defuse();
    }

    /// A thread does not use its place any more. The last one ends the pool.
    pub(super) fn left(&self) {
        let common = &self.common;
        if common.ending.leave() {
            common.ending.end(|| self.take_out());
            // Each makes a task, which is taken out at once.
            common.abort_futures();
            if let Some(lookout) = &common.lookout {
                lookout.end();
            }
        }
    }

    /// The thread that has built the pool ends, and leaves what it has to the others.
    pub(crate) fn leave_seat(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that leaves a pool unwound");
        if let Some(told) = self.strategy.leave(worker.place()) {
            self.tell(told);
        }
        // What it spawned may lie where no thread looks that was told of nothing.
        self.common.sleeping.tell_all();
        self.common.abandon(worker.index());
        // Relaxed: a hint.
        self.common.members.fetch_sub(1, Ordering::Relaxed);
        self.left();
        bomb.defuse();
    }

    /// The thread that has built the pool, and shuts it down, works until all is over.
    pub(crate) fn serve_to_the_end(&self, worker: &Worker) {
        let bomb = AbortOnUnwind::armed("a thread that shuts a pool down unwound");
        // Before it is closed, so that the others do not declare all over.
        self.common.closing.enlist();
        self.close();
        while self.serve(worker) != Served::ToTheEnd {}
        if self.common.closing.release() {
            self.common.sleeping.tell_all();
        }
        bomb.defuse();
    }

    /// Runs tasks until the worker is to end, or is a spare that is not needed.
    pub(super) fn serve(&self, worker: &Worker) -> Served {
        let common = &self.common;
        let place = worker.place();
        let mut finished = None;
        let served = loop {
            let orders = common.orders(worker);
            if orders != 0 {
                common.run_mail(worker);
                // In this order: who is told to leave because the pool is closed sees that it is,
                // and stays until all is over.
                if orders & LEAVE != 0 && !common.is_closed() && common.may_leave(worker) {
                    break Served::Dismissed;
                }
            }
            if common.is_surplus(worker) && self.retires(worker) {
                break Served::Surplus;
            }
            let task = self.take_next(place, finished.take()).map(Work::Task);
            let work = match task.or_else(|| worker.steal_fork().map(Work::Fork)) {
                Some(work) => work,
                None if common.is_closed() => {
                    if self.is_over(worker) {
                        break Served::ToTheEnd;
                    }
                    continue;
                }
                None => {
                    let stop = || common.orders(worker) & !SERVE != 0 || common.is_surplus(worker);
                    match self.search(worker, &stop, &|| !stop()) {
                        Some(work) => work,
                        None => continue,
                    }
                }
            };
            match work {
                Work::Task(task) => {
                    worker.counters().tasks.add(1);
                    // SAFETY: out of the strategy, so filled and not run yet.
                    finished = Some(unsafe { job::run(task, worker, common.fate()) });
                }
                Work::Fork(stolen) => worker.run_stolen(stolen),
            }
            if let Some(lookout) = &common.lookout
                && worker.may_look_out()
                && self.has_ready()
            {
                self.look_out(lookout, false);
            }
        };
        if let Some(block) = finished {
            self.strategy.release(Some(place), block);
        }
        if let Some(told) = self.strategy.leave(place) {
            self.tell(told);
        }
        if served == Served::Dismissed {
            // Now that the others can see all that it had.
            if self.release(place) {
                self.lend_spare();
            }
        }
        served
    }
}
