//! Making a thread ready for any worker, and waking a worker for it.

use stanchion_machine::clock::Deadline;

use super::state::RuntimeState;
use crate::detection::monitor::ensure_watched;
use crate::queues::ready::WakeTarget;
use crate::queues::timers::TimerKey;
use crate::thread::handle::Thread;
use crate::thread::priority::Priority;

impl RuntimeState {
    /// Wakes workers for threads that were made ready.
    pub(crate) fn wake(&self, target: WakeTarget) {
        self.wake_unless_timed(target, false);
    }

    /// Does the same. If the threads are `local`, they lie on the caller's slot, and timed parks
    /// are left alone.
    pub(crate) fn wake_unless_timed(&self, target: WakeTarget, local: bool) {
        let parked = &self.processors.parked;
        let woken = match target {
            WakeTarget::Any(count) => parked.wake(count, local),
            WakeTarget::Lone => parked.wake(1, local),
            WakeTarget::Worker(slot) => return parked.wake_slot(slot),
        };
        // No slot was free.
        if woken == 0 {
            self.processors.limit.request_all();
            ensure_watched(self);
        }
    }

    /// Makes a thread ready that any worker may run. The caller is no worker of the runtime.
    pub(crate) fn make_ready_outside(&self, thread: Thread) {
        if thread.header().priority() == Priority::Normal {
            let target = self.ready.normal.put(None, thread, false);
            self.wake(target);
        } else {
            self.make_ready_prioritized(thread);
        }
    }

    /// Makes a thread ready that any worker may run, and that is not of normal priority.
    pub(crate) fn make_ready_prioritized(&self, thread: Thread) {
        self.ready.prioritized.put(thread);
        self.wake(WakeTarget::Any(1));
    }

    /// Makes a thread ready that is bound to another worker.
    pub(crate) fn send_to(&self, worker: usize, thread: Thread) {
        let record = self.workers.record(worker);
        let priority = thread.header().priority();
        record.mailbox.send(thread);
        let processors = &self.processors;
        // The worker was idle: it waits for a slot now, and another worker is to know.
        if processors.idle_workers.notify(worker, record.ownership(), priority) {
            self.wake(WakeTarget::Any(1));
        // It may sleep on its slot. On slots beyond the processors no worker sleeps.
        } else if !processors.overcommit.has(record.slot()) {
            processors.parked.wake_slot(record.slot());
        }
    }

    /// Has `thread` notified at `due`.
    pub(crate) fn add_timer(&self, due: Deadline, thread: Thread) -> TimerKey {
        let (key, late) = self.ready.timers.add(due, thread);
        if late.monitor {
            self.detection.monitor.wake();
        }
        // The sleeping workers sleep until a later time. The running ones may run for long, or
        // block.
        if late.timekeeper && self.processors.parked.wake(1, false) == 0 {
            ensure_watched(self);
        }
        key
    }
}
