//! The signals from outside and the sum of the signals to outside.
//!
//! Both are functions of their arguments, not streams. The thread that owns an input computes its
//! value without asking another thread. The checksum is a sum, so threads add up their parts in any
//! order. That keeps the result independent of threads, locks and luck.

use crate::mix::mix;

/// The value of primary input number `input` in `cycle`: a fair coin.
#[inline]
#[must_use]
pub fn stimulus(seed: u64, cycle: u64, input: u32) -> bool {
    mix(mix(seed ^ mix(cycle)).wrapping_add(u64::from(input))) >> 63 == 1
}

/// Returns the part of output number `output` in the checksum, if it has `value` at the end of
/// `cycle`. Sums wrap.
#[inline]
#[must_use]
pub fn contribution(cycle: u64, output: u32, value: bool) -> u64 {
    mix(mix(cycle).wrapping_add(u64::from(output) << 1 | u64::from(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_fair_coins() {
        let ones = (0..100).flat_map(|cycle| (0..100).map(move |input| (cycle, input)));
        let ones = ones.filter(|&(cycle, input)| stimulus(7, cycle, input)).count();
        assert!((4_700..5_300).contains(&ones), "{ones} of 10000"); // six standard deviations
    }

    #[test]
    fn every_value_counts() {
        assert_ne!(contribution(3, 1, false), contribution(3, 1, true));
        assert_ne!(contribution(3, 1, true), contribution(3, 2, true));
        assert_ne!(contribution(3, 1, true), contribution(4, 1, true));
    }
}
