//! Barriers in the other running threads of a program, by interrupts: see [`Membarrier`].
//!
//! Why no event for an interrupt: the processor that asks knows when each interrupt begins, and the
//! interrupted processor keeps that. Its thread does the handler's time after the step in which the
//! interrupt began, as with those of clocks (`jitter.rs`). If it has run ahead of that moment, it
//! does the time after its next step, unless that spins or is a barrier. A thread that spins in its
//! own cache loses nothing, except that it notices a write no earlier than the handler's end. A
//! processor that gets another thread meanwhile forgets the interrupts that are over.
//!
//! Calls are served in the order in which they come. A call interrupts the processors that run a
//! thread when it comes, also if it has to wait for those before it.

use crate::machine::Membarrier;
use crate::scheduler::{Scheduler, Status};
use crate::statistics::Activity;
use crate::{ThreadId, Time};

/// The barriers of a run.
pub(crate) struct Barriers {
    /// The times of the machine's barrier, if it has one.
    times: Option<Membarrier>,
    /// Set while the program does without.
    left: bool,
    /// The time when the last barrier so far is done: the next one begins no earlier.
    free: Time,
    /// The number of interrupts so far.
    interrupts: u64,
}

impl Barriers {
    pub(super) fn new(times: Option<Membarrier>) -> Self {
        Self { times, left: false, free: Time::ZERO, interrupts: 0 }
    }

    /// Returns whether the machine has such barriers, and the program uses them.
    pub(crate) fn are_used(&self) -> bool {
        self.times.is_some() && !self.left
    }

    /// Returns whether the machine has such barriers, and the program does without for a while.
    pub(crate) fn are_left(&self) -> bool {
        self.times.is_some() && self.left
    }

    /// Keeps whether the program does without.
    pub(crate) fn leave(&mut self, left: bool) {
        self.left = left;
    }

    /// Returns the number of interrupts so far.
    pub(super) fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Does the barrier of `id`, which is the earliest of all, after those before it. Does nothing
    /// on a machine without barriers.
    pub(super) fn issue(&mut self, scheduler: &mut Scheduler, id: ThreadId) {
        let Some(times) = &self.times else { return };
        let Scheduler { threads, processors, .. } = scheduler;
        let own = &threads[id];
        let now = own.time;
        let begins = now.max(self.free);
        // It does nothing meanwhile that an interrupt could delay.
        processors[own.processor].notices(begins);
        let mut sent = begins + times.request;
        let mut end = sent;
        for (number, processor) in processors.iter_mut().enumerate() {
            let Some(other) = processor.current.filter(|_| number != own.processor) else {
                continue;
            };
            if threads[other].space != own.space {
                continue;
            }
            if threads[other].status == Status::Spinning {
                processor.forget_interrupts(now);
            }
            sent += times.send;
            let taken = processor.interrupt(sent + times.delivery, times.interrupt);
            end = end.max(taken + times.acknowledgement);
            self.interrupts += 1;
        }
        self.free = end;
        threads.spend(id, Activity::Spinning, begins);
        threads.spend(id, Activity::Switching, end);
    }
}
