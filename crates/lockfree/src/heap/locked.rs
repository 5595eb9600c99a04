//! A heap under a lock: any sequential heap, and any lock.
//!
//! Why it is here: the other heaps are measured against it, and as long as no thread stops at a bad
//! time it is hard to beat. Taking a lock doubles the time that an operation needs to find its
//! path. A copied path has to be found as well, copied, and found again whenever another thread was
//! first.
//!
//! # Invariants
//!
//! 1. A comparison that panics under the lock leaves all entries in order ([`SequentialHeap`]), and
//!    the lock free.
//!
//! Source: the single-lock skew heap that Michael and Scott 1997, section 4.3, measure against.

use lock_api::RawMutex;
use stanchion_competitive::RawPolicyMutex;

use super::sequential::{QuaternaryHeap, SequentialHeap, SkewHeap};
use crate::Progress;
use crate::guarded::Guarded;

/// A priority queue under a lock: a sequential heap `S` under `L`, any `lock_api` raw mutex.
///
/// [`LockedHeap`] and [`LockedArrayHeap`] name the heap.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): a thread that stops with the lock stops others |
/// | cost | the lock's and the heap's |
/// | memory | the heap's, which doubles when it is full, under the lock, and does not shrink |
///
/// Keys are compared under the lock: an `Ord` that uses the same heap waits for itself. An `Ord`
/// that panics loses only the entry that was to be pushed.
///
/// ```
/// use stanchion_lockfree::heap::LockedArrayHeap;
///
/// static HEAP: LockedArrayHeap<u32, &str> = LockedArrayHeap::new();
/// HEAP.push(2, "second");
/// HEAP.push(1, "first");
/// assert_eq!(HEAP.pop_min(), Some((1, "first")));
/// assert_eq!(HEAP.len(), 1);
/// ```
///
/// With another lock:
///
/// ```
/// use stanchion_lockfree::heap::LockedHeap;
///
/// let heap = LockedHeap::with_capacity_and_lock(8, stanchion_spin::TestAndSet::new());
/// heap.push(1, 10);
/// assert_eq!(heap.pop_min(), Some((1, 10)));
/// ```
///
/// Entries that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let heap: stanchion_lockfree::heap::LockedHeap<u32, std::rc::Rc<()>> = Default::default();
/// shared(&heap);
/// ```
pub struct LockedSequentialHeap<S, L = RawPolicyMutex> {
    /// The heap under its lock.
    heap: Guarded<S, L>,
}

/// The heap of the paper: a skew heap under one lock. It moves no entry: for few and large ones.
pub type LockedHeap<K, V, L = RawPolicyMutex> = LockedSequentialHeap<SkewHeap<K, V>, L>;

/// An array with four children to a node, under one lock. The heap to use if you do not know which
/// to use, best with [`Barging`](crate::barging::Barging).
pub type LockedArrayHeap<K, V, L = RawPolicyMutex> = LockedSequentialHeap<QuaternaryHeap<K, V>, L>;

impl<S: SequentialHeap> LockedSequentialHeap<S> {
    /// Returns an empty heap, which has not allocated, under the default lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_lock(RawMutex::INIT)
    }

    /// Returns an empty heap with room for `capacity` entries, under the default lock. It grows
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

impl<S: SequentialHeap, L: RawMutex> LockedSequentialHeap<S, L> {
    /// Returns an empty heap, which has not allocated, under `lock`. That lock must be free.
    #[must_use]
    pub const fn with_lock(lock: L) -> Self {
        Self { heap: Guarded::new(lock, S::NEW) }
    }

    /// Returns an empty heap with room for `capacity` entries, under `lock`. That lock must be
    /// free. The heap grows beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity_and_lock(capacity: usize, lock: L) -> Self {
        Self { heap: Guarded::new(lock, S::with_capacity(capacity)) }
    }

    /// Puts `value` in, to come out when no smaller key is left.
    #[inline]
    pub fn push(&self, key: S::Key, value: S::Value) {
        self.heap.with(|heap| heap.push(key, value));
    }

    /// Takes an entry with the smallest key.
    #[inline]
    pub fn pop_min(&self) -> Option<(S::Key, S::Value)> {
        self.heap.with(S::pop_min)
    }

    /// Calls `look` with the entry that [`pop_min`](Self::pop_min) would take, under the lock: a
    /// `look` that uses the heap waits for itself.
    ///
    /// ```
    /// use stanchion_lockfree::heap::LockedHeap;
    ///
    /// let heap = LockedHeap::new();
    /// heap.push(2, "second");
    /// heap.push(1, "first");
    /// assert_eq!(heap.peek_min(|key, value| (*key, *value)), Some((1, "first")));
    /// ```
    pub fn peek_min<R>(&self, look: impl FnOnce(&S::Key, &S::Value) -> R) -> Option<R> {
        self.heap.with(|heap| heap.peek_min().map(|(key, value)| look(key, value)))
    }

    /// Takes the entry that [`pop_min`](Self::pop_min) would take, if `predicate` is true of it.
    /// Calls `predicate` under the lock: one that uses the heap waits for itself, and one that
    /// panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::heap::LockedHeap;
    ///
    /// let timers = LockedHeap::new();
    /// timers.push(10, "at ten");
    /// assert_eq!(timers.pop_min_if(|time, _| *time <= 9), None);
    /// assert_eq!(timers.pop_min_if(|time, _| *time <= 11), Some((10, "at ten")));
    /// ```
    pub fn pop_min_if(
        &self,
        predicate: impl FnOnce(&S::Key, &S::Value) -> bool,
    ) -> Option<(S::Key, S::Value)> {
        self.heap.with(|heap| {
            let (key, value) = heap.peek_min()?;
            if predicate(key, value) { heap.pop_min() } else { None }
        })
    }

    /// Returns the smallest key. Another thread may take it out before the caller looks at it.
    #[must_use]
    pub fn min_key(&self) -> Option<S::Key>
    where
        S::Key: Clone,
    {
        self.heap.with(|heap| heap.min_key().cloned())
    }

    /// Returns the number of entries. Takes the lock.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.with(|heap| heap.len())
    }

    /// Returns whether there are none. Takes the lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries, if the lock is free.
    fn try_len(&self) -> Option<usize> {
        self.heap.try_look(S::len)
    }
}

forward! {
    impl[S: SequentialHeap, L: RawMutex] PriorityQueue for LockedSequentialHeap<S, L>;
    entry: S::Key, S::Value;
    progress: Progress::Blocking;
}

conveniences! {
    impl[S: SequentialHeap, L: RawMutex] LockedSequentialHeap<S, L>;
    entry: S::Key, S::Value;
    new: LockedSequentialHeap::with_lock(L::INIT);
    debug: |heap| len = heap.try_len();
}

exclusive! {
    impl[S: SequentialHeap, L: RawMutex] LockedSequentialHeap<S, L>;
    entry: S::Key, S::Value;
    key: &S::Key;
    push_mut: |heap, key, value| heap.heap.get_mut().push(key, value);
    pop_mut: |heap| heap.heap.get_mut().pop_min();
    peek_mut: |heap| heap.heap.get_mut().peek_min_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(LockedHeap<u32, u32>: Send, Sync);
    // An entry that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(LockedHeap<std::rc::Rc<u32>, u32>: Send, Sync);
    assert_not_impl_any!(LockedHeap<u32, std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn smallest_first() {
        let mut heap: LockedHeap<u32, &str> = LockedHeap::default();
        heap.extend([(2, "b"), (3, "c")]);
        (&heap).extend([(1, "a")]);
        assert_eq!((heap.len(), heap.min_key()), (3, Some(1)));
        assert_eq!(heap.pop_min(), Some((1, "a")));
        assert!(heap.drain().eq([(2, "b"), (3, "c")]));
        assert!(heap.is_empty());
        assert_eq!(heap.pop_min(), None);
    }

    #[test]
    fn debug_does_not_wait_for_the_lock() {
        let heap: LockedHeap<u32, ()> = [(1, ())].into_iter().collect();
        assert_eq!(format!("{heap:?}"), "LockedSequentialHeap { len: Some(1), .. }");
        let held = heap.peek_min(|_, ()| {
            assert_eq!(format!("{heap:?}"), "LockedSequentialHeap { len: None, .. }");
        });
        assert!(held.is_some());
    }

    /// Not to be compared with 13.
    #[derive(PartialEq, Eq, Debug)]
    struct Superstitious(u32);

    impl PartialOrd for Superstitious {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    impl Ord for Superstitious {
        fn cmp(&self, other: &Self) -> Ordering {
            assert!(self.0 != 13 && other.0 != 13, "thirteen");
            self.0.cmp(&other.0)
        }
    }

    #[test]
    fn the_lock_is_free_after_a_comparison_that_panics() {
        let heap = LockedHeap::new();
        heap.push(Superstitious(1), ());
        let push = AssertUnwindSafe(|| heap.push(Superstitious(13), ()));
        assert!(catch_unwind(push).is_err());
        assert_eq!(heap.pop_min(), Some((Superstitious(1), ())));
        assert_eq!(heap.pop_min(), None);
    }
}
