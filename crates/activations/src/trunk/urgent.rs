//! What a carrier does for priorities (`priority.rs`).

use crate::priority::Priority;
use crate::thread::Thread;

use super::Local;

impl Local {
    /// A thread of that priority that this carrier may run, if one is ready; not of the usual.
    #[inline]
    pub(super) fn take_unusual(&self, priority: Priority) -> Option<Thread> {
        if !self.shared.unusual().is_used() {
            return None;
        }
        let own = self.bound.borrow_mut().pop(priority);
        own.or_else(|| self.shared.unusual().take(priority))
    }

    /// The least urgent, if one is ready; or one of the usual, which comes before it even if it lies where taking it does not pay (`thrift.rs`).
    #[inline]
    pub(super) fn take_low(&self) -> Option<Thread> {
        let unusual = self.shared.unusual();
        if !unusual.is_used()
            || !(self.bound.borrow().has(Priority::Low) || unusual.has(Priority::Low))
        {
            return None;
        }
        self.take_ready_anywhere().or_else(|| self.take_unusual(Priority::Low))
    }

    /// Whether one is ready that comes before the usual ones.
    #[inline]
    pub(super) fn has_urgent(&self) -> bool {
        let unusual = self.shared.unusual();
        unusual.is_used() && unusual.any_above(Priority::Normal)
    }

    /// Whether the thread that runs here should let a more urgent one run.
    #[inline]
    pub(crate) fn should_give_way(&self) -> bool {
        self.shared.unusual().is_used()
            && self.with_current(|thread| self.outranks(thread)) == Some(true)
    }

    /// Whether a thread is ready that is more urgent than that, and that this carrier may run.
    #[cold]
    fn outranks(&self, thread: &Thread) -> bool {
        let priority = thread.inner().priority();
        if priority == Priority::High {
            return false;
        }
        if self.carrier().has_mail() {
            self.read_mail();
        }
        self.bound.borrow().any_above(priority)
            || self.shared.unusual().any_above(priority)
            || priority < Priority::Normal
                && self.with_hold(|hold| {
                    hold.is_some_and(|hold| self.shared.ready_queue().is_ready(&hold.place))
                })
    }
}
