//! Functions that the tests of strategies share.
#![allow(dead_code)]

use std::cell::Cell;

use lock_api::RawMutex;
use stanchion_spin::TestAndSet;
use stanchion_threadpool::{Strategy, TASK_WORDS, Task, WorkerSlot};

/// Returns all slots of a strategy that has just been made.
pub(crate) fn slots(count: usize) -> Vec<WorkerSlot> {
    // SAFETY: each caller asks once for each strategy.
    (0..count).map(|index| unsafe { WorkerSlot::new(index) }).collect()
}

/// Writes `value` into the first and the last word.
pub(crate) fn fill(task: &Task, value: usize) {
    let first = task.words();
    // SAFETY: a task has so many words.
    let last = unsafe { first.add(TASK_WORDS - 1) };
    // SAFETY: the thread that fills a task has it alone; so below.
    unsafe { first.write(value) };
    // SAFETY: as above.
    unsafe { last.write(!value) };
}

/// Returns the value that was written.
pub(crate) fn value(task: &Task) -> usize {
    let first = task.words();
    // SAFETY: a task has so many words.
    let last = unsafe { first.add(TASK_WORDS - 1) };
    // SAFETY: the task was filled, and is the caller's.
    let value = unsafe { first.read() };
    // SAFETY: as above.
    assert_eq!(unsafe { last.read() }, !value, "written by two");
    value
}

/// Looks for a task until there is none: a strategy may leave one to another worker for a few
/// looks.
pub(crate) fn look(
    strategy: &impl Strategy,
    slot: &WorkerSlot,
    mut finished: Option<Task>,
) -> Option<Task> {
    (0..8).find_map(|_| strategy.next(slot, finished.take(), &mut None))
}

/// Takes all tasks out, each worker those that it finds, after all have left.
pub(crate) fn drain(strategy: &impl Strategy, slots: &[WorkerSlot]) -> Vec<usize> {
    let mut values = Vec::new();
    for slot in slots {
        let _ = strategy.leave(slot);
    }
    for slot in slots {
        // Tasks that workers handed to it that have left after it.
        let mut finished = None;
        while let Some(task) = look(strategy, slot, finished.take()) {
            values.push(value(&task));
            finished = Some(task);
        }
    }
    assert!(strategy.is_empty(), "{} left", strategy.len());
    values
}

thread_local! {
    static ACQUISITIONS: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often the calling thread has acquired a [`Counting`] lock.
pub(crate) fn acquisitions() -> u64 {
    ACQUISITIONS.get()
}

/// A lock that counts.
#[derive(Debug)]
pub(crate) struct Counting(TestAndSet);

// SAFETY: the inner lock's.
unsafe impl RawMutex for Counting {
    const INIT: Self = Self(TestAndSet::INIT);
    type Guard = <TestAndSet as RawMutex>::Guard;

    fn lock(&self) -> Self::Guard {
        ACQUISITIONS.set(ACQUISITIONS.get() + 1);
        self.0.lock()
    }

    fn try_lock(&self) -> Option<Self::Guard> {
        self.0.try_lock().inspect(|_| ACQUISITIONS.set(ACQUISITIONS.get() + 1))
    }

    unsafe fn unlock(&self, guard: Self::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock(guard) };
    }

    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}
