//! The yielding barrier: who comes too early gives its processor away again and again, and counts
//! how often.
//!
//! Not a barrier to be fast with. The blocking of the paper's experiments was this: a thread that
//! finds the others missing goes to the end of its processor's ready queue, and looks again when
//! its turn comes. How often it does so in an iteration is the model's α: about 4 with one thread a
//! processor, 1.2 with four, where a round through the queue takes long enough for the others to
//! come.
//!
//! Arrivals are counted as in `arrivals.rs`.
//!
//! Source: Feitelson and Rudolph, "Gang Scheduling Performance Benefits for Fine-Grain
//! Synchronization", JPDC 1992, section 3.3.

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::Deadline;
use machine::thread;
use machine::topology::CachePadded;
use machine::wait::{WaitPolicy, wait_until_deadline};

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, MOST_MEMBERS, WrongSize};

/// A barrier whose members yield until all have come, and which members need no names for.
///
/// | | |
/// | --- | --- |
/// | to cross | one exchange for each arrival, one more for each member that yielded, and the yields |
/// | size | two lines |
/// | more threads than processors | in turns: each is asked again and again |
///
/// It does not ask a [`WaitPolicy`].
///
/// ```
/// use stanchion_gang::barrier::Yielding;
///
/// let barrier = Yielding::new(2)?;
/// std::thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| (0..100).for_each(|_| assert!(barrier.wait().is_ok())));
///     }
/// });
/// let alpha = barrier.yields() as f64 / 200.0;
/// assert!(alpha >= 0.0);
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Yielding {
    arrivals: ArrivalWord,
    yields: CachePadded<AtomicU64>,
}

/// Yields and counts.
struct Yields(u64);

impl WaitPolicy for Yields {
    fn start() -> Self {
        Self(0)
    }

    fn pause(&mut self) {
        self.0 += 1;
        thread::yield_now();
    }

    fn leaves(&self) -> bool {
        true
    }
}

impl Yielding {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, MOST_MEMBERS)?;
        let yields = CachePadded::new(AtomicU64::fresh(0));
        Ok(Self { arrivals: ArrivalWord::new(members), yields })
    }

    /// How often members have yielded in all phases so far. Divided by members and phases, the α of
    /// the paper.
    #[must_use]
    pub fn yields(&self) -> u64 {
        // Relaxed: a count.
        self.yields.load(Ordering::Relaxed)
    }

    fn arrivals(&self) -> &ArrivalWord {
        &self.arrivals
    }

    fn wait_until(
        &self,
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        let arrival = self.arrivals.arrive()?;
        if arrival.is_last() {
            return Ok(Crossing::LEADER);
        }
        let mut yields = Yields::start();
        // Acquire: pairs with the arrivals of all others.
        let seen = wait_until_deadline(
            self.arrivals.word(),
            Ordering::Acquire,
            |word| arrival.is_over(word),
            &mut yields,
            deadline,
        );
        if yields.0 > 0 {
            // Relaxed: a count.
            self.yields.fetch_add(yields.0, Ordering::Relaxed);
        }
        match seen {
            Some(word) => arrival.outcome(word)?,
            None => self.arrivals.give_up(arrival)?,
        }
        Ok(Crossing::FOLLOWER)
    }
}

anonymous_barrier!(Yielding, yields);
