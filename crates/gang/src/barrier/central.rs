//! The central barrier: one word counts who has come, and says when all have.
//!
//! Why not two words, a count and a sense that is reversed: then a member reads the sense and counts itself in two steps, the last one writes twice,
//! and between two members there is a line more to be passed. Why not always this: each arrival takes the line away from all who watch it.
//!
//! The word, its invariants and its orderings are those of `arrivals.rs`.
//!
//! Source: the sense-reversing barrier of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", TOCS
//! 1991, section 3.1. That numbers run on, so that there is no sense to reverse, is ours.

use core::fmt;
use core::time::Duration;

use machine::atomic::Ordering;
use machine::clock::Deadline;
use machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use super::arrivals::Arrivals;
use super::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};

/// A barrier in one word, which members need no names for.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival; each arrival takes the line away from each waiter |
/// | size | a line |
/// | more threads than processors | as its wait policy: [`Waiter`](super::Waiter)s and `wait` spin, then yield, then sleep in steps |
///
/// ```
/// use stanchion_gang::barrier::Central;
///
/// let barrier = Central::new(4)?;
/// let leaders = std::thread::scope(|scope| {
///     let members: Vec<_> =
///         (0..4).map(|_| scope.spawn(|| barrier.wait().unwrap().is_leader())).collect();
///     members.into_iter().map(|member| member.join().unwrap()).filter(|&leads| leads).count()
/// });
/// assert_eq!(leaders, 1);
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Central {
    arrivals: Arrivals,
}

impl Central {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, MOST_MEMBERS)?;
        Ok(Self { arrivals: Arrivals::new(members) })
    }

    /// Waits for the others.
    ///
    /// # Errors
    ///
    /// [`Broken`] if it is.
    pub fn wait(&self) -> Result<Crossing, Broken> {
        self.wait_until(&mut <Patient>::start(), Deadline::NEVER)
    }

    /// Waits for the others, but breaks the barrier if they have not come within `timeout`.
    ///
    /// # Errors
    ///
    /// [`Broken`] if it is.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Crossing, Broken> {
        self.wait_until(&mut <Patient>::start(), Deadline::after(timeout))
    }

    #[inline]
    fn wait_until(
        &self,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        let arrival = self.arrivals.arrive()?;
        if arrival.is_last() {
            return Ok(Crossing::LEADER);
        }
        // Acquire: pairs with the arrivals of all others.
        let seen = wait_until_deadline(
            self.arrivals.word(),
            Ordering::Acquire,
            |word| arrival.is_over(word),
            policy,
            deadline,
        );
        match seen {
            Some(word) => arrival.outcome(word)?,
            None => self.arrivals.give_up(arrival)?,
        }
        Ok(Crossing::FOLLOWER)
    }
}

impl Barrier for Central {
    type Place = ();

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.arrivals.members()
    }

    fn place(&self, index: usize) -> Self::Place {
        assert!(index < self.members(), "member {index} of a barrier for {}", self.members());
    }

    #[inline]
    fn wait_at(
        &self,
        (): &mut Self::Place,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_until(policy, deadline)
    }

    fn shatter(&self, why: Broken) {
        self.arrivals.shatter(why);
    }

    fn broken(&self) -> Option<Broken> {
        self.arrivals.broken()
    }
}

impl fmt::Debug for Central {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Central")
            .field("members", &self.members())
            .field("arrived", &self.arrivals.arrived())
            .field("broken", &self.broken())
            .finish()
    }
}
