//! What the barriers have in common: the trait, and how a barrier ends early.

use core::fmt;

use machine::clock::Deadline;
use machine::wait::{Patient, WaitPolicy};

/// The most members a barrier can have: as many as there can be threads with a
/// [`machine::thread::index`].
pub const MOST_MEMBERS: usize = machine::thread::INDICES;

/// A barrier for a number of members that is given when it is made.
///
/// Users wait through a [`Waiter`], or through the `wait` of barriers whose members need no names.
/// This is for what is generic over barriers.
pub trait Barrier: Sized + Send + Sync + fmt::Debug {
    /// What a member keeps from one wait to the next.
    type MemberState: Send + fmt::Debug;

    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] for 0 members and for more than it can have.
    fn with_members(members: usize) -> Result<Self, WrongSize>;

    /// How many members there are.
    fn members(&self) -> usize;

    /// The place of member `index` before its first wait. To be asked for once for each index: if
    /// two threads wait as the same member, phases may end too early, or never.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    fn member_state(&self, index: usize) -> Self::MemberState;

    /// Arrives and waits for the others, as `policy` says, until `deadline`: then the barrier
    /// breaks for all.
    ///
    /// What a member did before this happens before what any member does after it.
    ///
    /// # Errors
    ///
    /// [`Broken`], and why; for good.
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken>;

    /// [`wait_at`](Self::wait_at) for a member that does not say how it waits: as [`Patient`],
    /// unless the barrier knows better.
    ///
    /// # Errors
    ///
    /// [`Broken`], and why; for good.
    #[inline]
    fn wait_by_default(
        &self,
        state: &mut Self::MemberState,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_at(state, &mut <Patient>::start(), deadline)
    }

    /// Breaks the barrier, unless it is broken already: who waits and who will wait gets `why`.
    fn break_with(&self, why: Broken);

    /// Whether it is broken, and why.
    fn broken(&self) -> Option<Broken>;
}

/// All have come, and the one that holds this goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    leads: bool,
}

impl Crossing {
    pub(crate) const LEADER: Self = Self { leads: true };
    pub(crate) const FOLLOWER: Self = Self { leads: false };

    /// Of the leader, if so.
    #[inline]
    pub(crate) const fn of_leader(leads: bool) -> Self {
        Self { leads }
    }

    /// Whether this member is the leader: exactly one is, in each phase.
    #[must_use]
    pub const fn is_leader(self) -> bool {
        self.leads
    }
}

/// The barrier will never be crossed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub enum Broken {
    /// A member's deadline passed before all had come.
    #[error("the barrier is broken: a member has waited until its deadline")]
    TimedOut = 1,
    /// A member panicked.
    #[error("the barrier is broken: a member has panicked")]
    Panicked = 2,
    /// A member dropped its [`Waiter`].
    #[error("the barrier is broken: a member has left")]
    Left = 3,
}

/// Bits that the reason takes in a word; 0 is whole.
pub(crate) const REASON_BITS: u32 = 2;

impl Broken {
    /// The reason in the lowest [`REASON_BITS`] bits of a word.
    #[inline]
    pub(crate) const fn in_word(word: u32) -> Option<Self> {
        match word & ((1 << REASON_BITS) - 1) {
            0 => None,
            1 => Some(Self::TimedOut),
            2 => Some(Self::Panicked),
            _ => Some(Self::Left),
        }
    }
}

/// There is no barrier for so many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a barrier for {asked} members: it can have 1 to {most}")]
pub struct WrongSize {
    asked: usize,
    most: usize,
}

impl WrongSize {
    /// Refuses what is not 1 to `most`.
    pub(crate) fn check(asked: usize, most: usize) -> Result<u32, Self> {
        let refused = Self { asked, most };
        if asked == 0 || asked > most {
            return Err(refused);
        }
        u32::try_from(asked).map_err(|_| refused)
    }

    /// How many were asked for.
    #[must_use]
    pub const fn asked(self) -> usize {
        self.asked
    }

    /// How many there can be at most.
    #[must_use]
    pub const fn most(self) -> usize {
        self.most
    }
}
