//! Last three samples: the time that would have been best for the last three waits.
//!
//! Why three: few enough to keep in a word, enough that one odd wait does not decide.
//!
//! # Orderings
//!
//! All are Relaxed: only the lock's holder writes the word. A waiter that reads an old one spins
//! for an old threshold.
//!
//! Source: Karlin et al. 1991, section 2.5. Observations are rounded up to 16 spins and capped at
//! 1008, as in section 5.

use super::{Contention, Policy, Wait, percent};
use stanchion_machine::atomic::{AtomicU32, Ordering};

/// Spins for the threshold that would have cost least for the last three waits, taken to be equally
/// likely. `STEP` is what waits are rounded up to, in hundredths of C.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::LastThreeSamples};
/// let mutex = PolicyMutex::<_, LastThreeSamples>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Debug)]
pub struct LastThreeSamples<const STEP: u32 = 8> {
    /// Three bytes of samples, the latest lowest, in steps; above them the threshold, in steps.
    samples: AtomicU32,
}

constructors!(LastThreeSamples<STEP>);

impl<const STEP: u32> LastThreeSamples<STEP> {
    /// C in steps: the value of the samples before there are any.
    const COST: u32 = 100 / STEP;
}

/// The threshold, of those worth trying, that costs least for waits of `samples` when blocking
/// costs `cost`, all in one unit.
///
/// Worth trying are 0 and the samples: a threshold between two of them spins longer than the lower
/// and helps no other.
fn best(samples: [u32; 3], cost: u32) -> u32 {
    let total = |threshold: u32| -> u32 {
        samples.iter().map(|&wait| if wait <= threshold { wait } else { threshold + cost }).sum()
    };
    let mut best = 0;
    for threshold in samples {
        // The shorter of two that cost the same.
        if (total(threshold), threshold) < (total(best), best) {
            best = threshold;
        }
    }
    best
}

impl<const STEP: u32> Policy for LastThreeSamples<STEP> {
    const INIT: Self = {
        assert!(STEP >= 2 && STEP <= 100, "the step is in hundredths of C, from 2 to 100");
        let cost = Self::COST;
        Self { samples: AtomicU32::new(cost << 24 | cost << 16 | cost << 8 | cost) }
    };

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 {
            return 0;
        }
        let threshold = self.samples.load(Ordering::Relaxed) >> 24;
        percent::nanos(u64::from(threshold * STEP), contention.cost())
    }

    #[inline]
    fn adjust(&self, wait: &Wait) {
        // At most 252 steps, so it fits a byte.
        let latest =
            (percent::of(wait.length(), wait.cost(), STEP.into()) / u64::from(STEP)) as u32;
        let [_, _, second, first] = self.samples.load(Ordering::Relaxed).to_be_bytes();
        let samples = [latest, first.into(), second.into()];
        let threshold = best(samples, Self::COST);
        let word = threshold << 24 | samples[2] << 16 | samples[1] << 8 | samples[0];
        self.samples.store(word, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_threshold_for_three_waits() {
        assert_eq!(best([0, 0, 0], 12), 0);
        assert_eq!(best([3, 3, 3], 12), 3);
        // Two short ones: 3 + 3 + (3 + 12) = 21, against 36 for blocking at once and 66 for
        // spinning through.
        assert_eq!(best([3, 60, 3], 12), 3);
        // One short one: 3 + 2 * 15 = 33 against 36.
        assert_eq!(best([60, 60, 3], 12), 3);
        assert_eq!(best([60, 60, 5], 12), 0);
        assert_eq!(best([63, 63, 63], 12), 0);
        // Longer than C but even: spinning through costs 13 a wait, blocking 12.
        assert_eq!(best([13, 13, 13], 12), 0);
    }

    #[test]
    fn it_is_the_least_over_all_thresholds() {
        let total = |samples: [u32; 3], threshold: u32| -> u32 {
            samples.iter().map(|&wait| if wait <= threshold { wait } else { threshold + 12 }).sum()
        };
        for a in 0..40 {
            for b in 0..40 {
                for c in 0..40 {
                    let samples = [a, b, c];
                    let chosen = total(samples, best(samples, 12));
                    assert!((0..64).all(|other| total(samples, other) >= chosen), "{samples:?}");
                }
            }
        }
    }

    #[test]
    fn it_follows_the_waits() {
        let policy = LastThreeSamples::<8>::INIT;
        let contention = Contention::of_cost(10_000);
        assert_eq!(policy.threshold(&contention), 9_600);
        for _ in 0..3 {
            policy.adjust(&Wait::of(1_000, 10_000));
        }
        assert_eq!(policy.threshold(&contention), 1_600, "rounded up to two steps");
        for _ in 0..3 {
            policy.adjust(&Wait::of(u64::MAX, 10_000));
        }
        assert_eq!(policy.threshold(&contention), 0);
        policy.adjust(&Wait::of(0, 10_000));
        assert_eq!(policy.threshold(&contention), 0);
    }
}
