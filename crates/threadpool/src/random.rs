//! Pseudo-random numbers of one thread, to spread thieves over victims.

use core::cell::Cell;

/// A sequence of pseudo-random numbers (Marsaglia's xorshift). Its state is written by one thread.
pub(crate) struct XorShift(Cell<u32>);

impl XorShift {
    /// Creates the sequence of the worker with this index.
    pub(crate) fn new(index: usize) -> Self {
        Self(Cell::new((index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1))
    }

    /// Returns the next number.
    pub(crate) fn next(&self) -> u32 {
        let mut word = self.0.get();
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        self.0.set(word);
        word
    }
}
