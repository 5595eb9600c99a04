//! Members that are taken off although they do not look.
//!
//! | switching | when the round turns | in [`pass`](Gate::pass) |
//! | --- | --- | --- |
//! | cooperative | nothing | |
//! | signal | who holds a seat and is not on any more is interrupted, and goes through the gate in the handler | |
//! | priority | the clock is rung, and changes preferences | who has sat down prefers itself, before it looks at the round once more |
//!
//! Why the clock alone changes preferences of others: a member that did could be preempted half-way by one of those that it has preferred, who then waits
//! for one that it has not. The clock goes before all of them.
//!
//! A member that the clock puts behind the others while it prefers itself stays preferred until the next turn only if it has seen the round that the
//! clock has seen: then it is on. Otherwise it finds another round, and leaves.
//!
//! # Async-signal-safety
//!
//! [`Gate::interrupted`] runs in a handler, between any two instructions of a member. It calls nothing but [`pass`](Gate::pass), which reads and writes
//! atomics, reads the clock, makes the system calls of [`park`](machine::park), and sends signals. Where the gate itself, or one who has the executor's
//! lock, must not be interrupted, it says `control::defer`.

use std::sync::Arc;

use machine::atomic::Ordering;
use machine::control::{self, Interrupted, Place, Preference};

use super::{Gate, named};
use crate::executor::Shared;
use crate::switching::Switching;

/// How a member's thread is reached.
pub(crate) struct Reach {
    shared: Arc<Shared>,
    berth: usize,
}

// SAFETY: see the head of the file.
unsafe impl Interrupted for Reach {
    fn place(&self) -> &Place {
        &self.shared.gate.berths[self.berth].place
    }

    fn interrupted(&self) {
        self.shared.gate.interrupted(self.berth);
    }
}

/// Lets the calling thread, which is about to be the member at that berth, be taken off as the executor does.
pub(crate) fn reach(shared: &Arc<Shared>, berth: usize) -> Option<control::Allowed> {
    if shared.gate.switching == Switching::Cooperative {
        return None;
    }
    // Refused only if the thread is ending, or memory for its handler is: then it is taken off where it looks.
    control::allow(Arc::new(Reach { shared: shared.clone(), berth })).ok()
}

/// The calling thread is one of the executor's: it goes before what is not.
///
/// Those of members do so also between two gangs, when they sleep: one that begins as an ordinary thread would have to wait for those that it is to wake.
pub(crate) fn go_before(switching: Switching, level: u8) {
    if switching == Switching::Priority {
        control::prefer(Preference::Before(level));
    }
}

impl Gate {
    /// The berth is not on any more, and has its seat: it is to leave.
    pub(super) fn hurry(&self, berth: usize) {
        match self.switching {
            Switching::Cooperative => {}
            Switching::Signal => {
                self.berths[berth].place.interrupt();
            }
            Switching::Priority => self.clock.ring(),
        }
    }

    /// The thread at this berth has been interrupted: it goes through the gate, unless it takes no part. Async-signal-safe.
    fn interrupted(&self, berth: usize) {
        if self.is_active(berth) {
            self.pass(berth);
        }
    }

    /// The calling member has its seat, and is about to look whether it is still on.
    pub(super) fn settle(&self) {
        go_before(self.switching, Switching::ON);
    }

    /// Puts those behind the others who are not on any more, and those before who are. The clock's; `preferred` is what it has done before, by seat.
    pub(crate) fn prefer(&self, preferred: &mut Vec<Option<usize>>) {
        if self.switching != Switching::Priority {
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
                    // It runs on beside those who come, when nobody of them wants the processor. AcqRel: as in `put_out`.
                    let _ = self.holders[seat].compare_exchange(
                        named(holder),
                        0,
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    );
                }
                if let Some(berth) = now {
                    self.berths[berth].place.prefer(Preference::Before(Switching::ON));
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
