//! The signals from outside and the sum of the signals to outside.
//!
//! Both are functions of where they are asked for, not streams: whichever thread owns an input computes its
//! value without asking another, and the checksum is a sum, so threads add up their parts in any order. That
//! keeps the result independent of threads, locks and luck.
//!
//! The mixing function is the finalizer of SplitMix64: G. Steele, D. Lea, C. Flood, *Fast splittable
//! pseudorandom number generators*, OOPSLA 2014.

/// The value of primary input number `input` in `cycle`: a fair coin.
#[inline]
#[must_use]
pub fn stimulus(seed: u64, cycle: u64, input: u32) -> bool {
    mix(mix(seed ^ mix(cycle)).wrapping_add(u64::from(input))) >> 63 == 1
}

/// What output number `output` adds to the checksum if it has `value` at the end of `cycle`. Sums wrap.
#[inline]
#[must_use]
pub fn contribution(cycle: u64, output: u32, value: bool) -> u64 {
    mix(mix(cycle).wrapping_add(u64::from(output) << 1 | u64::from(value)))
}

#[inline]
fn mix(value: u64) -> u64 {
    // The increment keeps 0 from being mixed to 0.
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first outputs for seed 0, as in the reference implementation.
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(0x9e37_79b9_7f4a_7c15), 0x6e78_9e6a_a1b9_65f4);
    }

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
