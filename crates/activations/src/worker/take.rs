//! The runtime's ready queue, as a worker uses it, and the decision to steal from other slots
//! (`steal_throttle.rs`).

use stanchion_machine::clock;

use super::state::Worker;
use crate::processors::slot::SlotContents;
use crate::queues::ready::{QueueIndex, Task, WakeTarget};
use crate::thread::handle::Thread;
use crate::thread::priority::Priority;

/// The tries to take a thread of normal priority. A strategy may leave another slot its last thread
/// for the first few tries, and the owner of that slot may be in its queue.
const TRIES: u32 = 8;

/// The rounds in which a worker tries to take a thread of normal priority before one of low
/// priority, while such threads are made ready meanwhile.
const ROUNDS: u32 = 3;

impl Worker {
    /// Makes a thread of normal priority ready that any worker may run.
    #[inline]
    pub(super) fn put_ready(&self, thread: Thread, last: bool) {
        let runtime = &self.runtime;
        let (target, is_local) = self.with_slot(|slot| {
            let is_local = slot.is_some();
            (runtime.ready.normal.put(slot.map(|slot| &slot.index), thread, last), is_local)
        });
        runtime.wake_unless_timed(target, is_local);
    }

    /// Takes a thread of normal priority that any worker may run.
    #[inline]
    pub(super) fn take_ready(&self) -> Option<Thread> {
        self.take_by(|index, spent| {
            let ready = &self.runtime.ready.normal;
            // The thread lies on this slot.
            if self.runtime.processors.count() == 1 || ready.is_ready_here(index) {
                ready.take(index, spent)
            } else {
                // At most other slots have one.
                self.steal(index, spent)
            }
        })
    }

    /// Takes a thread of low priority, or one of normal priority. That comes first even if it lies
    /// on a slot from which it does not pay to steal.
    #[cold]
    pub(super) fn take_low(&self) -> Option<Thread> {
        let prioritized = &self.runtime.ready.prioritized;
        let either = (0..ROUNDS).find_map(|_| {
            self.take_ready_anywhere()
                .or_else(|| prioritized.take_unless(Priority::Low, || self.is_any_ready()))
        });
        // The normal threads that are ready elsewhere cannot be taken now.
        either.or_else(|| prioritized.take(Priority::Low))
    }

    /// Does the same as [`take_ready`](Self::take_ready), whether it pays or not.
    fn take_ready_anywhere(&self) -> Option<Thread> {
        let ready = &self.runtime.ready.normal;
        let attempt = |index: &QueueIndex, spent: &mut Option<Task>| {
            if ready.is_ready(index) { ready.take(index, spent) } else { None }
        };
        self.take_by(|index, spent| (0..TRIES).find_map(|_| attempt(index, spent)))
    }

    /// Takes a thread by a function. Wakes other workers for the threads that this has moved here.
    #[inline]
    fn take_by(
        &self,
        take: impl FnOnce(&QueueIndex, &mut Option<Task>) -> Option<Thread>,
    ) -> Option<Thread> {
        let (thread, moved) = self.with_slot(|slot| match slot {
            Some(SlotContents { index, spent }) => {
                (take(index, spent), self.runtime.ready.normal.moved(index))
            }
            // The slot is gone.
            None => (None, None),
        });
        // Threads came along from another slot.
        if let Some(target) = moved {
            self.runtime.wake_unless_timed(target, true);
        }
        thread
    }

    /// Takes a thread that lies on another slot, if stealing has been paying.
    #[cold]
    fn steal(&self, index: &QueueIndex, spent: &mut Option<Task>) -> Option<Thread> {
        let started = clock::now();
        // The last steals did not pay: leave the others alone.
        if !self.steal_throttle.may_steal(started) {
            return None;
        }
        let thread = self.runtime.ready.normal.take(index, spent);
        self.steal_throttle.count_steal(started, thread.is_some());
        thread
    }

    /// Returns whether a thread of normal priority is ready that any worker may run, on any slot.
    pub(super) fn is_any_ready(&self) -> bool {
        let ready = &self.runtime.ready.normal;
        self.with_slot(|slot| slot.is_some_and(|slot| ready.is_ready(&slot.index)))
    }

    /// Returns whether such a thread is ready that this worker would take.
    pub(super) fn may_take_ready(&self) -> bool {
        let ready = &self.runtime.ready.normal;
        self.with_slot(|slot| {
            slot.is_some_and(|SlotContents { index, .. }| {
                ready.is_ready(index)
                    && (ready.is_ready_here(index) || self.steal_throttle.pause().is_none())
            })
        })
    }

    /// Wakes another worker, because this one was woken, and goes on with one thread: the rest of
    /// the work, and of the watching, is for another worker.
    ///
    /// Why: a thread that makes work ready wakes one sleeper. If that one finds other work first,
    /// the others would sleep while there is work that they could do.
    pub(super) fn pass_wake_on(&self) {
        let runtime = &self.runtime;
        let is_waiting = runtime.processors.idle_workers.waiting() > 0;
        // Any worker can do it.
        if is_waiting || runtime.ready.prioritized.any() || runtime.is_time_unwatched() {
            runtime.wake(WakeTarget::Any(1));
        } else if self.is_any_ready() {
            // There are threads, which lie on some slot.
            runtime.wake_unless_timed(WakeTarget::Any(1), true);
        }
    }
}
