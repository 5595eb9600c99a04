//! Members that are taken off although they do not look.
//!
//! | switching | when the round turns | in [`wait_for_turn`](SlotScheduler::wait_for_turn) |
//! | --- | --- | --- |
//! | cooperative | nothing | |
//! | signal | who holds a seat and is not on any more is interrupted, and goes through the gate in the handler | |
//! | priority | the clock is rung, and changes preferences | who has sat down prefers itself, before it looks at the round once more |
//!
//! Why the clock alone changes preferences of others: a member that did could be preempted half-way
//! by one of those that it has preferred, who then waits for one that it has not. The clock goes
//! before all of them.
//!
//! A member that the clock puts behind the others while it prefers itself stays preferred until the
//! next turn only if it has seen the round that the clock has seen: then it is on. Otherwise it
//! finds another round, and leaves.
//!
//! # Async-signal-safety
//!
//! [`SlotScheduler::interrupted`] runs in a handler, between any two instructions of a member. It calls
//! nothing but [`wait_for_turn`](SlotScheduler::wait_for_turn), which reads and writes atomics, reads the clock, makes the
//! system calls of [`park`](machine::park), and sends signals. Where the gate itself, or one who
//! has the executor's lock, must not be interrupted, it says `control::defer`.

use machine::atomic::Ordering;
use machine::control::{self, Place, Preference};

use super::dispatch::{SlotScheduler, encoded};

/// What makes a member leave that does not look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// Nothing.
    None,
    /// It is interrupted.
    Signal,
    /// Those that come are preferred.
    Priority,
}

impl Preemption {
    /// The priority of those who are on.
    const ON: u8 = 1;

    /// The priority of the clock, which ends their turns.
    pub(crate) const TIMER: u8 = 2;

    /// The calling thread is the clock's.
    pub fn begin_timer(self) {
        self.go_before(Self::TIMER);
    }

    /// The calling thread is a member's, of this gang or the next.
    ///
    /// It goes before what is not the executor's also between two gangs, when it sleeps: if it
    /// began as an ordinary thread, it would have to wait for those that wait for it.
    pub fn begin_member(self) {
        self.go_before(Self::ON);
    }

    fn go_before(self, level: u8) {
        if self == Self::Priority {
            control::prefer(Preference::Before(level));
        }
    }
}

impl SlotScheduler {
    /// The same gate, which makes members leave so.
    pub fn with_preemption(self, preemption: Preemption) -> Self {
        Self { preemption, ..self }
    }

    pub fn preemption(&self) -> Preemption {
        self.preemption
    }

    /// Where the thread of the member at that berth is found.
    pub fn control(&self, entity: usize) -> &Place {
        &self.entities[entity].control
    }

    /// The berth is not on any more, and has its seat: it is to leave.
    pub(super) fn preempt(&self, entity: usize) {
        match self.preemption {
            Preemption::None => {}
            Preemption::Signal => {
                let interrupted = self.entities[entity].control.interrupt();
                // It cannot be if its thread has left the place, too. That is no failure.
                if !interrupted && control::still_interrupts().is_err() {
                    self.counters.refused_interruptions.add(1);
                }
            }
            Preemption::Priority => self.timer.unpark(),
        }
    }

    /// The thread at this berth has been interrupted: it goes through the gate, unless it takes no
    /// part. Async-signal-safe.
    pub fn interrupted(&self, entity: usize) {
        if self.is_active(entity) {
            self.wait_for_turn(entity);
        }
    }

    /// The calling member has its seat, and is about to look whether it is still on.
    pub(super) fn raise_priority(&self) {
        self.preemption.begin_member();
    }

    /// Puts those behind the others who are not on any more, and those before who are. The clock's;
    /// `preferred` is what it has done before, by seat.
    pub fn update_priorities(&self, preferred: &mut Vec<Option<usize>>) {
        if self.preemption != Preemption::Priority {
            return;
        }
        preferred.resize(self.processors(), None);
        loop {
            let turn = self.turn();
            for (processor, before) in preferred.iter_mut().enumerate() {
                let now = self.scheduled(turn.slot(), processor).map(|(entity, _)| entity);
                if let Some(gone) = before.take_if(|gone| Some(*gone) != now) {
                    self.entities[gone].control.prefer(Preference::Ordinary);
                }
                if let Some(holder) = self.holder(processor).filter(|holder| Some(*holder) != now) {
                    self.entities[holder].control.prefer(Preference::Ordinary);
                    // It runs on beside those who come, when nobody of them wants the processor.
                    // Relaxed: as in `evict_overstayers`.
                    let _ = self.holders[processor].compare_exchange(
                        encoded(holder),
                        0,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                }
                if let Some(entity) = now {
                    self.entities[entity].control.prefer(Preference::Before(Preemption::ON));
                    self.entities[entity].parker.unpark();
                }
                *before = now;
            }
            if self.turn().is_same_turn(turn) {
                return;
            }
        }
    }
}
