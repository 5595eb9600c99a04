//! What a carrier does for priorities (`priority.rs`).

use crate::thread::priority::Priority;
use crate::thread::header::Thread;

use super::scheduler_loop::Local;

impl Local {
    /// Whether a carrier with a thread that is more urgent than that wants a seat.
    fn wants_seat_above(&self, priority: Priority) -> bool {
        let above = Priority::ALL.get(priority as usize + 1);
        above.is_some_and(|&above| self.shared.reserve().waiting_from(above) > 0)
    }

    /// Whether one is ready that comes before the usual ones.
    #[inline]
    pub(super) fn has_urgent(&self) -> bool {
        let unusual = self.shared.unusual();
        unusual.is_used()
            && (unusual.any_above(Priority::Normal) || self.wants_seat_above(Priority::Normal))
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
            || self.wants_seat_above(priority)
            || self.shared.unusual().any_above(priority)
            || priority < Priority::Normal
                && self.with_hold(|hold| {
                    hold.is_some_and(|hold| self.shared.ready_queue().is_ready(&hold.place))
                })
    }
}
