//! The yielding barrier: a member that arrives early yields its processor again and again, and
//! counts how often.
//!
//! This is not a barrier to be fast with. The blocking of the paper's experiments was this: a
//! thread that finds the others missing goes to the end of its processor's ready queue, and looks
//! again when its turn comes. How often it does so in an iteration is the model's α: about 4 with
//! one thread for each processor, and 1.2 with four. There a round through the queue takes long
//! enough for the others to arrive.
//!
//! `arrivals.rs` says how arrivals are counted.
//!
//! Source: Feitelson and Rudolph, "Gang Scheduling Performance Benefits for Fine-Grain
//! Synchronization", JPDC 1992, section 3.3.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::thread;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::{WaitPolicy, wait_until_deadline};

use super::anonymous::anonymous_barrier;
use super::arrivals::ArrivalWord;
use super::interface::{Broken, Crossing, WrongSize};

/// A barrier of anonymous members that yield until all have arrived.
///
/// - To cross: one exchange for each arrival, one more for each member that yielded, and the
///   yields.
/// - Size: two lines.
/// - With more threads than processors: in turns, each looks again and again.
///
/// It does not use a [`WaitPolicy`].
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
    /// Counts arrivals. Members write it.
    arrivals: ArrivalWord,
    /// Counts yields. Members write it.
    yields: CachePadded<AtomicU64>,
}

/// A wait policy that yields and counts.
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
    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`](super::MOST_MEMBERS).
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let arrivals = ArrivalWord::for_members(members)?;
        Ok(Self { arrivals, yields: CachePadded::new(AtomicU64::fresh(0)) })
    }

    /// Returns how often members have yielded in all phases so far. Divided by members and phases
    /// this is the α of the paper.
    #[must_use]
    pub fn yields(&self) -> u64 {
        // Relaxed: a count.
        self.yields.load(Ordering::Relaxed)
    }

    fn wait_until(
        &self,
        _policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.arrivals.cross(|arrival| {
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
            seen
        })
    }
}

anonymous_barrier!(Yielding, yields);
