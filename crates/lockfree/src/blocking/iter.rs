//! Iterators over what comes out of a queue in which threads wait.

use core::fmt;
use core::iter::FusedIterator;

use super::Blocking;
use crate::ConcurrentQueue;

/// An iterator that waits for each value, and ends when the queue is closed and empty.
///
/// Made by [`Blocking::iter`] and [`Receiver::iter`](super::Receiver::iter).
pub struct Iter<'q, Q> {
    /// The queue that values are taken from.
    pub(super) queue: &'q Blocking<Q>,
}

/// An iterator over the values that are there, which never waits.
///
/// Made by [`Blocking::try_iter`] and [`Receiver::try_iter`](super::Receiver::try_iter). It yields
/// `None` whenever the queue is empty, and may yield a value after that.
pub struct TryIter<'q, Q> {
    /// The queue that values are taken from.
    pub(super) queue: &'q Blocking<Q>,
}

impl<Q: ConcurrentQueue> Iterator for Iter<'_, Q> {
    type Item = Q::Item;

    fn next(&mut self) -> Option<Q::Item> {
        self.queue.pop().ok()
    }
}

// A queue that is closed and empty stays so.
impl<Q: ConcurrentQueue> FusedIterator for Iter<'_, Q> {}

impl<Q: ConcurrentQueue> Iterator for TryIter<'_, Q> {
    type Item = Q::Item;

    fn next(&mut self) -> Option<Q::Item> {
        self.queue.try_pop().ok()
    }
}

impl<Q> Clone for Iter<'_, Q> {
    fn clone(&self) -> Self {
        Self { queue: self.queue }
    }
}

impl<Q> Clone for TryIter<'_, Q> {
    fn clone(&self) -> Self {
        Self { queue: self.queue }
    }
}

impl<Q> fmt::Debug for Iter<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("closed", &self.queue.is_closed()).finish_non_exhaustive()
    }
}

impl<Q> fmt::Debug for TryIter<'_, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryIter").field("closed", &self.queue.is_closed()).finish_non_exhaustive()
    }
}
