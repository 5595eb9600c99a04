//! What workers ask of their registry, whatever its strategy.

use std::sync::Arc;

use machine::atomic::Ordering;

use super::Registry;
use crate::metrics::{Metrics, WorkerMetrics};
use crate::strategy::blocks::control_block::Task;
use crate::strategy::{Place, Strategy};
use crate::workers::core::{Core, QueuePosition, Work};
use crate::workers::monitor::Monitor;
use crate::workers::pool_state::PoolState;
use crate::workers::worker::Worker;

impl<S: Strategy> Core for Registry<S> {
    fn pool(&self) -> &PoolState {
        &self.pool
    }

    fn create(&self, place: Option<&Place>, position: QueuePosition, fill: &mut dyn FnMut(&Task)) {
        let told = match position {
            // A guest need not run anything for a long time.
            QueuePosition::Usual
                if place.is_some_and(|place| self.pool.is_current_thread(place.index())) =>
            {
                self.create_for_others(place, fill)
            }
            QueuePosition::Usual => self.strategy.create(place, fill),
            QueuePosition::Last => self.strategy.create_last(place, fill),
        };
        let woken = self.notify(told);
        if woken > 0
            && let Some(place) = place
        {
            self.pool.info(place.index()).counters.wakeups.add(woken);
        }
        if let Some(monitor) = &self.pool.monitor {
            monitor.notify_work();
        }
        if place.is_none() {
            self.pool.drain.after_injection(|| self.drop_late_tasks());
        }
    }

    fn find_work(&self, worker: &Worker) -> Option<Work> {
        let task = self.next_task(worker.place(), None).map(Work::Task);
        task.or_else(|| worker.steal_fork().map(Work::Fork))
    }

    fn find_local_work(&self, worker: &Worker) -> Option<Work> {
        let place = worker.place();
        let task =
            self.strategy.is_ready_here(place).then(|| self.next_task(place, None)).flatten();
        let own = || worker.steal_fork_of(worker.index()).map(Work::Fork);
        task.map(Work::Task).or_else(own)
    }

    fn find_work_of(&self, worker: &Worker, victim: usize) -> Option<Work> {
        let fork = worker.steal_fork_of(victim).map(Work::Fork);
        fork.or_else(|| self.strategy.next_of(worker.place(), victim).map(Work::Task))
    }

    fn release_block(&self, place: &Place, finished: Task) {
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

    fn lend_spare(&self) -> bool {
        self.lease_spare()
    }

    fn return_spare(&self) {
        let mut table = self.pool.threads.lock();
        table.leases -= 1;
        self.pool.note_surplus(&table);
    }

    fn to_arc(&self) -> Option<Arc<dyn Core>> {
        Some(self.weak.upgrade()?)
    }

    fn metrics(&self) -> Metrics {
        let pool = &self.pool;
        let (workers, lent) = {
            let table = pool.threads.lock();
            (table.first_spare + table.started_spares, table.active_spares.min(table.leases))
        };
        let worker = |slot| {
            let (steals, failed_steals) = self.strategy.steals(slot);
            WorkerMetrics { steals, failed_steals, ..pool.info(slot).counters.read() }
        };
        let (compensations, brief_compensations) =
            pool.monitor.as_ref().map_or((0, 0), Monitor::counts);
        Metrics {
            workers: (0..workers).map(worker).collect(),
            ready: self.strategy.len(),
            idle: pool.sleep.idle(),
            asleep: pool.sleep.asleep(),
            blocks: self.strategy.blocks(),
            // Relaxed: statistics.
            panics: pool.panics.load(Ordering::Relaxed) as u64,
            lent,
            compensations,
            brief_compensations,
        }
    }
}
