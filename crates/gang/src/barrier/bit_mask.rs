//! The barrier in a bit mask: one bit for each member, so it is known which members are missing.
//!
//! The barrier of the paper's experiments, made of the atomic bitwise operations of its bus.
//! Members set their bits in one phase and clear them in the next, so no member has to make the
//! mask ready for the next phase. Why not see from the mask alone that all have arrived: a member
//! that looks late finds bits cleared that were all set. So the last arrival says it in a second
//! word, the phase word, by which the barrier also breaks.
//!
//! ```text
//! mask         even phases: the bits of members that have arrived are set
//!              odd phases: the bits of members that have arrived are clear
//! phase word   phase, asleep and reason, see `phase_word.rs`
//!
//! mask                      by              meaning
//! … 0 …  ->  … 1 …          its member      has arrived in an even phase
//! … 1 …  ->  … 0 …          its member      has arrived in an odd phase
//! all alike                 the last one    moves the phase word from p to p + 1
//! ```
//!
//! # Invariants
//!
//! 1. Only its member changes a bit, once in each phase, by adding or subtracting it. That cannot
//!    carry. (An exclusive-or that returns the value before is a loop on most processors. An
//!    addition is one instruction.)
//! 2. No member changes its bit for phase p + 1 before the phase word is past p. So the mask is all
//!    alike once in each phase, and one member sees it become so.
//! 3. The phase word decides: a phase is crossed or broken (Invariant 1 of `phase_word.rs`).
//!
//! # Orderings
//!
//! An arrival is AcqRel: it publishes what the member did. The last arrival sees what all members
//! did, and passes it on by the phase word.
//!
//! Source: Feitelson and Rudolph, "Gang Scheduling Performance Benefits for Fine-Grain
//! Synchronization", JPDC 1992, section 3.1: "based on atomic bitwise logical operations". That the
//! sense alternates is Mellor-Crummey and Scott's, TOCS 1991, section 3.1.

use core::fmt;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::WaitPolicy;

use super::interface::{Barrier, Broken, Crossing, WrongSize};
use super::phase_word::{Phase, PhaseWord};

/// A barrier for up to 64 members that names the missing ones. Its members wait through
/// [`Waiter`](super::Waiter)s.
///
/// - To cross: one exchange for each arrival, one more for the last. Each waiter's line is taken
///   away once, not at each arrival.
/// - Size: two lines.
/// - With more threads than processors: as its wait policy.
/// - A long wait: where its wait policy would sleep, a member sleeps until the phase is over. The
///   last arrival makes a system call.
///
/// ```
/// use stanchion_gang::{Waiter, barrier::BitMask};
///
/// let barrier = BitMask::new(3)?;
/// assert_eq!(barrier.missing(), 0b111);
/// std::thread::scope(|scope| {
///     for mut waiter in Waiter::all(&barrier) {
///         scope.spawn(move || waiter.wait().map(|crossing| crossing.is_leader()));
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct BitMask {
    /// The bits of members that have arrived. Each member writes its own.
    mask: CachePadded<AtomicU64>,
    /// Decides phases. Written by the last arrival, or by a member that breaks the barrier.
    phase_word: PhaseWord,
    /// The bits of all members.
    all: u64,
}

/// The state of a member of a [`BitMask`].
#[derive(Debug)]
pub struct BitMaskState {
    /// The member's bit.
    bit: u64,
    /// The phase that it waits for next.
    phase: Phase,
}

impl BitMask {
    /// The most members: the bits of the mask.
    pub const MOST: usize = 64;

    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST`](Self::MOST).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        Self::before(Phase::FIRST, members)
    }

    fn before(phase: Phase, members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, Self::MOST)?;
        let all = u64::MAX >> (64 - members);
        let mask = if phase.is_odd() { all } else { 0 };
        Ok(Self {
            mask: CachePadded::new(AtomicU64::fresh(mask)),
            phase_word: PhaseWord::before(phase),
            all,
        })
    }

    /// Returns the members that have not arrived in the current phase: bit i for member i. The
    /// answer is out of date when it is returned.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing_in(self.phase_word.phase())
    }

    /// Returns the mask when all have arrived.
    fn target(&self, phase: Phase) -> u64 {
        if phase.is_odd() { 0 } else { self.all }
    }

    /// Returns the members that have not arrived in that phase, if it is still the current one.
    fn missing_in(&self, phase: Phase) -> u64 {
        // Relaxed: a hint.
        self.mask.load(Ordering::Relaxed) ^ self.target(phase)
    }
}

impl Barrier for BitMask {
    type MemberState = BitMaskState;

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.all.count_ones() as usize
    }

    fn member_state(&self, index: usize) -> Self::MemberState {
        assert!(index < self.members(), "member {index} of a barrier for {}", self.members());
        BitMaskState { bit: 1 << index, phase: self.phase_word.phase() }
    }

    #[inline]
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        let BitMaskState { bit, phase } = *state;
        // A member that has arrived in a phase which broke must not change its bit again
        // (Invariant 1).
        if let Some(why) = self.phase_word.broken() {
            return Err(why);
        }
        let change = if phase.is_odd() { bit.wrapping_neg() } else { bit };
        // AcqRel: pairs with itself in the other members.
        let mask = self.mask.fetch_add(change, Ordering::AcqRel).wrapping_add(change);
        let last = mask == self.target(phase);
        if last {
            self.phase_word.cross(phase)?;
        } else {
            match self.phase_word.wait(phase, policy, deadline) {
                Some(outcome) => outcome?,
                None => self.phase_word.give_up(phase).0?,
            }
        }
        state.phase = phase.next();
        Ok(Crossing::of_leader(last))
    }

    fn break_with(&self, why: Broken) {
        self.phase_word.break_with(why);
    }

    fn broken(&self) -> Option<Broken> {
        self.phase_word.broken()
    }
}

impl fmt::Debug for BitMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BitMask")
            .field("members", &self.members())
            .field("missing", &format_args!("{:#b}", self.missing()))
            .field("broken", &self.broken())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::tests::crosses;

    #[test]
    fn phases_wrap_around() {
        crosses(&BitMask::before(Phase::LAST, 3).unwrap());
        crosses(&BitMask::before(Phase::LAST, BitMask::MOST).unwrap());
    }
}
