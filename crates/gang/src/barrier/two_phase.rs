//! The two-phase barrier: a member spins for a time, then sleeps.
//!
//! Why not one or the other: spinning is fast while all members run. While they do not, it uses up
//! the processor of the member that is waited for. A member that spins for as long as sleeping
//! would cost, and then sleeps, never pays more than twice the better of the two. Why not always
//! this: twice is twice, and `CoResident` asks the system where the two cannot be told apart.
//!
//! `arrivals.rs` says how arrivals are counted and sleepers woken.
//!
//! Source: the two-phase blocking of Ousterhout, "Scheduling Techniques for Concurrent Systems",
//! ICDCS 1982. How long to spin: Karlin et al. 1991, for locks.

use stanchion_competitive::cost;
use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology;
use stanchion_machine::wait::{WaitPolicy, spin_for};

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, WrongSize};

/// A barrier of anonymous members that spin for a time before they sleep.
///
/// - To cross: as [`Central`](super::Central) while the others arrive in time, else as
///   [`Blocking`](super::Blocking).
/// - Size: a line.
/// - With more threads than processors: if the barrier alone has more members than there are
///   processors, they sleep at once.
///
/// It does not use a [`WaitPolicy`].
///
/// ```
/// use stanchion_gang::barrier::TwoPhase;
///
/// let barrier = TwoPhase::with_spin(4, 20_000)?;
/// assert_eq!(barrier.spin_ns(), 20_000);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| barrier.wait().unwrap());
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct TwoPhase {
    /// Counts arrivals, and has the sleepers. Members write it.
    arrivals: ArrivalWord,
    /// For how many nanoseconds members spin.
    spin_ns: u64,
}

impl TwoPhase {
    /// Creates a barrier for so many members, which spin for as long as it takes to be woken up
    /// ([`cost::current`] as of now). If there are more of them than the process may use
    /// processors, they do not spin.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`](super::MOST_MEMBERS).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let crowded = members > topology::parallelism();
        Self::with_spin(members, if crowded { 0 } else { cost::current() })
    }

    /// Creates a barrier for so many members, which spin for so many nanoseconds.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_spin(members: usize, nanos: u64) -> Result<Self, WrongSize> {
        Ok(Self { arrivals: ArrivalWord::for_members(members)?, spin_ns: nanos })
    }

    /// Returns for how many nanoseconds members spin.
    #[must_use]
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    #[inline]
    fn wait_until(
        &self,
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.arrivals.cross(|arrival| {
            let left = deadline.remaining().map_or(u64::MAX, |left| left.as_nanos() as u64);
            let nanos = self.spin_ns.min(left);
            let spin = || {
                // Acquire: pairs with the arrivals of all others.
                let word = self.arrivals.word();
                spin_for(word, Ordering::Acquire, |word| arrival.is_over(word), nanos)
            };
            let seen = if nanos == 0 { None } else { spin() };
            seen.or_else(|| self.arrivals.sleep(arrival, deadline))
        })
    }
}

anonymous_barrier!(TwoPhase, spin_ns);
