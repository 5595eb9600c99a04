//! The central barrier: one word counts the members that have come, and says when all have.
//!
//! Why not two words, a count and a sense that is reversed: then a member reads the sense and
//! counts itself in two steps, the last one writes twice, and between two members there is a line
//! more to be passed. Why not always this: each arrival takes the line away from all who watch it.
//!
//! The word, its invariants and its orderings are those of `arrivals.rs`.
//!
//! Source: the sense-reversing barrier of Mellor-Crummey and Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", TOCS 1991, section 3.1. That numbers run on,
//! so that there is no sense to reverse, is ours.

use machine::clock::Deadline;
use machine::wait::WaitPolicy;

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, MOST_MEMBERS, WrongSize};
use super::spin_then_sleep::spin_then_sleep;

/// A barrier in one word, which members need no names for.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival; each arrival takes the line away from each waiter |
/// | size | a line |
/// | more threads than processors | as its wait policy: [`Waiter`](super::Waiter)s and `wait` spin, then yield |
/// | a long wait | where its wait policy would sleep, it sleeps until the phase is over; the last one makes a call to the kernel |
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
    arrivals: ArrivalWord,
}

impl Central {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, MOST_MEMBERS)?;
        Ok(Self { arrivals: ArrivalWord::new(members) })
    }

    fn arrivals(&self) -> &ArrivalWord {
        &self.arrivals
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
        let seen = spin_then_sleep(
            self.arrivals.word(),
            |word| arrival.is_over(word),
            policy,
            deadline,
            || self.arrivals.sleep(arrival, deadline),
        );
        match seen {
            Some(word) => arrival.outcome(word)?,
            None => self.arrivals.give_up(arrival)?,
        }
        Ok(Crossing::FOLLOWER)
    }
}

anonymous_barrier!(Central);
