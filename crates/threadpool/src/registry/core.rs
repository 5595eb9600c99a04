//! The registry's side of [`Core`]: what workers ask of it, whatever its strategy.

use std::sync::Arc;

use stanchion_machine::atomic::Ordering;

use super::Registry;
use crate::metrics::{Metrics, WorkerMetrics};
use crate::strategy::blocks::Task;
use crate::strategy::{Strategy, WorkerSlot};
use crate::workers::{Core, Monitor, PoolState, QueuePosition, Work, Worker};

impl<S: Strategy> Core for Registry<S> {
    fn pool(&self) -> &PoolState {
        &self.pool
    }

    fn create(
        &self,
        slot: Option<&WorkerSlot>,
        position: QueuePosition,
        fill: &mut dyn FnMut(&Task),
    ) {
        let told = match position {
            // The thread that has built the pool may not run anything for a long time.
            QueuePosition::Usual
                if slot.is_some_and(|slot| self.pool.is_current_thread(slot.index())) =>
            {
                self.create_for_others(slot, fill)
            }
            QueuePosition::Usual => self.strategy.create(slot, fill),
            QueuePosition::Last => self.strategy.create_last(slot, fill),
        };
        let woken = self.notify(told);
        if woken > 0
            && let Some(slot) = slot
        {
            self.pool.info(slot.index()).counters.wakeups.add(woken);
        }
        if let Some(monitor) = &self.pool.monitor {
            monitor.notify_work();
        }
        // Created outside of the pool, which may have ended meanwhile.
        if slot.is_none() {
            self.pool.drain.after_injection(|| self.drop_late_tasks());
        }
    }

    fn find_work(&self, worker: &Worker) -> Option<Work> {
        let task = self.next_task(worker.slot(), None).map(Work::Task);
        task.or_else(|| worker.steal_fork().map(Work::Fork))
    }

    fn find_local_work(&self, worker: &Worker) -> Option<Work> {
        let slot = worker.slot();
        let task =
            self.strategy.is_ready_locally(slot).then(|| self.next_task(slot, None)).flatten();
        let own = || worker.steal_fork_of(worker.index()).map(Work::Fork);
        task.map(Work::Task).or_else(own)
    }

    fn find_work_of(&self, worker: &Worker, victim: usize) -> Option<Work> {
        let fork = worker.steal_fork_of(victim).map(Work::Fork);
        fork.or_else(|| self.strategy.next_from(worker.slot(), victim).map(Work::Task))
    }

    fn release_block(&self, slot: &WorkerSlot, finished: Task) {
        self.strategy.release(Some(slot), finished);
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
        let (workers, active_spares) = {
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
            active_spares,
            compensations,
            brief_compensations,
        }
    }
}
