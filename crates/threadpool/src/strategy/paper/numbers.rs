//! Random numbers for strategies: cheap, and good enough to spread.
//!
//! Why not a crate: five instructions are enough, each worker has its own numbers, and a simulated
//! run must be the same every time, which [`entropy`](stanchion_machine::hint::entropy) guarantees.
//!
//! Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014
//! (SplitMix64, for which any start will do).

use stanchion_machine::cell::UnsafeCell;

use crate::strategy::WorkerSlot;

/// A source of random numbers.
pub(in crate::strategy::paper) struct Numbers(u64);

impl Numbers {
    pub(in crate::strategy::paper) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub(in crate::strategy::paper) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// Returns a number below `bound`, made from any number.
#[inline]
pub(in crate::strategy::paper) fn below(bound: usize, number: u64) -> usize {
    let product = u128::from(number) * bound as u128;
    // Below `bound`, which is a usize.
    (product >> 64) as usize
}

/// The random numbers of a worker slot.
pub(in crate::strategy::paper) struct Source(UnsafeCell<Numbers>);

// SAFETY: touched through its slot only, of which there is one, with one thread at a time.
unsafe impl Sync for Source {}

impl Source {
    /// Creates the numbers of the slot with this index.
    pub(in crate::strategy::paper) fn new(slot: usize) -> Self {
        let seed = stanchion_machine::hint::entropy().wrapping_add(slot as u64);
        Self(UnsafeCell::new(Numbers::new(seed)))
    }

    #[inline]
    pub(in crate::strategy::paper) fn next(&self, _: &WorkerSlot) -> u64 {
        self.0.with_mut(|numbers| {
            // SAFETY: the slot is with this thread, and this does not call itself.
            let numbers = unsafe { &mut *numbers };
            numbers.next()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_up_and_none_that_is_not_below() {
        for bound in 1..=20 {
            let mut numbers = Numbers::new(bound as u64);
            let chosen: std::collections::BTreeSet<_> =
                (0..1_000).map(|_| below(bound, numbers.next())).collect();
            assert!(chosen.into_iter().eq(0..bound));
        }
        assert_eq!(below(3, u64::MAX), 2);
    }
}
