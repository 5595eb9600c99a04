//! A queue under a lock: a ring of values, and any lock.
//!
//! Why it is here: the other queues are measured against it. Why not a linked list, as in the
//! paper: a ring needs no node for a value and touches one line less for each operation, so it is
//! the stronger rival.
//!
//! Source: the single-lock queue that Michael and Scott 1997, section 4.1, measure against.

use std::collections::VecDeque;

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use stanchion_competitive::RawPolicyMutex;

use crate::Progress;
use crate::guarded::Guarded;

/// A queue of `T` under a lock `L`: any `lock_api` raw mutex.
///
/// [`SegmentedQueue`](super::SegmentedQueue) is the default choice. Take this one for `pop_all`,
/// for `with_capacity`, or if all threads push and pop with next to no other work.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): a thread that stops with the lock stops others |
/// | cost | the lock's |
/// | memory | a ring that doubles when it is full, under the lock, and does not shrink |
///
/// ```
/// use stanchion_lockfree::queue::LockedQueue;
///
/// static QUEUE: LockedQueue<&str> = LockedQueue::new();
/// QUEUE.push("first");
/// QUEUE.push("second");
/// assert_eq!(QUEUE.pop(), Some("first"));
/// assert_eq!(QUEUE.len(), 1);
/// ```
///
/// With the lock that is fastest if a thread does nothing but such operations:
///
/// ```
/// use stanchion_lockfree::{barging::Barging, queue::LockedQueue};
///
/// let queue = LockedQueue::with_capacity_and_lock(8, Barging::with_policy());
/// queue.push(1);
/// assert_eq!(queue.pop_all(), [1]);
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let queue: stanchion_lockfree::queue::LockedQueue<std::rc::Rc<()>> = Default::default();
/// shared(&queue);
/// ```
pub struct LockedQueue<T, L = RawPolicyMutex> {
    /// The values, alone on their line: data beside a lock that many threads want is fetched again
    /// and again. Written by the holder of the lock.
    values: CachePadded<Guarded<VecDeque<T>, L>>,
}

impl<T> LockedQueue<T> {
    /// Returns an empty queue, which has not allocated, under the default lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_lock(RawMutex::INIT)
    }

    /// Returns an empty queue with room for `capacity` values, under the default lock. It grows
    /// beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_lock(capacity, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> LockedQueue<T, L> {
    /// Returns an empty queue, which has not allocated, under `lock`. That lock must be free.
    #[must_use]
    pub const fn with_lock(lock: L) -> Self {
        Self { values: CachePadded::new(Guarded::new(lock, VecDeque::new())) }
    }

    /// Returns an empty queue with room for `capacity` values, under `lock`. That lock must be
    /// free. The queue grows beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity_and_lock(capacity: usize, lock: L) -> Self {
        Self { values: CachePadded::new(Guarded::new(lock, VecDeque::with_capacity(capacity))) }
    }

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        self.values.with(|values| {
            values.push_back(value);
            // The cell is charged for the ring's ends. The slot in the ring is a line of its own.
            values.back().inspect(|slot| stanchion_machine::write(*slot));
        });
    }

    /// Takes the oldest value.
    pub fn pop(&self) -> Option<T> {
        self.values.with(|values| {
            values.front().inspect(|slot| stanchion_machine::read(*slot));
            values.pop_front()
        })
    }

    /// Calls `look` with the oldest value, under the lock: a `look` that uses the queue waits for
    /// itself.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedQueue;
    ///
    /// let queue = LockedQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.peek(|oldest| *oldest), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.values.with(|values| values.front().map(look))
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the lock: a
    /// `predicate` that uses the queue waits for itself, and one that panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedQueue;
    ///
    /// let queue = LockedQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 0), None);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        self.values
            .with(|values| if predicate(values.front()?) { values.pop_front() } else { None })
    }

    /// Takes all values in one step, the oldest first. The queue allocates anew for later values.
    #[must_use = "what was in the queue is in it"]
    pub fn pop_all(&self) -> VecDeque<T> {
        self.values.with(core::mem::take)
    }

    /// Returns the number of values. Takes the lock.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.look(VecDeque::len)
    }

    /// Returns whether there is nothing in it. Takes the lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values, if the lock is free.
    fn try_len(&self) -> Option<usize> {
        self.values.try_look(VecDeque::len)
    }
}

forward! {
    impl[T, L: RawMutex] ConcurrentQueue for LockedQueue<T, L>;
    item: T;
    progress: Progress::Blocking;
}

conveniences! {
    impl[T, L: RawMutex] LockedQueue<T, L>;
    value: T;
    new: LockedQueue::with_lock(L::INIT);
    debug: |queue| len = queue.try_len();
}

exclusive! {
    impl[T, L: RawMutex] LockedQueue<T, L>;
    value: T;
    push_mut: |queue, value| queue.values.get_mut().push_back(value);
    pop_mut: |queue| queue.values.get_mut().pop_front();
    peek_mut: |queue| queue.values.get_mut().front_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(LockedQueue<u32>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(LockedQueue<std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn first_in_first_out() {
        let mut queue: LockedQueue<u32> = LockedQueue::default();
        queue.extend([1, 2]);
        (&queue).extend([3]);
        assert_eq!(queue.len(), 3);
        assert_eq!(queue.pop(), Some(1));
        assert!(queue.drain().eq([2, 3]));
        assert!(queue.is_empty());
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn debug_does_not_wait_for_the_lock() {
        let queue: LockedQueue<u32> = [1].into_iter().collect();
        assert_eq!(format!("{queue:?}"), "LockedQueue { len: Some(1), .. }");
        let held =
            queue.peek(|_| assert_eq!(format!("{queue:?}"), "LockedQueue { len: None, .. }"));
        assert!(held.is_some());
    }
}
