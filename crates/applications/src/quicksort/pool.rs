//! The intervals that are still to be sorted, in a queue or on a stack.

use core::ops::Range;
use stanchion_lockfree::{ConcurrentQueue, ConcurrentStack, Progress};

/// A part of the array that holds the right numbers, in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The index of its first number.
    first: u32,
    /// The number of its numbers.
    length: u32,
}

impl Interval {
    pub(super) fn new(first: usize, length: usize) -> Self {
        // The array has at most `NUMBERS` numbers.
        Self { first: first as u32, length: length as u32 }
    }

    /// Returns the indices of its numbers.
    pub(super) fn indices(self) -> Range<usize> {
        let first = self.first as usize;
        first..first + self.length as usize
    }
}

impl From<Interval> for u64 {
    fn from(Interval { first, length }: Interval) -> Self {
        Self::from(length) << 32 | Self::from(first)
    }
}

impl From<u64> for Interval {
    fn from(word: u64) -> Self {
        Self { first: word as u32, length: (word >> 32) as u32 }
    }
}

/// A container of intervals. If a thread finds it empty, no interval that was put in and not taken
/// out is in it.
pub trait Pool: Send + Sync + 'static {
    /// Tells what a thread that stops in the middle of an operation does to the others.
    const PROGRESS: Progress;

    /// Puts `interval` in.
    ///
    /// # Errors
    ///
    /// The interval, if there is no room; the caller sorts it itself.
    fn put(&self, interval: Interval) -> Result<(), Interval>;

    /// Takes one out, if there is one.
    fn take(&self) -> Option<Interval>;
}

/// Intervals in a queue: the large ones first, so the array is gone through once for each halving.
///
/// A bounded queue will do: what finds no room is sorted by the thread that made it.
#[derive(Debug, Default)]
pub struct InQueue<Q>(pub Q);

impl<Q: ConcurrentQueue<Item = Interval> + Send + Sync + 'static> Pool for InQueue<Q> {
    const PROGRESS: Progress = Q::PROGRESS;

    fn put(&self, interval: Interval) -> Result<(), Interval> {
        self.0.try_push(interval).map_err(|full| full.0)
    }

    fn take(&self) -> Option<Interval> {
        self.0.pop()
    }
}

/// Intervals on a stack: the last made first, so most numbers are sorted while they are in a cache.
#[derive(Debug, Default)]
pub struct InStack<S>(pub S);

impl<S: ConcurrentStack<Item = Interval> + Send + Sync + 'static> Pool for InStack<S> {
    const PROGRESS: Progress = S::PROGRESS;

    fn put(&self, interval: Interval) -> Result<(), Interval> {
        self.0.push(interval);
        Ok(())
    }

    fn take(&self) -> Option<Interval> {
        self.0.pop()
    }
}
