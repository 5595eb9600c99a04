//! The buckets: which waits are counted together.
//!
//! | waits | buckets | each is |
//! | --- | --- | --- |
//! | up to 5.04 C | 63 | 0.08 C wide: the paper's 16 of 200 spins, up to its 1008 |
//! | longer | 96 | a quarter of an octave, over 24 octaves; the last has no end |
//! | wake latencies | 97 | the same quarters of octaves, from 64 ns on |
//!
//! A quarter of an octave is from 25 % to 14 % wide.
//!
//! Why not logarithmic throughout: the choice between spinning and blocking is made around C, and
//! there a quarter of an octave would be coarser than the steps that the policies take. Why not
//! linear throughout: the paper cut its waits at 1008 spins, and had to admit that the cost of
//! always-spin came out too low for it (section 5).
//!
//! A bucket is open below and closed above, as D[i] of section 2.4 is: more than i - 1 and at most
//! i. The first one has the waits of no length too.
//!
//! Source: Karlin et al. 1991, section 3.

use crate::cost;

/// Buckets of one unit each.
pub(super) const LINEAR: usize = 63;
const QUARTERS: usize = 4;
const OCTAVES: usize = if IN_A_MODEL { 1 } else { 24 };
/// Set if everything is small: a model's threads have small stacks, and its tables one bucket.
pub(super) const IN_A_MODEL: bool = stanchion_machine::park::BUCKETS == 1;
/// Buckets of waits.
pub(super) const LENGTHS: usize = LINEAR + LOGARITHMIC;
/// Buckets of wake latencies.
pub(super) const LATENCIES: usize = 1 + LOGARITHMIC;
const LOGARITHMIC: usize = QUARTERS * OCTAVES;
/// The end of the first bucket of latencies, in nanoseconds.
const LEAST_LATENCY: u64 = 64;

/// The number of classes of *others waiting at arrival*: 0 to 15, and more.
pub const ARRIVALS: usize = 17;

/// A longer wait counts as this long, in nanoseconds: an hour. It was a suspended machine, or a
/// clock that was set.
pub const MAX_LENGTH_NS: u64 = 3_600_000_000_000;

/// The widest unit there is, in nanoseconds: that of a C of one second.
pub const MAX_UNIT_NS: u64 = 80_000_000;

/// 0.08 C, where C is taken to be within the bounds of [`cost`]. At least 40 ns, at most 4 µs.
pub(super) fn unit(cost: u64) -> u64 {
    cost.clamp(cost::MIN_NS, cost::MAX_NS) * 8 / 100
}

/// The bucket of a wait of `length`, with that unit, which is not 0.
#[inline]
pub(super) fn of_length(length: u64, unit: u64) -> usize {
    // At most the end of the linear part.
    let linear = LINEAR as u64 * unit;
    if length <= linear {
        (length.div_ceil(unit).max(1) - 1) as usize
    } else {
        LINEAR + logarithmic(length, linear)
    }
}

/// The bucket of a wake latency.
#[inline]
pub(super) fn of_latency(latency: u64) -> usize {
    if latency <= LEAST_LATENCY { 0 } else { 1 + logarithmic(latency, LEAST_LATENCY) }
}

/// The longest wait in a bucket; the last bucket's is the longest there is.
pub(super) fn longest(bucket: usize, unit: u64) -> u64 {
    match bucket {
        0..LINEAR => (bucket as u64 + 1) * unit,
        _ if bucket + 1 >= LENGTHS => MAX_LENGTH_NS,
        _ => end(bucket - LINEAR, LINEAR as u64 * unit).min(MAX_LENGTH_NS),
    }
}

/// Returns the length that the waits in a bucket exceed, or `None` for the first bucket.
pub(super) fn above(bucket: usize, unit: u64) -> Option<u64> {
    bucket.checked_sub(1).map(|lower| longest(lower, unit))
}

/// Returns whether a wait of `length` lies in that bucket.
#[cfg(feature = "wait_files")]
pub(super) fn holds(bucket: usize, length: u64, unit: u64) -> bool {
    length <= longest(bucket, unit) && above(bucket, unit).is_none_or(|above| length > above)
}

/// The longest latency in a bucket; the last bucket's is the longest there is.
pub(super) fn longest_latency(bucket: usize) -> u64 {
    match bucket {
        0 => LEAST_LATENCY,
        _ if bucket + 1 >= LATENCIES => MAX_LENGTH_NS,
        _ => end(bucket - 1, LEAST_LATENCY),
    }
}

/// Returns the quarter of an octave above `base` that a `value` above it lies in.
#[inline]
fn logarithmic(value: u64, base: u64) -> usize {
    // Quarters of `base`, more than 4 of them: 5 to 8 in the first octave, 9 to 16 in the next.
    let quarters = value.min(MAX_LENGTH_NS).saturating_mul(QUARTERS as u64).div_ceil(base);
    // More than 4 also where a base lies beyond the longest wait.
    let octave = (quarters.max(5) - 1).ilog2() - 2;
    let within = quarters.max(5).div_ceil(1 << octave) as usize - QUARTERS - 1;
    (octave as usize * QUARTERS + within).min(LOGARITHMIC - 1)
}

/// The end of a quarter of an octave above `base`.
fn end(quarter: usize, base: u64) -> u64 {
    let octave = (quarter / QUARTERS) as u32;
    let quarters = (QUARTERS + quarter % QUARTERS + 1) as u64;
    ((base * quarters) << octave) / QUARTERS as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_wait_lies_in_its_bucket(length in 0..=MAX_LENGTH_NS, shift in 0_u32..42, unit in 1..=MAX_UNIT_NS, narrow in 0_u32..27) {
            let (length, unit) = (length >> shift, (unit >> narrow).max(1));
            let bucket = of_length(length, unit);
            assert!(length <= longest(bucket, unit), "{length} in {bucket} of {unit}");
            assert!(above(bucket, unit).is_none_or(|above| length > above), "{length} in {bucket} of {unit}");
        }

        #[test]
        fn a_latency_lies_in_its_bucket(latency in 0..=MAX_LENGTH_NS, shift in 0_u32..42) {
            let latency = latency >> shift;
            let bucket = of_latency(latency);
            assert!(latency <= longest_latency(bucket));
            assert!(bucket == 0 || latency > longest_latency(bucket - 1));
        }
    }

    #[test]
    fn the_paper_s_buckets() {
        // C = 200 spins of 1 ns: a unit of 16, and 63 of them end at 1008.
        assert_eq!(longest(62, 16), 1008);
        assert_eq!(
            [0, 1, 16, 17, 1008, 1009].map(|length| of_length(length, 16)),
            [0, 0, 0, 1, 62, 63]
        );
        // Then quarters of an octave.
        assert_eq!(
            [63, 64, 65, 66, 67].map(|bucket| longest(bucket, 16)),
            [1260, 1512, 1764, 2016, 2520]
        );
        assert_eq!(of_length(u64::MAX, 1), LENGTHS - 1);
        assert_eq!(of_latency(u64::MAX), LATENCIES - 1);
    }

    #[test]
    fn a_cost_of_nothing_and_one_of_ten_seconds_have_a_unit() {
        assert_eq!(unit(0), 40);
        assert_eq!(unit(5_000), 400);
        assert_eq!(unit(10_000_000_000), 4_000);
    }
}
