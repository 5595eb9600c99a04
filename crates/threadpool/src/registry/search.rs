//! Finding ready work: the search of a worker, and the wake-ups for work that it leaves.

use super::Registry;
use crate::sleep::LastCheck;
use crate::strategy::blocks::Task;
use crate::strategy::{Strategy, WakeTarget, WorkerSlot};
use crate::workers::{Work, Worker};

impl<S: Strategy> Registry<S> {
    /// Wakes the workers that a strategy names. Returns how many were woken.
    pub(super) fn notify(&self, target: WakeTarget) -> usize {
        match target {
            WakeTarget::Any(ready) => self.pool.sleep.notify(ready),
            WakeTarget::Lone => self.pool.sleep.notify_lone(),
            WakeTarget::Worker(slot) => usize::from(self.pool.sleep.notify_worker(slot)),
        }
    }

    /// Creates a task that its creator may not run soon, even if it is the creator's only one.
    pub(super) fn create_for_others(
        &self,
        slot: Option<&WorkerSlot>,
        fill: &mut dyn FnMut(&Task),
    ) -> WakeTarget {
        match self.strategy.create(slot, fill) {
            WakeTarget::Lone => WakeTarget::Any(1),
            target => target,
        }
    }

    /// Takes the strategy's next task. Wakes workers for tasks that were moved on the way.
    #[inline]
    pub(super) fn next_task(&self, slot: &WorkerSlot, finished: Option<Task>) -> Option<Task> {
        let task = self.strategy.next(slot, finished, &mut None);
        if let Some(target) = self.strategy.take_moved(slot) {
            self.notify(target);
        }
        // While tasks were on their way from one slot to another none seemed ready, and the monitor
        // may have gone off duty.
        if let Some(monitor) = &self.pool.monitor
            && task.is_some()
            && self.strategy.len() > 0
        {
            monitor.notify_work();
        }
        task
    }

    /// Searches for the worker, which has found nothing: see
    /// [`Core::search`](crate::workers::core::Core::search).
    pub(super) fn search_until(
        &self,
        worker: &Worker,
        stop: &dyn Fn() -> bool,
        watch: &dyn Fn() -> bool,
    ) -> Option<Work> {
        let pool = &self.pool;
        let slot = worker.slot();
        let _excused = pool.excuse(worker);
        pool.sleep.start_searching();
        let mut kept_awake = false;
        let work = loop {
            self.strategy.idle(slot);
            let found = worker.spin(|| {
                // The awaited thing has come, or a broadcast.
                if stop() || pool.has_calls(worker) {
                    return Some(None);
                }
                // A task is ready, unless another worker takes it first.
                if self.strategy.is_ready(slot) {
                    if let Some(task) = self.next_task(slot, None) {
                        return Some(Some(Work::Task(task)));
                    }
                    self.strategy.idle(slot);
                }
                worker.steal_fork().map(|stolen| Some(Work::Fork(stolen)))
            });
            // Found while spinning.
            if let Some(work) = found {
                break work;
            }
            // Whatever is handed to a sleeping worker waits for its wake-up. It is better left to
            // the first worker that comes.
            if let Some(target) = self.strategy.leave(slot) {
                self.notify(target);
            }
            let doze = pool.others_work().then(|| worker.next_doze()).flatten();
            let slept = pool.sleep.sleep(slot.index(), doze, |looks| {
                let ready = match looks {
                    LastCheck::All => self.strategy.is_ready(slot),
                    LastCheck::SkipLone => self.strategy.has_backlog(slot),
                };
                ready || pool.has_forks() || !watch() || pool.has_calls(worker)
            });
            worker.counters().parks.add(usize::from(slept));
            // The last look has kept this worker awake twice in a row.
            if kept_awake && !slept {
                // What keeps it awake may be forks that their owners pop at once. An owner may need
                // this processor, and so may a worker that was woken and has not run yet.
                stanchion_machine::thread::yield_now();
            }
            kept_awake = !slept;
        };
        if work.is_some() {
            worker.found_work();
        }
        // It does not wait for a task any more.
        if !matches!(work, Some(Work::Task(_)))
            && let Some(target) = self.strategy.leave(slot)
        {
            self.notify(target);
        }
        worker.counters().wakeups.add(pool.sleep.stop_searching(|| self.has_ready()));
        work
    }
}
