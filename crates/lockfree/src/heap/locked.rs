//! A heap under a lock: whichever heap, and whichever lock, one likes.
//!
//! Why it is here: it is what the others are measured against, and as long as no thread stops at a bad time it is hard to beat. An operation takes a
//! lock twice as long as it takes to find its path; a copied path has to be found as well, copied, and found again whenever somebody else was first.
//!
//! # Invariants
//!
//! 1. `heap` is touched only by the holder of the lock.
//! 2. A comparison that panics under the lock leaves all entries in order ([`SequentialHeap`]), and the lock free.
//!
//! Source: the single-lock skew heap that Michael and Scott 1997, section 4.3, measure against.

use lock_api::{Mutex, RawMutex};
use machine::cell::UnsafeCell;
use stanchion_competitive::RawPolicyMutex;

use super::PriorityQueue;
use super::sequential::{QuaternaryHeap, SequentialHeap, SkewHeap};
use crate::Progress;

/// A priority queue under a lock `L`, any `lock_api` raw mutex, around the sequential heap `S`.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): the others wait for a thread that stops with the lock |
/// | cost | the lock's and the heap's |
/// | memory | the heap's, which doubles when it is full, under the lock, and does not shrink |
///
/// Keys are compared under the lock: an `Ord` that uses the same heap waits for itself. One that panics loses nothing but what was to be pushed.
///
/// ```
/// use stanchion_lockfree::heap::LockedHeap;
///
/// static HEAP: LockedHeap<u32, &str> = LockedHeap::new();
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
/// let heap: LockedHeap<u32, u32, stanchion_spin::TestAndSet> = LockedHeap::with_capacity(8);
/// heap.push(1, 10);
/// assert_eq!(heap.pop_min(), Some((1, 10)));
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let heap: stanchion_lockfree::heap::LockedHeap<u32, std::rc::Rc<()>> = Default::default();
/// shared(&heap);
/// ```
pub struct LockedHeap<K, V, L = RawPolicyMutex, S = SkewHeap<K, V>>
where
    S: SequentialHeap<Key = K, Value = V>,
{
    heap: Mutex<L, UnsafeCell<S>>,
}

/// The paper's, by name: a skew heap under one lock.
pub type LockedSkewHeap<K, V, L = RawPolicyMutex> = LockedHeap<K, V, L, SkewHeap<K, V>>;

/// An array with four children to a node, under one lock.
pub type LockedArrayHeap<K, V, L = RawPolicyMutex> = LockedHeap<K, V, L, QuaternaryHeap<K, V>>;

impl<K, V, L: RawMutex, S: SequentialHeap<Key = K, Value = V>> LockedHeap<K, V, L, S> {
    /// An empty heap, which has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self { heap: Mutex::new(UnsafeCell::new(S::NEW)) }
    }

    /// With room for `capacity` entries; it grows beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { heap: Mutex::new(UnsafeCell::new(S::with_capacity(capacity))) }
    }

    /// Puts `value` in, to come out when no smaller key is left.
    #[inline]
    pub fn push(&self, key: K, value: V) {
        self.locked(|heap| heap.push(key, value));
    }

    /// Takes an entry with the smallest key.
    #[inline]
    pub fn pop_min(&self) -> Option<(K, V)> {
        self.locked(S::pop_min)
    }

    /// The smallest key. Another thread may take it out before the caller looks at it.
    #[must_use]
    pub fn min_key(&self) -> Option<K>
    where
        K: Clone,
    {
        self.locked(|heap| heap.min_key().cloned())
    }

    /// How many entries there are. Takes the lock.
    #[must_use]
    pub fn len(&self) -> usize {
        self.locked(|heap| heap.len())
    }

    /// Whether there are none. Takes the lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn locked<R>(&self, operation: impl FnOnce(&mut S) -> R) -> R {
        let heap = self.heap.lock();
        heap.with_mut(|heap| {
            // SAFETY: the lock is held (Invariant 1).
            let heap = unsafe { &mut *heap };
            operation(heap)
        })
    }

    /// How many entries there are, if the lock is free.
    fn try_len(&self) -> Option<usize> {
        let heap = self.heap.try_lock()?;
        let len = heap.with(|heap| {
            // SAFETY: the lock is held (Invariant 1).
            let heap = unsafe { &*heap };
            heap.len()
        });
        Some(len)
    }
}

impl<K, V, L: RawMutex, S: SequentialHeap<Key = K, Value = V>> PriorityQueue
    for LockedHeap<K, V, L, S>
{
    type Key = K;
    type Value = V;

    const PROGRESS: Progress = Progress::Blocking;

    #[inline]
    fn push(&self, key: K, value: V) {
        self.push(key, value);
    }

    #[inline]
    fn pop_min(&self) -> Option<(K, V)> {
        self.pop_min()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[K, V, L: RawMutex, S: SequentialHeap<Key = K, Value = V>] LockedHeap<K, V, L, S>;
    item: (K, V);
    take: |heap| heap.pop_min();
    put: |heap, entry| heap.push(entry.0, entry.1);
    new: LockedHeap::new();
    debug: |heap| len = heap.try_len();
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
    assert_not_impl_any!(LockedSkewHeap<u32, std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn smallest_first() {
        let mut heap: LockedSkewHeap<u32, &str> = LockedHeap::default();
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
        assert_eq!(format!("{heap:?}"), "LockedHeap { len: Some(1), .. }");
        let held = heap.heap.lock();
        assert_eq!(format!("{heap:?}"), "LockedHeap { len: None, .. }");
        drop(held);
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
        let heap: LockedHeap<Superstitious, ()> = LockedHeap::new();
        heap.push(Superstitious(1), ());
        let push = AssertUnwindSafe(|| heap.push(Superstitious(13), ()));
        assert!(catch_unwind(push).is_err());
        assert_eq!(heap.pop_min(), Some((Superstitious(1), ())));
        assert_eq!(heap.pop_min(), None);
    }
}
