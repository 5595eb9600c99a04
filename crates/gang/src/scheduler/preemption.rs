//! Members that are taken off although they do not look.
//!
//! | switching | when the round turns | in [`pass`](Gate::pass) |
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
//! [`Gate::interrupted`] runs in a handler, between any two instructions of a member. It calls
//! nothing but [`pass`](Gate::pass), which reads and writes atomics, reads the clock, makes the
//! system calls of [`park`](machine::park), and sends signals. Where the gate itself, or one who
//! has the executor's lock, must not be interrupted, it says `control::defer`.

use machine::atomic::Ordering;
use machine::control::{self, Place, Preference};

use super::dispatch::{Gate, named};

/// What makes a member leave that does not look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Nothing.
    None,
    /// It is interrupted.
    Interrupt,
    /// Those that come are preferred.
    Prefer,
}

impl Force {
    /// The priority of those who are on.
    const ON: u8 = 1;

    /// The priority of the clock, which ends their turns.
    pub(crate) const CLOCK: u8 = 2;

    /// The calling thread is the clock's.
    pub fn begin_clock(self) {
        self.go_before(Self::CLOCK);
    }

    /// The calling thread is a member's, of this gang or the next.
    ///
    /// It goes before what is not the executor's also between two gangs, when it sleeps: if it
    /// began as an ordinary thread, it would have to wait for those that wait for it.
    pub fn begin_member(self) {
        self.go_before(Self::ON);
    }

    fn go_before(self, level: u8) {
        if self == Self::Prefer {
            control::prefer(Preference::Before(level));
        }
    }
}

impl Gate {
    /// The same gate, which makes members leave so.
    pub fn forcing(self, force: Force) -> Self {
        Self { force, ..self }
    }

    pub fn force(&self) -> Force {
        self.force
    }

    /// Where the thread of the member at that berth is found.
    pub fn place(&self, berth: usize) -> &Place {
        &self.berths[berth].place
    }

    /// The berth is not on any more, and has its seat: it is to leave.
    pub(super) fn hurry(&self, berth: usize) {
        match self.force {
            Force::None => {}
            Force::Interrupt => {
                let interrupted = self.berths[berth].place.interrupt();
                // It cannot be if its thread has left the place, too. That is no failure.
                if !interrupted && control::still_interrupts().is_err() {
                    self.counts.refused.add(1);
                }
            }
            Force::Prefer => self.clock.ring(),
        }
    }

    /// The thread at this berth has been interrupted: it goes through the gate, unless it takes no
    /// part. Async-signal-safe.
    pub fn interrupted(&self, berth: usize) {
        if self.is_active(berth) {
            self.pass(berth);
        }
    }

    /// The calling member has its seat, and is about to look whether it is still on.
    pub(super) fn settle(&self) {
        self.force.begin_member();
    }

    /// Puts those behind the others who are not on any more, and those before who are. The clock's;
    /// `preferred` is what it has done before, by seat.
    pub fn prefer(&self, preferred: &mut Vec<Option<usize>>) {
        if self.force != Force::Prefer {
            return;
        }
        preferred.resize(self.seats(), None);
        loop {
            let round = self.round();
            for (seat, before) in preferred.iter_mut().enumerate() {
                let now = self.sitting(round.slot(), seat).map(|(berth, _)| berth);
                if let Some(gone) = before.take_if(|gone| Some(*gone) != now) {
                    self.berths[gone].place.prefer(Preference::Ordinary);
                }
                if let Some(holder) = self.holder(seat).filter(|holder| Some(*holder) != now) {
                    self.berths[holder].place.prefer(Preference::Ordinary);
                    // It runs on beside those who come, when nobody of them wants the processor.
                    // Relaxed: as in `put_out`.
                    let _ = self.holders[seat].compare_exchange(
                        named(holder),
                        0,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                }
                if let Some(berth) = now {
                    self.berths[berth].place.prefer(Preference::Before(Force::ON));
                    self.berths[berth].bell.ring();
                }
                *before = now;
            }
            if self.round().is_same_turn(round) {
                return;
            }
        }
    }
}
