//! What waits do in virtual time.
//!
//! Why not a pause at a time, as on the real machine: a thread that spins in its own cache makes no event that anybody could notice, until its
//! word is written. So it says for how long it would only pause, stands still for so long or until the write, whichever comes first, and is told how
//! long it stood.

use crate::atomic::Word;
use crate::clock::Deadline;
use crate::wait::{Pauses, WaitPolicy};
use stanchion_simulator::inside;

/// Whether bounded spinning looks more than once.
pub(crate) const SPINS: bool = true;

/// How long a pause is, in nanoseconds of the code's clock: the machine's description says it.
pub(crate) fn pause_nanos() -> u64 {
    inside::hint_nanos()
}

/// Reading the clock costs nothing here.
pub(crate) const PAUSES_PER_LOOK: u32 = 1;

/// What a wait waits for, if it is one word.
pub(crate) struct Waiting {
    word: Option<*const ()>,
    deadline: Deadline,
}

impl Waiting {
    pub(crate) fn on<W: Word>(word: &W) -> Self {
        Self::on_until(word, Deadline::NEVER)
    }

    pub(crate) fn on_until<W: Word>(word: &W, deadline: Deadline) -> Self {
        Self { word: Some(core::ptr::from_ref(word).cast()), deadline }
    }

    /// Attempts, of which nobody knows what they look at.
    pub(crate) fn in_attempts() -> Self {
        Self { word: None, deadline: Deadline::NEVER }
    }

    /// The last look found nothing.
    pub(crate) fn between_looks(&mut self, policy: &mut impl WaitPolicy) {
        let Some(word) = self.word else { return policy.pause() };
        let pausing = policy.pausing();
        if pausing == 0 {
            return policy.pause();
        }
        let passed = inside::watch(word, pausing.min(until(self.deadline)));
        policy.paused(passed);
    }

    /// The last look of a bounded wait found nothing; whether there is another one.
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

/// Nanoseconds until then, `u64::MAX` if it never comes.
fn until(deadline: Deadline) -> u64 {
    deadline.remaining().map_or(u64::MAX, |left| left.as_nanos() as u64)
}

pub(crate) fn delay(nanos: u64) {
    if nanos > 0 {
        inside::pause(nanos);
    }
}

/// The deadline is asked at each look.
pub(crate) struct Timeout(Deadline);

impl Timeout {
    pub(crate) fn new(deadline: Deadline) -> Self {
        Self(deadline)
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_over(&mut self) -> bool {
        self.0.passed()
    }
}
