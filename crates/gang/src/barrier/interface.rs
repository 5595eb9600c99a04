//! The trait of the barriers, and the ways in which a wait ends.

use core::fmt;

use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::{Patient, WaitPolicy};

/// The most members of a barrier: as many as there can be threads with a
/// [`stanchion_machine::thread::index`].
pub const MOST_MEMBERS: usize = stanchion_machine::thread::INDICES;

/// A barrier for a number of members that is given when it is made.
///
/// Users wait through a [`Waiter`](super::Waiter), or through the `wait` of barriers with
/// anonymous members. This trait is for code that is generic over barriers.
pub trait Barrier: Sized + Send + Sync + fmt::Debug {
    /// The state that a member keeps from one wait to the next.
    type MemberState: Send + fmt::Debug;

    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] for 0 members and for more than it can have.
    fn with_members(members: usize) -> Result<Self, WrongSize>;

    /// Returns the number of members.
    fn members(&self) -> usize;

    /// Returns the state of member `index` before its first wait. To be called once for each index:
    /// if two threads wait as the same member, phases may end too early, or never.
    ///
    /// # Panics
    ///
    /// If there is no such member.
    fn member_state(&self, index: usize) -> Self::MemberState;

    /// Arrives and waits for the others, by `policy`, until `deadline`. Then the barrier breaks for
    /// all.
    ///
    /// What a member did before this happens before what any member does after it.
    ///
    /// # Errors
    ///
    /// [`Broken`] and the reason. A broken barrier stays broken.
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken>;

    /// Waits as [`wait_at`](Self::wait_at) for a caller without a policy: by [`Patient`], unless
    /// the barrier knows better.
    ///
    /// # Errors
    ///
    /// [`Broken`] and the reason. A broken barrier stays broken.
    #[inline]
    fn wait_by_default(
        &self,
        state: &mut Self::MemberState,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_at(state, &mut <Patient>::start(), deadline)
    }

    /// Breaks the barrier, unless it is broken already. Members that wait, now or later, get `why`.
    fn break_with(&self, why: Broken);

    /// Returns the reason if the barrier is broken.
    fn broken(&self) -> Option<Broken>;
}

/// The result of a phase that was crossed: all members have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// True for one member of the phase.
    leads: bool,
}

impl Crossing {
    pub(crate) const LEADER: Self = Self { leads: true };
    pub(crate) const FOLLOWER: Self = Self { leads: false };

    /// Returns a leader's crossing if `leads`.
    #[inline]
    pub(crate) const fn of_leader(leads: bool) -> Self {
        Self { leads }
    }

    /// Returns whether this member is the leader: exactly one is, in each phase.
    #[must_use]
    pub const fn is_leader(self) -> bool {
        self.leads
    }
}

/// The reason why a barrier will never be crossed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub enum Broken {
    /// A member's deadline passed before all had arrived.
    #[error("the barrier is broken: a member has waited until its deadline")]
    TimedOut = 1,
    /// A member panicked.
    #[error("the barrier is broken: a member has panicked")]
    Panicked = 2,
    /// A member dropped its [`Waiter`](super::Waiter).
    #[error("the barrier is broken: a member has left")]
    Left = 3,
}

/// The bits of a word that hold the reason; 0 is whole.
pub(crate) const REASON_BITS: u32 = 2;

impl Broken {
    /// Returns the reason in the lowest [`REASON_BITS`] bits of a word.
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

/// The error that there is no barrier for so many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a barrier for {asked} members: it can have 1 to {most}")]
pub struct WrongSize {
    /// The number of members asked for.
    asked: usize,
    /// The most members of such a barrier.
    most: usize,
}

impl WrongSize {
    /// Returns an error unless `asked` is 1 to `most`.
    pub(crate) fn check(asked: usize, most: usize) -> Result<u32, Self> {
        let refused = Self { asked, most };
        if asked == 0 || asked > most {
            return Err(refused);
        }
        u32::try_from(asked).map_err(|_| refused)
    }

    /// Returns the number of members asked for.
    #[must_use]
    pub const fn asked(self) -> usize {
        self.asked
    }

    /// Returns the most members that there can be.
    #[must_use]
    pub const fn most(self) -> usize {
        self.most
    }
}
