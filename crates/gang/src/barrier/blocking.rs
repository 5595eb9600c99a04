//! The blocking barrier: a member that comes too early sleeps.
//!
//! Why not the standard library's: its count is under a mutex, which each sleeper takes again when
//! it wakes up, one after the other. Here the last one wakes all with one call to the kernel, and
//! they go on without asking anybody. Why not always this: sleeping and waking up takes some 5 µs
//! to 50 µs.
//!
//! Arrivals are counted, and their sleepers woken, as `arrivals.rs` says.
//!
//! Source: the blocking side of Feitelson and Rudolph, "Gang Scheduling Performance Benefits for
//! Fine-Grain Synchronization", JPDC 1992, section 2.

use machine::clock::Deadline;
use machine::wait::WaitPolicy;

use super::anonymous::anonymous_barrier;
use super::arrivals::{Arrival, ArrivalWord};
use super::interface::{Broken, Crossing, MOST_MEMBERS, WrongSize};

/// A barrier whose members sleep at once, and which members need no names for.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival, one more for the first sleeper, a call to the kernel for each sleeper, and one to wake them all |
/// | size | a line |
/// | more threads than processors | at home: a member that waits has no processor |
///
/// It does not ask a [`WaitPolicy`].
///
/// ```
/// use stanchion_gang::barrier::Blocking;
///
/// let barrier = Blocking::new(4)?;
/// let leaders = std::thread::scope(|scope| {
///     let members: Vec<_> =
///         (0..4).map(|_| scope.spawn(|| barrier.wait().unwrap().is_leader())).collect();
///     members.into_iter().map(|member| member.join().unwrap()).filter(|&leads| leads).count()
/// });
/// assert_eq!(leaders, 1);
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Blocking {
    arrivals: ArrivalWord,
}

impl Blocking {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, MOST_MEMBERS)?;
        Ok(Self { arrivals: ArrivalWord::new(members) })
    }

    pub(super) fn arrivals(&self) -> &ArrivalWord {
        &self.arrivals
    }

    #[inline]
    fn wait_until(
        &self,
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_after(deadline, |_| None)
    }

    /// Waits: first as `before_sleep` does, which returns the word if it saw the phase over.
    #[inline]
    pub(super) fn wait_after(
        &self,
        deadline: Deadline,
        before_sleep: impl FnOnce(&Arrival) -> Option<u64>,
    ) -> Result<Crossing, Broken> {
        let arrival = self.arrivals.arrive()?;
        if arrival.is_last() {
            return Ok(Crossing::LEADER);
        }
        let seen = before_sleep(&arrival).or_else(|| self.arrivals.sleep(arrival, deadline));
        match seen {
            Some(word) => arrival.outcome(word)?,
            None => self.arrivals.give_up(arrival)?,
        }
        Ok(Crossing::FOLLOWER)
    }
}

anonymous_barrier!(Blocking);
