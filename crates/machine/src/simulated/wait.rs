//! Waits in virtual time.
//!
//! Why not one pause at a time, as on the real machine: a thread that spins in its own cache makes
//! no event that another thread could notice, until its word is written. So it declares for how
//! long it would only pause. It stands still for that long or until the write, whichever comes
//! first, and is told how long it stood.

use crate::atomic::Word;
use crate::clock::Deadline;
use crate::wait::{Pauses, WaitPolicy};
use stanchion_simulator::inside;

/// Bounded spinning looks more than once.
pub(crate) const SPINS: bool = true;

/// Returns the length of a pause in nanoseconds of the code's clock, which the machine's
/// description contains.
pub(crate) fn pause_nanos() -> u64 {
    inside::hint_nanos()
}

/// Returns the length of a transfer in nanoseconds of the code's clock, from the machine's
/// description.
pub(crate) fn transfer_nanos() -> u64 {
    inside::transfer_nanos()
}

/// Returns the length of a call in nanoseconds of the code's clock, from the machine's description.
pub(crate) fn call_nanos() -> u64 {
    inside::call_nanos()
}

/// Returns `nanos`, wrong by the factor by which the run measures wrongly.
pub(crate) fn as_measured(nanos: u64) -> u64 {
    inside::as_measured(nanos)
}

/// The clock is read at each pause, because that costs nothing here.
pub(crate) const PAUSES_PER_LOOK: u32 = 1;

/// The state of a wait.
pub(crate) struct Waiting {
    /// The word that the wait looks at, if it is one word.
    word: Option<*const ()>,
    /// The time at which the wait gives up.
    deadline: Deadline,
}

impl Waiting {
    pub(crate) fn on<W: Word>(word: &W) -> Self {
        Self::on_until(word, Deadline::NEVER)
    }

    pub(crate) fn on_until<W: Word>(word: &W, deadline: Deadline) -> Self {
        Self { word: Some(core::ptr::from_ref(word).cast()), deadline }
    }

    /// Returns a wait that makes attempts, for which it is not known what words they look at.
    pub(crate) fn in_attempts() -> Self {
        Self { word: None, deadline: Deadline::NEVER }
    }

    /// Lets time pass after a look that found nothing.
    pub(crate) fn between_looks(&mut self, policy: &mut impl WaitPolicy) {
        let Some(word) = self.word else { return policy.pause() };
        let pausing = policy.pausing();
        if pausing == 0 {
            return policy.pause();
        }
        let passed = inside::watch(word, pausing.min(until(self.deadline)));
        policy.paused(passed);
    }

    /// Lets time pass after a look of a bounded wait that found nothing. Returns whether there is
    /// another look.
    pub(crate) fn within(&mut self, budget: &mut Pauses) -> bool {
        match (self.word, budget.left()) {
            (_, 0) => false,
            (Some(word), left) => {
                inside::watch(word, left);
                true
            }
            (None, _) => budget.pause(),
        }
    }
}

/// Returns the nanoseconds until the deadline, `u64::MAX` if it never comes.
fn until(deadline: Deadline) -> u64 {
    deadline.remaining().map_or(u64::MAX, |left| left.as_nanos() as u64)
}

pub(crate) fn delay(nanos: u64) {
    if nanos > 0 {
        inside::pause(nanos);
    }
}

/// A deadline that is checked at each look.
pub(crate) struct Timeout(Deadline);

impl Timeout {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self(deadline)
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.passed()
    }
}
