//! The optimum on-line algorithm for a known distribution: one threshold, computed beforehand from
//! recorded waits.
//!
//! Source: Karlin et al. 1991, section 2.4; `stanchion advise --thresholds` computes the
//! thresholds.

use super::{Contention, Policy};
use stanchion_machine::atomic::{AtomicU32, Ordering};

/// Spins up to a threshold that its lock was given; before it is given one, for C.
///
/// With the threshold that is best for the lock's distribution of waits, the expected cost is at
/// most e/(e-1) = 1.58 times the off-line optimum's, whatever the distribution.
///
/// ```
/// use stanchion_competitive::{Mutex, PolicyMutex, RawPolicyMutex, policy::OptimalOnline};
///
/// let raw = RawPolicyMutex::with_policy(OptimalOnline::with_threshold(700));
/// let mutex = PolicyMutex::from_raw(raw, 5);
/// assert_eq!(*mutex.lock(), 5);
/// ```
#[derive(Debug)]
pub struct OptimalOnline {
    /// Nanoseconds; the largest number if none was given.
    threshold: AtomicU32,
}

constructors!(OptimalOnline);

const NOT_GIVEN: u32 = u32::MAX;

impl OptimalOnline {
    /// The longest threshold there is, in nanoseconds: about four seconds. A longer one is taken to
    /// be this.
    pub const MAX_THRESHOLD_NS: u64 = (u32::MAX - 1) as u64;

    /// Returns a policy by which waits spin for `nanos` nanoseconds, then block.
    #[must_use]
    pub const fn with_threshold(nanos: u64) -> Self {
        let nanos =
            if nanos > Self::MAX_THRESHOLD_NS { Self::MAX_THRESHOLD_NS } else { nanos } as u32;
        Self { threshold: AtomicU32::new(nanos) }
    }

    /// Gives the lock another threshold, in nanoseconds, from its next wait on.
    pub fn set_threshold(&self, nanos: u64) {
        // Relaxed: a number by itself.
        self.threshold.store(nanos.min(Self::MAX_THRESHOLD_NS) as u32, Ordering::Relaxed);
    }
}

impl Policy for OptimalOnline {
    const INIT: Self = Self { threshold: AtomicU32::new(NOT_GIVEN) };

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 {
            return 0;
        }
        // Relaxed: a number by itself.
        match self.threshold.load(Ordering::Relaxed) {
            NOT_GIVEN => contention.cost(),
            nanos => nanos.into(),
        }
    }
}
