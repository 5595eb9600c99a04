//! The two-phase barrier: spins for a time, then sleeps.
//!
//! Why not one or the other: spinning is fast while all members run, and burns the processor of the
//! one that is waited for when they do not. Who spins for as long as sleeping would cost, and then
//! sleeps, never pays more than twice the better of the two. Why not always this: twice is twice,
//! and where nobody knows, `CoResident` asks.
//!
//! Arrivals are counted, and their sleepers woken, as `arrivals.rs` says.
//!
//! Source: the two-phase blocking of Ousterhout, "Scheduling Techniques for Concurrent Systems",
//! ICDCS 1982; how long, Karlin et al. 1991, for locks.

use machine::atomic::Ordering;
use machine::clock::Deadline;
use machine::topology;
use machine::wait::{WaitPolicy, spin_for};
use stanchion_competitive::cost;

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::blocking::Blocking;
use super::interface::{Broken, Crossing, WrongSize};

/// A barrier whose members spin for a time before they sleep, and which members need no names for.
///
/// | | |
/// | --- | --- |
/// | to cross | as [`Central`](super::Central) while the others come in time; else as [`Blocking`] |
/// | size | a line |
/// | more threads than processors | if the barrier alone has more members than there are processors, it sleeps at once |
///
/// It does not ask a [`WaitPolicy`].
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
    blocking: Blocking,
    spin_ns: u64,
}

impl TwoPhase {
    /// A barrier for so many members, who spin for as long as it takes to be woken up
    /// ([`cost::current`] as of now), or not at all if there are more of them than the process may
    /// use processors.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`](super::MOST_MEMBERS).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let crowded = members > topology::parallelism();
        Self::with_spin(members, if crowded { 0 } else { cost::current() })
    }

    /// A barrier for so many members, who spin for so many nanoseconds.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_spin(members: usize, nanos: u64) -> Result<Self, WrongSize> {
        Ok(Self { blocking: Blocking::new(members)?, spin_ns: nanos })
    }

    /// For how many nanoseconds members spin.
    #[must_use]
    pub fn spin_ns(&self) -> u64 {
        self.spin_ns
    }

    fn arrivals(&self) -> &ArrivalWord {
        self.blocking.arrivals()
    }

    #[inline]
    fn wait_until(
        &self,
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.blocking.wait_after(deadline, |arrival| {
            let left = deadline.remaining().map_or(u64::MAX, |left| left.as_nanos() as u64);
            let nanos = self.spin_ns.min(left);
            if nanos == 0 {
                return None;
            }
            // Acquire: pairs with the arrivals of all others.
            let word = self.arrivals().word();
            spin_for(word, Ordering::Acquire, |word| arrival.is_over(word), nanos)
        })
    }
}

anonymous_barrier!(TwoPhase, spin_ns);
