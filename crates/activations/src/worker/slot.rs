//! How a worker comes by a slot, and how it gives it up: to one that wants it, because it is going
//! to block, or because there are too many.
//!
//! Who has been without one does not go on before [`await_slot`](Worker::await_slot) has returned.

use machine::clock;
use machine::topology;
use stanchion_threadpool::Told;

use crate::processors::idle_workers::Rest;
use crate::processors::ownership::Woken;
use crate::thread::header::Thread;

use super::scheduler_loop::{Worker, SHARE};

impl Worker {
    /// It is about to block: gives its slot to somebody who has something to do, if there is such
    /// work, or if nobody would notice when there is.
    pub(crate) fn give_slot_before_block(&self) {
        let runtime = &self.runtime;
        self.will_block();
        if (runtime.has_work() || !runtime.activations()) && runtime.can_replace() {
            runtime.take_slot(self.worker().slot(), self.index);
        }
    }

    /// Whether its slot is one of those that the runtime uses; if not it is closed, and the worker
    /// has none.
    #[inline]
    pub(super) fn stays_open(&self, looks: u32) -> bool {
        let (runtime, slot) = (&self.runtime, self.worker().slot());
        if runtime.overcommit().has(slot) {
            return !runtime.overcommit().has_too_many() || !self.close_one_too_many(slot);
        }
        if runtime.limit().poll(looks.is_multiple_of(SHARE)) {
            runtime.open_slots();
        }
        slot < runtime.limit().allowed() || !self.close_slot(slot)
    }

    /// It gives up its slot, or has slept on it: what is ready there is for others from now on.
    /// Whom to tell.
    pub(super) fn leave_place(&self) -> Option<Told> {
        self.runtime.stop_lost_time(self.worker().slot());
        self.with_hold(|hold| hold.and_then(|hold| self.runtime.ready_queue().leave(&hold.place)))
    }

    /// Its slot is one of the overcommit: closes it, if there are too many.
    #[cold]
    fn close_one_too_many(&self, slot: usize) -> bool {
        let told = self.leave_place();
        let closed = self.runtime.overcommit().close_one_too_many(slot);
        if closed {
            self.has_slot.set(false);
        }
        if let Some(told) = told {
            self.runtime.wake(told);
        }
        closed
    }

    #[cold]
    fn close_slot(&self, slot: usize) -> bool {
        self.unwatch();
        let runtime = &self.runtime;
        let told = self.leave_place();
        let closed = runtime.idle_workers().close(slot, || slot < runtime.limit().allowed());
        if closed {
            self.has_slot.set(false);
            runtime.limit().closed(true);
        }
        // Somebody else has to do what this one was told of.
        runtime.wake(told.unwrap_or(Told::Anyone(1)));
        closed
    }

    /// Gives the slot away to a worker that wants one; whether there was one.
    pub(super) fn give_slot(&self) -> bool {
        self.unwatch();
        let slot = self.worker().slot();
        self.runtime.stop_lost_time(slot);
        self.leave_turns();
        let given = self.runtime.idle_workers().give(false, |to| self.runtime.assign_slot(slot, to));
        if given {
            self.has_slot.set(false);
        }
        given
    }

    /// Leaves its slot, with a thread that may run on any worker, to one without bound_threads. Gives the
    /// thread back if there is none.
    #[cold]
    pub(super) fn send_elsewhere(&self, thread: Thread) -> Option<Thread> {
        let runtime = &self.runtime;
        let Some(to) = runtime.free_carrier() else { return Some(thread) };
        self.unwatch();
        let slot = self.worker().slot();
        runtime.stop_lost_time(slot);
        self.leave_turns();
        runtime.worker(to).mail(thread);
        self.has_slot.set(false);
        runtime.assign_slot(slot, to);
        None
    }

    /// It has no slot: waits until it is given one. `false` if the runtime ends.
    pub(super) fn await_slot(&self) -> bool {
        if self.worker().has_mail() {
            self.read_mail();
        }
        let wants = self.local_queue.borrow().highest();
        let runtime = &self.runtime;
        let goes_on = self.count_return()
            && (wants.is_some() || runtime.has_work())
            && runtime.has_idle_processor();
        let rest = match goes_on.then(|| runtime.overcommit().open()).flatten() {
            Some(slot) => {
                runtime.counters().overcommit.raise();
                Rest::Slot(slot)
            }
            None => {
                self.pinned.take();
                runtime.idle_workers().rest(self.index, self.worker(), wants, self.bound_threads.has_any())
            }
        };
        match rest {
            Rest::Slot(slot) => self.runtime.assign_slot(slot, self.index),
            Rest::Wanting => self.runtime.wake(Told::Anyone(1)),
            Rest::Spare => {
                self.runtime.end_if_done();
            }
        }
        // Its sleep is nothing that the monitor need be told of.
        runtime.monitor().pause(self.worker());
        if self.worker().ownership().sleep() == Woken::End {
            return false;
        }
        self.settle();
        true
    }

    /// It has come back to find its slot taken, or has given it away itself: whether it is the
    /// former.
    fn count_return(&self) -> bool {
        let worker = self.worker();
        let was_taken = worker.ownership().is_lost();
        if was_taken {
            self.runtime.runs_here(self.index);
            if self.runtime.delay().learn(clock::now().nanos_since(worker.lost_at())) {
                self.runtime.counters().false_handovers.raise();
            }
        }
        was_taken
    }

    /// It has been given a slot.
    pub(super) fn settle(&self) {
        self.has_slot.set(true);
        self.begin_turns();
        self.runtime.monitor().begin(self.worker());
        let slot = self.worker().slot();
        self.runtime.note_started(slot);
        if let Some(processor) = self.runtime.processor_of(slot) {
            let mut pinned = self.pinned.borrow_mut();
            if pinned.as_ref().is_none_or(|&(on, _)| on != processor) {
                // The old one first: guards are dropped in reverse order of their making.
                drop(pinned.take());
                *pinned = topology::pin(processor).ok().map(|pin| (processor, pin));
            }
        }
    }
}
