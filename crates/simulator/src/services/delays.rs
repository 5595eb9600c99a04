//! Threads that stop for a while, at accesses that the seed chooses: for faults that happen only if
//! one thread stands at a certain point until others have come far.
//!
//! Why the slices do not suffice: one ends because its time is up. So the same loop is interrupted
//! at few points, and a thread is never interrupted if no other thread wants its processor. Here a
//! processor more or less makes no difference. Why not priorities, as the scheduler of the paper
//! has them: a thread that is not of the first priority would stand still, and on a machine with
//! many processors all run. The important part of its points at which a priority changes is here:
//! some few, anywhere in the run, and all other threads go on meanwhile.
//!
//! Suppose that a fault needs `d` such stops, each at one of the run's `n` accesses and each of a
//! length that one in 14 has or more. A run with `d` delays among `n` accesses finds it with a
//! probability of at least `d! / (14 n)^d`. In practice the probability is far greater, as few bugs
//! want one access and no other.
//!
//! # Invariants
//!
//! 1. A thread is delayed at an access, as the earliest of all, before that is done. It sleeps on
//!    no word then, so the time alone ends its delay.
//! 2. The accesses and the lengths are of a stream of their own: a run without delays is the same
//!    as ever.
//!
//! Source: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with
//! probabilistic guarantees of finding bugs", ASPLOS 2010, section 3 (PCT); Emmi, Qadeer and
//! Rakamarić, "Delay-bounded scheduling", POPL 2011.

use crate::Time;
use crate::random::Random;

/// The shortest delay.
const SHORTEST: Time = Time::micros(1);
/// The number of times that it may be doubled: up to 8 ms.
const DOUBLINGS: u64 = 13;
/// The constant that makes this stream of numbers differ from the run's.
const STREAM: u64 = 0x6465_6c61_7973;

/// The delays of a run that have not been.
pub(crate) struct Delays {
    /// The number of accesses of the run before each delay: the next one last.
    moments: Vec<u64>,
    /// The stream of random numbers.
    random: Random,
}

impl Delays {
    /// So many, among so many accesses.
    pub(crate) fn new(seed: u64, count: usize, among: u64) -> Self {
        let mut random = Random::new(seed ^ STREAM);
        let mut moments: Vec<_> = (0..count).map(|_| random.below(among.max(1))).collect();
        moments.sort_unstable_by(|one, other| other.cmp(one));
        Self { moments, random }
    }

    /// Returns whether a thread is to be delayed at the next access, after that many.
    #[inline]
    pub(super) fn are_due(&self, accesses: u64) -> bool {
        self.moments.last().is_some_and(|&moment| moment <= accesses)
    }

    /// Takes out the delay that is due after that many accesses. Returns its length; `None` if none
    /// is due.
    pub(super) fn take(&mut self, accesses: u64) -> Option<Time> {
        if !self.are_due(accesses) {
            return None;
        }
        self.moments.pop();
        Some(Time::picos(SHORTEST.as_picos() << self.random.below(DOUBLINGS + 1)))
    }
}
