//! What a worker does for priorities (`priority.rs`).

use crate::thread::priority::Priority;
use crate::thread::header::Thread;

use super::scheduler_loop::Worker;

impl Worker {
    /// Whether a worker with a thread that is more urgent than that wants a slot.
    fn slot_wanted_above(&self, priority: Priority) -> bool {
        let above = Priority::ALL.get(priority as usize + 1);
        above.is_some_and(|&above| self.runtime.idle_workers().waiting_from(above) > 0)
    }

    /// Whether one is ready that comes before the usual ones.
    #[inline]
    pub(super) fn has_urgent(&self) -> bool {
        let prioritized = self.runtime.prioritized();
        prioritized.is_used()
            && (prioritized.any_above(Priority::Normal) || self.slot_wanted_above(Priority::Normal))
    }

    /// Whether the thread that runs here should let a more urgent one run.
    #[inline]
    pub(crate) fn should_give_way(&self) -> bool {
        self.runtime.prioritized().is_used()
            && self.with_current(|thread| self.outranks(thread)) == Some(true)
    }

    /// Whether a thread is ready that is more urgent than that, and that this worker may run.
    #[cold]
    fn outranks(&self, thread: &Thread) -> bool {
        let priority = thread.header().priority();
        if priority == Priority::High {
            return false;
        }
        if self.worker().has_mail() {
            self.read_mail();
        }
        self.local_queue.borrow().any_above(priority)
            || self.slot_wanted_above(priority)
            || self.runtime.prioritized().any_above(priority)
            || priority < Priority::Normal
                && self.with_hold(|hold| {
                    hold.is_some_and(|hold| self.runtime.ready_queue().is_ready(&hold.place))
                })
    }
}
