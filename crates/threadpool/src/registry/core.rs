//! What workers ask of their registry, whatever its strategy.

use std::sync::Arc;

use machine::atomic::Ordering;

use super::Registry;
use crate::metrics::{Metrics, WorkerMetrics};
use crate::strategy::blocks::control_block::Task;
use crate::strategy::{Place, Strategy};
use crate::workers::core::{Core, Order, Work};
use crate::workers::monitor::Lookout;
use crate::workers::pool_state::Common;
use crate::workers::worker::Worker;

impl<S: Strategy> Core for Registry<S> {
    fn common(&self) -> &Common {
        &self.common
    }

    fn create(&self, place: Option<&Place>, order: Order, fill: &mut dyn FnMut(&Task)) {
        let told = match order {
            // A guest need not run anything for a long time.
            Order::Usual if place.is_some_and(|place| self.common.is_guest(place.index())) => {
                self.create_for_others(place, fill)
            }
            Order::Usual => self.strategy.create(place, fill),
            Order::Last => self.strategy.create_last(place, fill),
        };
        let woken = self.tell(told);
        if woken > 0
            && let Some(place) = place
        {
            self.common.seat(place.index()).counters.wakeups.add(woken);
        }
        if let Some(lookout) = &self.common.lookout {
            lookout.created();
        }
        if place.is_none() {
            self.common.ending.created(|| self.take_out());
        }
    }

    fn next(&self, worker: &Worker) -> Option<Work> {
        let task = self.take_next(worker.place(), None).map(Work::Task);
        task.or_else(|| worker.steal_fork().map(Work::Fork))
    }

    fn next_here(&self, worker: &Worker) -> Option<Work> {
        let place = worker.place();
        let task =
            self.strategy.is_ready_here(place).then(|| self.take_next(place, None)).flatten();
        let own = || worker.steal_fork_of(worker.index()).map(Work::Fork);
        task.map(Work::Task).or_else(own)
    }

    fn next_of(&self, worker: &Worker, victim: usize) -> Option<Work> {
        let fork = worker.steal_fork_of(victim).map(Work::Fork);
        fork.or_else(|| self.strategy.next_of(worker.place(), victim).map(Work::Task))
    }

    fn release(&self, place: &Place, finished: Task) {
        self.strategy.release(Some(place), finished);
    }

    fn search(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work> {
        self.search_until(worker, stop, watch)
    }

    fn lend(&self) -> bool {
        self.lend_spare()
    }

    fn take_back(&self) {
        let mut roster = self.common.roster.lock();
        roster.leases -= 1;
        self.common.note_surplus(&roster);
    }

    fn arc(&self) -> Option<Arc<dyn Core>> {
        Some(self.me.upgrade()?)
    }

    fn metrics(&self) -> Metrics {
        let common = &self.common;
        let (workers, lent) = {
            let roster = common.roster.lock();
            (roster.regular + roster.spares, roster.serving.min(roster.leases))
        };
        let worker = |seat| {
            let (steals, failed_steals) = self.strategy.steals(seat);
            WorkerMetrics { steals, failed_steals, ..common.seat(seat).counters.read() }
        };
        let (compensations, brief_compensations) =
            common.lookout.as_ref().map_or((0, 0), Lookout::counts);
        Metrics {
            workers: (0..workers).map(worker).collect(),
            ready: self.strategy.len(),
            idle: common.sleeping.idle(),
            asleep: common.sleeping.asleep(),
            blocks: self.strategy.blocks(),
            // Relaxed: statistics.
            panics: common.panics.load(Ordering::Relaxed) as u64,
            lent,
            compensations,
            brief_compensations,
        }
    }
}
