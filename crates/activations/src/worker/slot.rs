//! The slot of a worker: how it comes by one, and how it gives it up. It gives it to a worker that
//! waits for one, because it is going to block, or because there are too many slots.
//!
//! A worker that has been without a slot does not go on before [`await_slot`](Worker::await_slot)
//! has returned.

use stanchion_machine::{clock, topology};

use super::scheduler_loop::RARELY;
use super::state::Worker;
use crate::processors::idle_workers::Rest;
use crate::processors::ownership::WokenFor;
use crate::queues::ready::WakeTarget;
use crate::thread::handle::Thread;
use crate::upcalls::{handoff, look, lost_time};

impl Worker {
    /// Gives the slot away before the thread that runs blocks, if there is other work, or if no
    /// thread would notice when there is.
    pub(crate) fn give_slot_before_block(&self) {
        let runtime = &self.runtime;
        self.turn.kind.get().count_block();
        // Another worker would use the slot, or no thread would notice the block.
        if (runtime.has_work() || !runtime.detection.is_on) && runtime.can_replace() {
            handoff::take_slot(runtime, self.record().slot(), self.index);
        }
    }

    /// Returns whether the slot is one of those that the runtime uses. If not, the slot is closed,
    /// and the worker has none.
    #[inline]
    pub(super) fn stays_open(&self, looks: u32) -> bool {
        let (processors, slot) = (&self.runtime.processors, self.record().slot());
        // A slot beyond the processors closes if there are too many.
        if processors.overcommit.has(slot) {
            return !processors.overcommit.has_excess() || !self.close_excess(slot);
        }
        // The arbiter has changed the share.
        if processors.limit.poll(looks.is_multiple_of(RARELY)) {
            handoff::open_slots(&self.runtime);
        }
        slot < processors.limit.allowed() || !self.close_slot(slot)
    }

    /// Leaves the threads that are ready on this slot to others, because the worker gives the slot
    /// up or has slept on it. Returns the slots to wake.
    pub(super) fn leave_queue(&self) -> Option<WakeTarget> {
        lost_time::stop(&self.runtime, self.record().slot());
        let ready = &self.runtime.ready.normal;
        self.with_slot(|slot| slot.and_then(|slot| ready.leave(&slot.index)))
    }

    /// Closes a slot beyond the processors, if there are too many. Returns whether it was closed.
    #[cold]
    fn close_excess(&self, slot: usize) -> bool {
        let target = self.leave_queue();
        let closed = self.runtime.processors.overcommit.close_excess(slot);
        if closed {
            self.has_slot.set(false);
        }
        // The threads of its queue are for others.
        if let Some(target) = target {
            self.runtime.wake(target);
        }
        closed
    }

    /// Closes a slot above the limit. Returns whether it was closed.
    #[cold]
    fn close_slot(&self, slot: usize) -> bool {
        self.resign_timekeeper();
        let processors = &self.runtime.processors;
        let target = self.leave_queue();
        let closed = processors.idle_workers.close(slot, || slot < processors.limit.allowed());
        if closed {
            self.has_slot.set(false);
            processors.limit.slot_closed();
        }
        // Another worker has to do the work for which this one was woken.
        self.runtime.wake(target.unwrap_or(WakeTarget::Any(1)));
        closed
    }

    /// Prepares to leave the slot to another worker. Returns its number.
    fn prepare_to_leave(&self) -> usize {
        let slot = self.record().slot();
        lost_time::stop(&self.runtime, slot);
        self.end_tenure();
        slot
    }

    /// Gives the slot to a worker that waits for one. Returns whether there was one.
    pub(super) fn give_slot(&self) -> bool {
        self.resign_timekeeper();
        let slot = self.prepare_to_leave();
        let to = self.runtime.processors.idle_workers.take_next(false);
        // The worker goes on without a slot.
        if let Some(to) = to {
            handoff::assign_slot(&self.runtime, slot, to);
            self.has_slot.set(false);
        }
        to.is_some()
    }

    /// Sends a thread that any worker may run, together with the slot, to a worker without bound
    /// threads. Returns the thread if there is no such worker.
    #[cold]
    pub(super) fn send_away(&self, thread: Thread) -> Option<Thread> {
        let runtime = &self.runtime;
        let Some(to) = handoff::take_free_worker(runtime) else { return Some(thread) };
        self.resign_timekeeper();
        let slot = self.prepare_to_leave();
        runtime.workers.record(to).mailbox.send(thread);
        self.has_slot.set(false);
        handoff::assign_slot(runtime, slot, to);
        None
    }

    /// Waits until the worker, which owns no slot, is given one. Returns `false` if the runtime
    /// ends.
    pub(super) fn await_slot(&self) -> bool {
        let record = self.record();
        // Threads that are bound to it count as its work.
        if record.mailbox.is_full() {
            self.read_mailbox();
        }
        let (runtime, processors) = (&self.runtime, &self.runtime.processors);
        let ready = self.local_queue.borrow().highest();
        // It is back from a block, has work, and a processor is idle: it opens a slot beyond the
        // processors, if it may.
        let may_overcommit = self.count_return()
            && (ready.is_some() || runtime.has_work())
            && runtime.has_idle_processor();
        let rest = match may_overcommit.then(|| processors.overcommit.open()).flatten() {
            // It has opened one.
            Some(slot) => {
                runtime.detection.counters.returns_at_once.increment();
                Rest::Slot(slot)
            }
            // It rests, unless a slot is vacant.
            None => {
                self.pinned.take();
                let (mailed, has_bound) = (|| record.mailed_priority(), self.bound_threads.any());
                let ownership = record.ownership();
                processors.idle_workers.rest(self.index, ownership, ready, mailed, has_bound)
            }
        };
        match rest {
            // It goes on at once.
            Rest::Slot(slot) => handoff::assign_slot(runtime, slot, self.index),
            // A sleeping worker may give its slot up.
            Rest::Waiting => runtime.wake(WakeTarget::Any(1)),
            // It has nothing to do. Its last thread may have been the runtime's last.
            Rest::Idle => {
                runtime.end_if_done();
            }
        }
        // The monitor need not be woken when this one falls asleep.
        runtime.detection.monitor.worker_pauses(record);
        if record.ownership().sleep() == WokenFor::End {
            return false;
        }
        self.begin_on_slot();
        true
    }

    /// Returns whether the worker has come back to find its slot taken. Otherwise it has given the
    /// slot away itself.
    fn count_return(&self) -> bool {
        let record = self.record();
        let was_taken = record.ownership().is_lost();
        if was_taken {
            look::worker_runs(&self.runtime, self.index);
            let detection = &self.runtime.detection;
            let away = clock::now().nanos_since(record.slot_lost_at());
            // It was back so soon that the hand-off did not pay.
            if detection.handoff_delay.learn(away) {
                detection.counters.false_handoffs.increment();
            }
        }
        was_taken
    }

    /// Begins to run threads on a slot that the worker has been given.
    pub(super) fn begin_on_slot(&self) {
        self.has_slot.set(true);
        self.begin_tenure();
        self.runtime.detection.monitor.worker_begins(self.record());
        let slot = self.record().slot();
        lost_time::owner_started(&self.runtime, slot);
        // Slots have processors of their own.
        if let Some(processor) = self.runtime.processors.pinned_to(slot) {
            let mut pinned = self.pinned.borrow_mut();
            // It had a slot of another processor before.
            if pinned.as_ref().is_none_or(|&(on, _)| on != processor) {
                // The old one first: guards are dropped in reverse order of their making.
                drop(pinned.take());
                *pinned = topology::pin(processor).ok().map(|pin| (processor, pin));
            }
        }
    }
}
