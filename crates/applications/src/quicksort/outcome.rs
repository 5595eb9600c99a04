//! The options of a run, its result, and the errors of options.

use crate::crew::MAX_THREADS;
use crate::pace::CVAX_INSTRUCTION_NS;
use core::ops::RangeInclusive;
use core::time::Duration;
use thiserror::Error;

/// The number of numbers that there may be. Each takes 4 bytes, and 4 more for the check.
pub const NUMBERS: RangeInclusive<usize> = 1..=1 << 28;

/// The length up to which intervals are sorted by insertion: at least 1, and at most so long that a
/// run still ends.
pub const CUTOFF: RangeInclusive<usize> = 1..=10_000;

/// The options of a run.
///
/// ```
/// use stanchion_applications::quicksort::Options;
/// let options = Options { threads: 2, ..Options::default() };
/// assert_eq!((options.numbers, options.cutoff), (500_000, 20));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Numbers, within [`NUMBERS`].
    pub numbers: usize,
    /// Intervals of at most so many numbers, within [`CUTOFF`], are sorted by insertion.
    pub cutoff: usize,
    /// Threads, 1 to [`MAX_THREADS`]. The caller is one of them.
    pub threads: usize,
    /// Of the numbers and of the pivots.
    pub seed: u64,
    /// Set if each thread stays on one processor; processors are dealt out in turn.
    pub pinned: bool,
    /// The time that a simulated machine takes for an instruction, in nanoseconds. It has no effect
    /// on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// The paper's 500,000 numbers and insertion sort from 20 down; one thread, seed 1, not pinned.
    fn default() -> Self {
        Self {
            numbers: 500_000,
            cutoff: 20,
            threads: 1,
            seed: 1,
            pinned: false,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if !NUMBERS.contains(&self.numbers) {
            return Err(Refused::Numbers(self.numbers));
        }
        if !CUTOFF.contains(&self.cutoff) {
            return Err(Refused::Cutoff(self.cutoff));
        }
        if !(1..=MAX_THREADS).contains(&self.threads) {
            return Err(Refused::Threads(self.threads));
        }
        Ok(())
    }
}

/// Why nothing was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refused {
    /// Outside of [`NUMBERS`].
    #[error("{0} numbers: must be {least} to {most}", least = NUMBERS.start(), most = NUMBERS.end())]
    Numbers(usize),
    /// Outside of [`CUTOFF`].
    #[error("insertion sort for {0} numbers: must be {least} to {most}", least = CUTOFF.start(), most = CUTOFF.end())]
    Cutoff(usize),
    /// Not 1 to [`MAX_THREADS`].
    #[error("{0} threads: must be 1 to {MAX_THREADS}")]
    Threads(usize),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The numbers as the threads left them.
    pub numbers: Vec<u32>,
    /// The fault in the numbers, if there is one.
    pub fault: Option<Fault>,
    /// From before the first thread is started until all are done; making the numbers and checking
    /// them is not in it.
    pub elapsed: Duration,
    /// The work of each thread.
    pub threads: Vec<Share>,
}

impl Run {
    /// Intervals that were taken from the pool, all threads together. It depends on the options
    /// alone if the pool had always room.
    #[must_use]
    pub fn intervals(&self) -> u64 {
        self.threads.iter().map(|share| share.intervals).sum()
    }
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Intervals it took from the pool.
    pub intervals: u64,
    /// Intervals for which the pool had no room, so that it sorted them itself.
    pub kept: u64,
    /// Numbers it brought to their final index.
    pub sorted: u64,
    /// The processor it stayed on; none if it was left to the system.
    pub processor: Option<usize>,
}

/// The array is wrong: the structure lost an interval or gave it out twice, or the program is
/// wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("at index {index} is {found}, not {expected}")]
pub struct Fault {
    /// The first index that is wrong, counted from 0.
    pub index: usize,
    /// The number there.
    pub found: u32,
    /// The number that belongs there.
    pub expected: u32,
}

/// Returns the first index where `found` is not what `expected` is when sorted.
pub(super) fn fault(found: &[u32], mut expected: Vec<u32>) -> Option<Fault> {
    debug_assert_eq!(found.len(), expected.len(), "a sort does not change the array's length");
    expected.sort_unstable();
    let index = found.iter().zip(&expected).position(|(found, expected)| found != expected)?;
    Some(Fault { index, found: found[index], expected: expected[index] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_order_and_wrong_numbers_are_found() {
        let first = [5, 3, 4];
        assert_eq!(fault(&[3, 4, 5], first.to_vec()), None);
        let message = |found: &[u32]| fault(found, first.to_vec()).expect("a fault").to_string();
        assert_eq!(message(&[3, 5, 4]), "at index 1 is 5, not 4");
        assert_eq!(message(&[3, 4, 4]), "at index 2 is 4, not 5");
    }
}
