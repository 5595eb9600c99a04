//! The barrier in a bit mask: one bit a member, so it is known who is missing.
//!
//! The barrier that the paper's experiments used, made of the atomic bitwise operations of its bus.
//! Members set their bits in one phase and clear them in the next, so nobody has to make the mask
//! ready for the next phase. Why not see from the mask alone that all have come: whoever looks late
//! finds bits cleared that were all set. So the last one says it in a second word, which is also
//! the one that a barrier breaks by.
//!
//! ```text
//! mask     a bit is as `odd` says: in even phases those that have come are set, in odd phases those that have come are clear
//! verdict  phase, asleep and reason, see `phase_word.rs`
//!
//! mask                      who            meaning
//! … 0 …  ->  … 1 …          member         has come in an even phase
//! … 1 …  ->  … 0 …          member         has come in an odd phase
//! all alike                 the last one   moves the verdict from p to p + 1
//! ```
//!
//! # Invariants
//!
//! 1. A bit is changed by its member only, and once a phase: by adding or subtracting it, which
//!    cannot carry. (An exclusive-or that tells what was before is a loop on most processors, an
//!    addition is one instruction.)
//! 2. Of phase p + 1 nobody changes a bit before the verdict is past p, so the mask is all alike
//!    once a phase, and one member sees it become so.
//! 3. The verdict decides: a phase is crossed or broken (Invariant 1 of `phase_word.rs`).
//!
//! # Orderings
//!
//! An arrival is AcqRel: it publishes what the member did, and the last one sees what all did,
//! which it passes on by the verdict.
//!
//! Source: Feitelson and Rudolph, "Gang Scheduling Performance Benefits for Fine-Grain
//! Synchronization", JPDC 1992, section 3.1: "based on atomic bitwise logical operations"; that the
//! sense alternates is Mellor-Crummey and Scott's, TOCS 1991, section 3.1.

use core::fmt;

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::Deadline;
use machine::topology::CachePadded;
use machine::wait::WaitPolicy;

use super::interface::{Barrier, Broken, Crossing, WrongSize};
use super::phase_word::{Phase, PhaseWord};

/// A barrier for up to 64 members that tells who is missing. Its members wait through
/// [`Waiter`](super::Waiter)s.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival, one more for the last; each waiter's line is taken away once, not at each arrival |
/// | size | two lines |
/// | more threads than processors | as its wait policy |
/// | a long wait | where its wait policy would sleep, it sleeps until the phase is over; the last one makes a call to the kernel |
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
    mask: CachePadded<AtomicU64>,
    phase_word: PhaseWord,
    /// The bits of all members.
    all: u64,
}

/// A member of a [`BitMask`].
#[derive(Debug)]
pub struct BitMaskState {
    bit: u64,
    phase: Phase,
}

impl BitMask {
    /// The most members: there are so many bits in the word.
    pub const MOST: usize = 64;

    /// A barrier for so many members.
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

    /// Who has not come yet in the phase that is going on: bit i for member i. Out of date when it
    /// is returned.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.missing_in(self.phase_word.phase())
    }

    /// The mask when all have come.
    fn target(&self, phase: Phase) -> u64 {
        if phase.is_odd() { 0 } else { self.all }
    }

    /// Who has not come yet in that phase, if it is still going on.
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
        // One that has come and was told that the phase is broken must not change its bit again
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
