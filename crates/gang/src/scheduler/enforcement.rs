//! Enforcement: how members leave their processors that do not check the turn.
//!
//! - Without means, nothing is done when the turn changes.
//! - With a signal, a holder that is off is interrupted when the turn changes. Its handler calls
//!   [`wait_for_turn`](SlotScheduler::wait_for_turn).
//! - With priorities, the timer is unparked when the turn changes, and changes priorities. In
//!   `wait_for_turn` a new holder raises its own priority, then reads the turn again.
//!
//! Why only the timer changes the priorities of other threads: a member that did so could be
//! preempted half-way by a thread that it has just preferred. That thread could then wait for one
//! that the member has not preferred yet. The timer's priority is above all of theirs.
//!
//! The timer may lower the priority of a member that raises its own at the same time. The member
//! then stays preferred until the next turn only if it has read the turn that the timer has read:
//! then it is on. Otherwise it finds another turn, and leaves.
//!
//! # Async-signal-safety
//!
//! [`SlotScheduler::interrupted`] runs in a signal handler, between any two instructions of a
//! member. It calls only [`wait_for_turn`](SlotScheduler::wait_for_turn), which reads and writes
//! atomics, reads the clock, makes the system calls of [`park`](stanchion_machine::park), and sends
//! signals. Code that must not be interrupted says `control::defer`: the scheduler's own, and the
//! code of a thread that has the executor's lock.

use stanchion_machine::control::{self, Place, Preference};

use super::dispatch::SlotScheduler;
use super::preemption::Preemption;

impl SlotScheduler {
    /// Returns the scheduler with another means of enforcement.
    #[must_use]
    pub fn with_preemption(self, preemption: Preemption) -> Self {
        Self { preemption, ..self }
    }

    /// Returns the means of enforcement.
    pub fn preemption(&self) -> Preemption {
        self.preemption
    }

    /// Returns the place through which other threads control the thread of `entity`.
    pub fn control(&self, entity: usize) -> &Place {
        &self.entities[entity].control
    }

    /// Makes `entity` leave, which holds a processor and is not on any more.
    pub(super) fn preempt(&self, entity: usize) {
        match self.preemption {
            // It leaves when it checks.
            Preemption::None => {}
            Preemption::Signal => {
                let interrupted = self.entities[entity].control.interrupt();
                // The signal also fails if the thread has just left its place. That is no failure
                // of the mode, so ask which of the two it was.
                if !interrupted && control::still_interrupts().is_err() {
                    self.counters.refused_interruptions.add(1);
                }
            }
            Preemption::Priority => self.timer.unpark(),
        }
    }

    /// Lets the calling thread, which runs `entity` and was interrupted, wait for its turn. Does
    /// nothing if the entity is inactive. Async-signal-safe.
    pub fn interrupted(&self, entity: usize) {
        if self.is_active(entity) {
            self.wait_for_turn(entity);
        }
    }

    /// Raises the priority of the calling member, which has taken its processor and is about to
    /// read the turn again.
    pub(super) fn raise_priority(&self) {
        self.preemption.begin_member();
    }

    /// Gives the members that are on their priority, and takes it from those that are off. Called
    /// by the timer. `preferred` is the timer's own: what it did the last time, by processor.
    pub fn update_priorities(&self, preferred: &mut Vec<Option<usize>>) {
        if self.preemption != Preemption::Priority {
            return;
        }
        preferred.resize(self.processors(), None);
        loop {
            let turn = self.turn();
            for (processor, before) in preferred.iter_mut().enumerate() {
                let now = self.scheduled(turn.slot(), processor).map(|(entity, _)| entity);
                // The member that was preferred here is off.
                if let Some(gone) = before.take_if(|gone| Some(*gone) != now) {
                    self.entities[gone].control.prefer(Preference::Ordinary);
                }
                // The processor is held by a member that is off: evict it.
                if let Some(holder) = self.holder(processor).filter(|holder| Some(*holder) != now) {
                    self.entities[holder].control.prefer(Preference::Ordinary);
                    // It runs on beside the new members while none of them wants its CPU.
                    self.evict(processor, holder);
                }
                // A member is on here: prefer and wake it.
                if let Some(entity) = now {
                    self.entities[entity].control.prefer(Preference::Before(Preemption::ON));
                    self.entities[entity].parker.unpark();
                }
                *before = now;
            }
            // The turn may have changed meanwhile: then all of this is done again.
            if self.turn().is_same_turn(turn) {
                return;
            }
        }
    }
}
