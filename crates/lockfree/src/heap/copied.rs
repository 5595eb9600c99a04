//! A heap that is copied whole for each operation: the methodology without its optimization.
//!
//! Why it is here: its row of the figure shows why [`HerlihyHeap`](super::HerlihyHeap) copies a
//! path only. For a handful of entries it is the simpler one of the two, and takes any key that can
//! be cloned.
//!
//! Source: Herlihy 1993, section 5, the heap by the small-object protocol.

use super::sequential::{SequentialHeap, SkewHeap};
use crate::{Herlihy, Progress};

/// A priority queue that goes on when a thread stops: a sequential heap `S` in a [`Herlihy`].
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree), as far as cloning and comparing are |
/// | cost | O(n) clones for an operation; all again for each operation that was faster |
/// | memory | that of all entries, for each thread that has used it and once more |
///
/// A pop returns a clone. The original lives in old versions until they are copied over.
///
/// ```
/// use stanchion_lockfree::heap::CopiedHeap;
///
/// let heap = CopiedHeap::new();
/// heap.push(2, "second");
/// heap.push(1, "first");
/// assert_eq!(heap.pop_min(), Some((1, "first")));
/// assert_eq!(heap.len(), 1);
/// ```
///
/// Threads clone the same entry at the same time, so entries that are not `Sync` cannot be shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::heap::CopiedHeap::<u32, std::cell::Cell<u32>>::new());
/// ```
pub struct CopiedHeap<K, V, S = SkewHeap<K, V>>
where
    S: SequentialHeap<Key = K, Value = V>,
{
    /// The versions of the heap.
    heap: Herlihy<S>,
}

impl<K: Ord + Clone, V: Clone> CopiedHeap<K, V> {
    /// Returns an empty heap that copies a [`SkewHeap`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_heap(SkewHeap::new())
    }
}

impl<K: Clone, V: Clone, S: SequentialHeap<Key = K, Value = V> + Clone> CopiedHeap<K, V, S> {
    /// Returns a heap that copies `heap`, with the entries that are in it.
    #[must_use]
    pub fn with_heap(heap: S) -> Self {
        Self { heap: Herlihy::new(heap) }
    }

    /// Puts `value` in, to come out when no smaller key is left.
    pub fn push(&self, key: K, value: V) {
        self.heap.update(|heap| heap.push(key.clone(), value.clone()));
    }

    /// Takes an entry with the smallest key.
    pub fn pop_min(&self) -> Option<(K, V)> {
        // A copy is not needed to find nothing.
        if self.is_empty() { None } else { self.heap.update(S::pop_min) }
    }

    /// Calls `look` with the entry that [`pop_min`](Self::pop_min) would take, in the version of
    /// the heap that is the newest now. Other threads may take it out meanwhile, but none drops it
    /// before `look` is done.
    ///
    /// ```
    /// use stanchion_lockfree::heap::CopiedHeap;
    ///
    /// let heap = CopiedHeap::new();
    /// heap.push(1, "first");
    /// assert_eq!(heap.peek_min(|key, value| (*key, *value)), Some((1, "first")));
    /// ```
    pub fn peek_min<R>(&self, look: impl FnOnce(&K, &V) -> R) -> Option<R> {
        self.heap.read(|heap| heap.peek_min().map(|(key, value)| look(key, value)))
    }

    /// Takes the entry that [`pop_min`](Self::pop_min) would take, if `predicate` is true of it.
    /// Calls `predicate` again if another operation was faster.
    ///
    /// ```
    /// use stanchion_lockfree::heap::CopiedHeap;
    ///
    /// let timers = CopiedHeap::new();
    /// timers.push(10, "at ten");
    /// assert_eq!(timers.pop_min_if(|time, _| *time <= 9), None);
    /// assert_eq!(timers.pop_min_if(|time, _| *time <= 11), Some((10, "at ten")));
    /// ```
    pub fn pop_min_if(&self, mut predicate: impl FnMut(&K, &V) -> bool) -> Option<(K, V)> {
        // A copy is not needed to find that it is not true.
        if !self.peek_min(&mut predicate)? {
            return None;
        }
        self.heap.update(|heap| {
            let (key, value) = heap.peek_min()?;
            if predicate(key, value) { heap.pop_min() } else { None }
        })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.read(S::len)
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.read(S::is_empty)
    }
}

forward! {
    impl[K: Clone, V: Clone, S: SequentialHeap<Key = K, Value = V> + Clone]
        PriorityQueue for CopiedHeap<K, V, S>;
    entry: K, V;
    progress: Progress::LockFree;
}

conveniences! {
    impl[K: Clone, V: Clone, S: SequentialHeap<Key = K, Value = V> + Clone] CopiedHeap<K, V, S>;
    entry: K, V;
    new: CopiedHeap::with_heap(S::NEW);
    debug: |heap| len = heap.len();
}

exclusive! {
    impl[K: Clone, V: Clone, S: SequentialHeap<Key = K, Value = V> + Clone] CopiedHeap<K, V, S>;
    entry: K, V;
    key: &K;
    push_mut: |heap, key, value| heap.heap.get_mut().push(key, value);
    pop_mut: |heap| heap.heap.get_mut().pop_min();
    peek_mut: |heap| heap.heap.get_mut().peek_min_mut();
    cost: "Copies nothing.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::sync::Arc;

    assert_impl_all!(CopiedHeap<u32, u32>: Send, Sync);
    assert_not_impl_any!(CopiedHeap<u32, std::rc::Rc<u32>>: Send, Sync);
    // Entries are cloned by several threads at once.
    assert_not_impl_any!(CopiedHeap<u32, std::cell::Cell<u32>>: Sync);

    #[test]
    fn all_that_threads_push_comes_out_in_order() {
        let heap: CopiedHeap<u64, Arc<u64>> = CopiedHeap::new();
        let popped: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let heap = &heap;
                    scope.spawn(move || {
                        for number in 0..400 {
                            let key = (number * 7 + thread) % 100;
                            heap.push(key, Arc::new(key));
                        }
                        let pops = (0..200).map(|_| heap.pop_min().expect("more went in"));
                        pops.inspect(|(key, value)| assert_eq!(*key, **value)).count()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((popped, heap.len()), (600, 600));
        assert!(heap.drain().map(|(key, _)| key).is_sorted());
        assert!(heap.is_empty() && heap.pop_min().is_none());
    }
}
