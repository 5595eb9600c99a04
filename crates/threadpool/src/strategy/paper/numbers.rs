//! Random numbers for strategies: cheap, and good enough to spread.
//!
//! Why not a crate: five instructions are enough, each place has its own, and a simulated run must be the same every time, which
//! [`entropy`](machine::hint::entropy) sees to.
//!
//! Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64, which any start will do for).

use machine::cell::UnsafeCell;

use crate::strategy::interface::WorkerSlot;

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

/// A number below `bound`, made of one that is any.
#[inline]
pub(in crate::strategy::paper) fn below(bound: usize, number: u64) -> usize {
    let product = u128::from(number) * bound as u128;
    // Below `bound`, which is a usize.
    (product >> 64) as usize
}

/// The random numbers of a place.
pub(in crate::strategy::paper) struct Source(UnsafeCell<Numbers>);

// SAFETY: touched through its place only, of which there is one, with one thread at a time.
unsafe impl Sync for Source {}

impl Source {
    /// That of the place with this number.
    pub(in crate::strategy::paper) fn new(slot: usize) -> Self {
        let seed = machine::hint::entropy().wrapping_add(slot as u64);
        Self(UnsafeCell::new(Numbers::new(seed)))
    }

    #[inline]
    pub(in crate::strategy::paper) fn next(&self, _: &WorkerSlot) -> u64 {
        self.0.with_mut(|numbers| {
            // SAFETY: the place is with this thread, and this does not call itself.
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
