//! How a worker uses the runtime's ready queue, and when it takes from it what lies at other slots
//! (`steal_throttle.rs`).

use machine::clock;
use stanchion_threadpool::{Place, Task, Told};

use crate::thread::priority::Priority;
use crate::processors::slot::SlotContents;
use crate::thread::header::Thread;

use super::scheduler_loop::Worker;

/// A strategy may leave another slot its last thread for the first few looks, and who has it may be
/// in its queue.
const TRIES: u32 = 8;

/// So often a worker tries to take a thread of the usual priority before one of low priority,
/// while such are made ready beside it.
const ROUNDS: u32 = 3;

impl Worker {
    /// A thread of the usual priority is ready, which any worker may run.
    #[inline]
    pub(super) fn put_ready(&self, thread: Thread, last: bool) {
        let runtime = &self.runtime;
        let (told, own) = self.with_hold(|hold| {
            let own = hold.is_some();
            (runtime.ready_queue().put(hold.map(|hold| &hold.place), thread, last), own)
        });
        runtime.wake_for(told, own);
    }

    #[inline]
    pub(super) fn take_ready(&self) -> Option<Thread> {
        self.take_by(|place, spent| {
            let ready = self.runtime.ready_queue();
            if self.runtime.slots() == 1 || ready.is_ready_here(place) {
                ready.take(place, spent)
            } else {
                self.take_elsewhere(place, spent)
            }
        })
    }

    /// Takes a thread of low priority, or one of the usual priority: that comes first even if it
    /// lies where taking it does not pay.
    #[cold]
    pub(super) fn take_low(&self) -> Option<Thread> {
        let prioritized = self.runtime.prioritized();
        let either = (0..ROUNDS).find_map(|_| {
            self.take_ready_anywhere()
                .or_else(|| prioritized.take_unless(Priority::Low, || self.is_any_ready()))
        });
        // What is ready elsewhere cannot be taken now.
        either.or_else(|| prioritized.take(Priority::Low))
    }

    /// As [`take_ready`](Self::take_ready), whether it pays or not.
    fn take_ready_anywhere(&self) -> Option<Thread> {
        let ready = self.runtime.ready_queue();
        self.take_by(|place, spent| {
            (0..TRIES).find_map(
                |_| {
                    if ready.is_ready(place) { ready.take(place, spent) } else { None }
                },
            )
        })
    }

    /// Takes one at its slot, in that way; others are told of what that has moved here.
    #[inline]
    fn take_by(
        &self,
        take: impl FnOnce(&Place, &mut Option<Task>) -> Option<Thread>,
    ) -> Option<Thread> {
        let (thread, moved) = self.with_hold(|hold| match hold {
            Some(SlotContents { place, spent }) => {
                (take(place, spent), self.runtime.ready_queue().moved(place))
            }
            None => (None, None),
        });
        if let Some(told) = moved {
            self.runtime.wake_for(told, true);
        }
        thread
    }

    /// There is nothing here: takes what lies at another slot, if that has been paying.
    #[cold]
    fn take_elsewhere(&self, place: &Place, spent: &mut Option<Task>) -> Option<Thread> {
        let started = clock::now();
        if !self.steal_throttle.may_take(started) {
            return None;
        }
        let thread = self.runtime.ready_queue().take(place, spent);
        self.steal_throttle.has_tried(started, thread.is_some());
        thread
    }

    /// Whether there is something ready that any worker may run, wherever it lies.
    pub(super) fn is_any_ready(&self) -> bool {
        let ready = self.runtime.ready_queue();
        self.with_hold(|hold| hold.is_some_and(|SlotContents { place, .. }| ready.is_ready(place)))
    }

    /// Whether there is something ready that it would take.
    pub(super) fn may_take_ready(&self) -> bool {
        let ready = self.runtime.ready_queue();
        self.with_hold(|hold| {
            hold.is_some_and(|SlotContents { place, .. }| {
                ready.is_ready(place)
                    && (ready.is_ready_here(place) || self.steal_throttle.pause().is_none())
            })
        })
    }

    /// It was woken, and goes on with one thread: what else there is to do, and to look at, is
    /// another's.
    ///
    /// Why: who makes something ready wakes one sleeper. If that finds something of its own first,
    /// the others sleep beside what they could do.
    pub(super) fn pass_on(&self) {
        let runtime = &self.runtime;
        if runtime.idle_workers().waiting() > 0 || runtime.prioritized().any() || runtime.is_time_unwatched() {
            runtime.wake(Told::Anyone(1));
        } else if self
            .with_hold(|hold| hold.is_some_and(|hold| runtime.ready_queue().is_ready(&hold.place)))
        {
            runtime.wake_for(Told::Anyone(1), true);
        }
    }
}
