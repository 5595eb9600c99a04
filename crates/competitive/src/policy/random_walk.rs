//! Random walk: a threshold that takes one step for each wait, down after a long one, up after a
//! short one.
//!
//! Why not the last three samples: one number instead of three, and no sudden moves. Why not
//! always: if a lock's long waits come in a row, it keeps spinning for as many waits as there are
//! steps.
//!
//! # Orderings
//!
//! All are Relaxed: only the lock's holder writes the word. A waiter that reads an old one spins
//! for an old threshold.
//!
//! Source: Karlin et al. 1991, section 2.5: at most C, although table 3 prints 1008 spins for it.
//! The step is section 5's 16 spins.

use super::{Contention, Policy, Wait, percent};
use stanchion_machine::atomic::{AtomicU32, Ordering};

/// Spins for a threshold between 0 and C that every wait moves by `STEP` hundredths of C: down if
/// the wait was longer than C, else up.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::RandomWalk};
/// let mutex = PolicyMutex::<_, RandomWalk>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Debug)]
pub struct RandomWalk<const STEP: u32 = 8> {
    /// In hundredths of C.
    threshold: AtomicU32,
}

constructors!(RandomWalk<STEP>);

impl<const STEP: u32> Policy for RandomWalk<STEP> {
    const INIT: Self = {
        assert!(STEP >= 1 && STEP <= 100, "the step is in hundredths of C, from 1 to 100");
        Self { threshold: AtomicU32::new(100) }
    };

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 {
            return 0;
        }
        percent::nanos(self.threshold.load(Ordering::Relaxed).into(), contention.cost())
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        let threshold = self.threshold.load(Ordering::Relaxed);
        let threshold = if wait.length() > wait.cost() {
            threshold.saturating_sub(STEP)
        } else {
            (threshold + STEP).min(100)
        };
        self.threshold.store(threshold, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_walks_between_nothing_and_c() {
        let policy = RandomWalk::<8>::INIT;
        let contention = Contention::of_cost(10_000);
        assert_eq!(policy.threshold(&contention), 10_000);
        policy.adjust(&Wait::of(10_000, 10_000));
        assert_eq!(policy.threshold(&contention), 10_000, "as long as C is not longer");
        policy.adjust(&Wait::of(10_001, 10_000));
        assert_eq!(policy.threshold(&contention), 9_200);
        for _ in 0..50 {
            policy.adjust(&Wait::of(u64::MAX, 10_000));
        }
        assert_eq!(policy.threshold(&contention), 0);
        policy.adjust(&Wait::of(0, 10_000));
        assert_eq!(policy.threshold(&contention), 800);
    }
}
