//! The threads of a higher priority, to which the thread that runs gives way.

use super::state::Worker;
use crate::thread::handle::Thread;
use crate::thread::priority::Priority;

impl Worker {
    /// Returns whether another worker waits for a slot with a thread of a higher priority.
    fn is_slot_wanted_above(&self, priority: Priority) -> bool {
        let idle_workers = &self.runtime.processors.idle_workers;
        let above = Priority::ALL.get(priority as usize + 1);
        above.is_some_and(|&above| idle_workers.waiting_from(above) > 0)
    }

    /// Returns whether a thread of a higher priority than normal is ready.
    #[inline]
    pub(super) fn has_urgent(&self) -> bool {
        let prioritized = &self.runtime.ready.prioritized;
        prioritized.is_used()
            && (prioritized.any_above(Priority::Normal)
                || self.is_slot_wanted_above(Priority::Normal))
    }

    /// Returns whether the thread that runs should let one of a higher priority run.
    #[inline]
    pub(super) fn should_give_way(&self) -> bool {
        self.runtime.ready.prioritized.is_used()
            && self.with_current(|thread| self.is_outranked(thread)) == Some(true)
    }

    /// Returns whether a thread is ready that has a higher priority and that this worker may run.
    #[cold]
    fn is_outranked(&self, thread: &Thread) -> bool {
        let priority = thread.header().priority();
        // There is no higher priority.
        if priority == Priority::High {
            return false;
        }
        if self.record().mailbox.is_full() {
            self.read_mailbox();
        }
        self.local_queue.borrow().any_above(priority)
            || self.is_slot_wanted_above(priority)
            || self.runtime.ready.prioritized.any_above(priority)
            || priority < Priority::Normal && self.is_any_ready()
    }
}
