//! The means by which a member is taken off its processor although it does not check the turn.

use stanchion_machine::control::{self, Preference};

/// A means to make a member leave that does not check the turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Preemption {
    /// No means: the member leaves when it checks.
    None,
    /// A signal interrupts the member.
    Signal,
    /// The system prefers the members of the slot that is on.
    Priority,
}

impl Preemption {
    /// The priority of members of the slot that is on.
    pub(super) const ON: u8 = 1;

    /// The priority of the timer, which ends their turns.
    pub(crate) const TIMER: u8 = 2;

    /// Sets the priority of the calling thread, which is the timer.
    pub fn begin_timer(self) {
        self.go_before(Self::TIMER);
    }

    /// Sets the priority of the calling thread, which runs members.
    ///
    /// The thread keeps it between two gangs, when it sleeps. If it began the next gang as an
    /// ordinary thread, it would wait for the processor behind members that wait for it.
    pub fn begin_member(self) {
        self.go_before(Self::ON);
    }

    fn go_before(self, level: u8) {
        if self == Self::Priority {
            control::prefer(Preference::Before(level));
        }
    }
}
