//! The polls of a worker, where the runtime tells them.

use std::panic::Location;
use std::ptr;

use stanchion_machine::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A task that a worker polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// Its number in the runtime.
    pub id: u64,
    /// The place at which it was spawned.
    pub spawned_at: &'static Location<'static>,
}

/// The polls of a worker. Only its own thread writes.
#[derive(Debug)]
pub(crate) struct Polls {
    /// Beginnings and ends of polls: odd during a poll.
    count: AtomicU64,
    /// The number of the task that was polled last.
    task: AtomicU64,
    /// The place at which that task was spawned. Null before the first poll.
    spawned_at: AtomicPtr<Location<'static>>,
}

impl Polls {
    /// Begins with no polls.
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            task: AtomicU64::new(0),
            spawned_at: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Notes that a poll begins.
    #[cfg_attr(not(tokio_unstable), allow(dead_code, reason = "stable tokio tells no polls"))]
    pub(crate) fn begin(&self, task: u64, spawned_at: &'static Location<'static>) {
        // Release: pairs with the second load of `read`. A reader that sees what is written below
        // sees that the last poll has ended.
        self.task.store(task, Ordering::Release);
        self.spawned_at.store(ptr::from_ref(spawned_at).cast_mut(), Ordering::Release);
        // Relaxed: this thread wrote it.
        let count = self.count.load(Ordering::Relaxed);
        // Release: pairs with the first load of `read`. A reader of this count sees the task.
        self.count.store(count + 1, Ordering::Release);
    }

    /// Notes that a poll ends.
    #[cfg_attr(not(tokio_unstable), allow(dead_code, reason = "stable tokio tells no polls"))]
    pub(crate) fn end(&self) {
        // Relaxed: this thread wrote it. The next `begin` lets readers of its task see the end.
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Returns the number of polls that have begun, and the task that is polled now.
    pub(crate) fn read(&self) -> (u64, Option<Task>) {
        // Acquire: pairs with the store of the count in `begin`.
        let count = self.count.load(Ordering::Acquire);
        // Acquire: each pairs with its store in `begin`. If it is of a later poll, the second load
        // of the count sees that this poll has ended.
        let id = self.task.load(Ordering::Acquire);
        let spawned_at = self.spawned_at.load(Ordering::Acquire);
        let is_same = self.count.load(Ordering::Relaxed) == count;
        // SAFETY: it is null, or made from a reference to a location that is never freed.
        let spawned_at = unsafe { spawned_at.as_ref() };
        let task = spawned_at.filter(|_| is_same && !count.is_multiple_of(2));
        (count.div_ceil(2), task.map(|spawned_at| Task { id, spawned_at }))
    }
}

#[cfg(all(test, not(stanchion_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_there_during_its_poll() {
        let polls = Polls::new();
        assert_eq!(polls.read(), (0, None));
        let here = Location::caller();
        polls.begin(7, here);
        assert_eq!(polls.read(), (1, Some(Task { id: 7, spawned_at: here })));
        polls.end();
        assert_eq!(polls.read(), (1, None));
        polls.begin(8, here);
        assert_eq!(polls.read(), (2, Some(Task { id: 8, spawned_at: here })));
    }
}
