//! The work of one thread on an interval: cuts it in two around a pivot, or sorts it by insertion.
//!
//! The numbers are atomics with `Relaxed` accesses, which cost no more than plain ones. Why not
//! plain ones: a structure that hands an interval out twice would make two threads write them at
//! once, and this program is to find that out.
//!
//! # Orderings
//!
//! All are `Relaxed`: an interval is handed on through the pool, and with it the numbers that the
//! thread before has written.

use crate::mix::mix;
use stanchion_machine::atomic::{AtomicU32, Ordering::Relaxed};

/// Cuts `part`, of at least two numbers, in two that are not empty, and returns how many numbers
/// the first has: none there is greater than any in the second.
///
/// Numbers equal to the pivot go to either side, so an array of equal numbers is halved. Source of
/// the scheme: C. A. R. Hoare, *Quicksort*, 1962.
pub(super) fn split(part: &[AtomicU32], seed: u64) -> usize {
    let last = part.len() - 1;
    let pivot = to_front(part, seed);
    // One beyond on the right; on the left the pivot itself stops the first walk.
    let (mut left, mut right) = (0, last);
    loop {
        while part[right].load(Relaxed) > pivot {
            right -= 1;
        }
        while part[left].load(Relaxed) < pivot {
            left += 1;
        }
        if left >= right {
            return right + 1;
        }
        let value = part[left].load(Relaxed);
        part[left].store(part[right].load(Relaxed), Relaxed);
        part[right].store(value, Relaxed);
        left += 1;
        right -= 1;
    }
}

/// Swaps the median of three numbers to the front, where it keeps the second part from being empty,
/// and returns it.
fn to_front(part: &[AtomicU32], seed: u64) -> u32 {
    let index = |which: u64| (mix(seed.wrapping_add(which)) % part.len() as u64) as usize;
    let mut three = [0, 1, 2].map(|which| {
        let index = index(which);
        (part[index].load(Relaxed), index)
    });
    three.sort_unstable();
    let (pivot, index) = three[1];
    part[index].store(part[0].load(Relaxed), Relaxed);
    part[0].store(pivot, Relaxed);
    pivot
}

/// Sorts `part` by insertion, and returns how many numbers were moved.
pub(super) fn insertion_sort(part: &[AtomicU32]) -> u64 {
    let mut moved = 0;
    for next in 1..part.len() {
        let value = part[next].load(Relaxed);
        let mut index = next;
        while index > 0 {
            let before = part[index - 1].load(Relaxed);
            if before <= value {
                break;
            }
            part[index].store(before, Relaxed);
            index -= 1;
            moved += 1;
        }
        part[index].store(value, Relaxed);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn atomics(numbers: &[u32]) -> Vec<AtomicU32> {
        numbers.iter().copied().map(AtomicU32::new).collect()
    }

    fn values(part: &[AtomicU32]) -> Vec<u32> {
        part.iter().map(|number| number.load(Relaxed)).collect()
    }

    fn sorted(numbers: &[u32]) -> Vec<u32> {
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        sorted
    }

    proptest! {
        #[test]
        fn a_split_separates(numbers in prop::collection::vec(0_u32..12, 2..40), seed: u64) {
            let part = atomics(&numbers);
            let at = split(&part, seed);
            let after = values(&part);
            prop_assert!(0 < at && at < numbers.len(), "{} of {}", at, numbers.len());
            prop_assert!(after[..at].iter().max() <= after[at..].iter().min(), "{after:?} at {at}");
            prop_assert_eq!(sorted(&after), sorted(&numbers));
        }

        #[test]
        fn insertion_sorts(numbers in prop::collection::vec(any::<u32>(), 0..25)) {
            let part = atomics(&numbers);
            insertion_sort(&part);
            prop_assert_eq!(values(&part), sorted(&numbers));
        }
    }

    #[test]
    fn equal_numbers_are_halved() {
        assert_eq!(split(&atomics(&[7; 1_000]), 3), 500);
    }
}
