//! Randomized: a random threshold, against which no sequence of waits is bad.
//!
//! Why random: an adversary that knows the threshold releases the lock just after it. Drawn from
//! the density e^(x/C) / (C (e - 1)) on 0 to C, the threshold costs at most e/(e-1) = 1.58 times
//! the off-line optimum in expectation, for *every* sequence that does not depend on the draws. A
//! fixed threshold can promise no less than 2.
//!
//! # Orderings
//!
//! Relaxed: the state of the generator is a number by itself. Two waiters that draw the same one do
//! no harm.
//!
//! Source: Karlin, Manasse, McGeoch and Owicki, "Competitive randomized algorithms for non-uniform
//! problems", SODA 1990.

use super::{Contention, Policy, percent};
use stanchion_machine::atomic::{AtomicU32, Ordering};

stanchion_machine::global! {
    /// The state of the generator (Weyl sequence), shared by all locks.
    static DRAWS: AtomicU32 = AtomicU32::new(0x9E37_79B9);
}

/// Spins for a random time up to C, then blocks. At most e/(e-1) times the off-line optimum in
/// expectation, for any sequence of waits that is not chosen knowing the draws.
///
/// ```
/// use stanchion_competitive::{PolicyMutex, policy::Randomized};
/// let mutex = PolicyMutex::<_, Randomized>::new(1);
/// assert_eq!(*mutex.lock(), 1);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Randomized;

/// The thresholds of 32 equally likely parts of the density, in hundredths of C: 100 ln(1 + u (e -
/// 1)) for u = (i + 1/2) / 32, rounded.
const THRESHOLDS: [u8; 32] = [
    3, 8, 13, 17, 22, 26, 30, 34, 38, 41, 45, 48, 51, 55, 58, 61, 63, 66, 69, 72, 74, 77, 79, 82,
    84, 86, 88, 91, 93, 95, 97, 99,
];

/// Mixes a counter into an even distribution (the finalizer of MurmurHash3).
fn mixed(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

impl Policy for Randomized {
    const INIT: Self = Self;

    #[inline]
    fn threshold(&self, contention: &Contention) -> u64 {
        if contention.blocks() > 0 {
            return 0;
        }
        let drawn = mixed(DRAWS.fetch_add(0x9E37_79B9, Ordering::Relaxed));
        percent::nanos(THRESHOLDS[drawn as usize % THRESHOLDS.len()].into(), contention.cost())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_density_s() {
        for (part, &threshold) in THRESHOLDS.iter().enumerate() {
            let u = (part as f64 + 0.5) / 32.0;
            let exact = 100.0 * (1.0 + u * (core::f64::consts::E - 1.0)).ln();
            assert_eq!(f64::from(threshold), exact.round(), "part {part}");
        }
    }

    #[test]
    fn draws_are_spread() {
        let contention = Contention::of_cost(10_000);
        let mut seen = [0_u32; 101];
        for _ in 0..32_000 {
            seen[(Randomized.threshold(&contention) / 100) as usize] += 1;
        }
        for threshold in THRESHOLDS {
            let count = seen[threshold as usize];
            assert!((700..1_300).contains(&count), "{threshold}: {count} of 1000");
        }
    }
}
