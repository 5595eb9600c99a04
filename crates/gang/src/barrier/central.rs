//! The central barrier: one word counts the members that have arrived, and says when all have.
//!
//! Why not two words, a count and a sense that is reversed. Then a member reads the sense and
//! counts itself in two steps, and the last one writes twice. Between two members there is one more
//! line to be passed. Why not always this: each arrival takes the line away from all members that
//! spin.
//!
//! The word, its invariants and its orderings are those of `arrivals.rs`.
//!
//! Source: the sense-reversing barrier of Mellor-Crummey and Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", TOCS 1991, section 3.1. That numbers run on,
//! so that there is no sense to reverse, is ours.

use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::WaitPolicy;

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, WrongSize};
use super::spin_then_sleep::spin_then_sleep;

/// A barrier of anonymous members, in one word.
///
/// - To cross: one exchange for each arrival. Each arrival takes the line away from each waiter.
/// - Size: a line.
/// - With more threads than processors: as its wait policy. [`Waiter`](super::Waiter)s and `wait`
///   spin, then yield.
/// - A long wait: where its wait policy would sleep, a member sleeps until the phase is over. The
///   last arrival makes a system call.
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
    /// Counts arrivals, and has the sleepers. Members write it.
    arrivals: ArrivalWord,
}

impl Central {
    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`](super::MOST_MEMBERS).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        Ok(Self { arrivals: ArrivalWord::for_members(members)? })
    }

    #[inline]
    fn wait_until(
        &self,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.arrivals.cross(|arrival| {
            spin_then_sleep(
                self.arrivals.word(),
                |word| arrival.is_over(word),
                policy,
                deadline,
                || self.arrivals.sleep(arrival, deadline),
            )
        })
    }
}

anonymous_barrier!(Central);
