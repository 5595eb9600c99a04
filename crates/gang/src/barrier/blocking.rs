//! The blocking barrier: a member that arrives early sleeps.
//!
//! Why not the standard library's: its count is under a mutex, which each sleeper takes again when
//! it wakes up, one after the other. Here the last arrival wakes all members with one system call,
//! and they go on without a lock. Why not always this: sleeping and waking up takes some 5 µs to
//! 50 µs.
//!
//! `arrivals.rs` says how arrivals are counted and sleepers woken.
//!
//! Source: the blocking side of Feitelson and Rudolph, "Gang Scheduling Performance Benefits for
//! Fine-Grain Synchronization", JPDC 1992, section 2.

use stanchion_machine::clock::Deadline;
use stanchion_machine::wait::WaitPolicy;

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, WrongSize};

/// A barrier of anonymous members that sleep at once.
///
/// - To cross: one exchange for each arrival and one more for the first sleeper; a system call for
///   each sleeper, and one to wake them all.
/// - Size: a line.
/// - With more threads than processors: made for them. A member that waits uses no processor.
///
/// It does not use a [`WaitPolicy`].
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
    /// Counts arrivals, and has the sleepers. Members write it.
    arrivals: ArrivalWord,
}

impl Blocking {
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
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.arrivals.cross(|arrival| self.arrivals.sleep(arrival, deadline))
    }
}

anonymous_barrier!(Blocking);
