//! Numbers that look random, as a function of an argument: the finalizer of SplitMix64.
//!
//! Why not a generator: a thread that needs number 17 computes it without asking for number 16. So
//! the result of a run does not depend on which thread did which part. Source: G. Steele, D. Lea,
//! C. Flood, *Fast splittable pseudorandom number generators*, OOPSLA 2014.

#[inline]
pub(crate) fn mix(value: u64) -> u64 {
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
}
