//! A heap in an array, four children to a node.
//!
//! Why four and not two: half as many levels, and the four keys that a level compares lie side by
//! side. Why not `alloc`'s binary heap: it is a heap of entries, not of keys and values, its
//! largest comes first, and it moves entries while it compares.
//!
//! ```text
//! children of i: 4i + 1 ..= 4i + 4      parent of i: (i - 1) / 4
//!
//! pop:  1. from the root down, always to the smallest child, to a leaf: the path
//!       2. up the path again, to where the array's last entry belongs. It comes from the bottom,
//!          so that is near
//!       3. move: each entry of the path up by one, the last entry where it belongs, the root out
//! ```
//!
//! # Invariants
//!
//! 1. No key is smaller than its parent's.
//! 2. Nothing moves before an operation's last comparison (1 and 2 above), so a comparison that
//!    panics has changed nothing.
//!
//! Source: Johnson, "Priority queues with update and finding minimum spanning trees", IPL 1975, for
//! d children. Going to the bottom first is from Wegener's "Bottom-up heapsort", TCS 1993.

use core::fmt;

use super::SequentialHeap;

/// The number of children of a node.
const CHILDREN: usize = 4;

/// Returns the index of the parent of any entry but the root.
#[inline]
fn parent(index: usize) -> usize {
    (index - 1) / CHILDREN
}

/// A heap of one thread in an array.
///
/// A push of a key that is not among the smallest costs one or two comparisons, a pop about 1.5
/// log2 n. It allocates when it is larger than it ever was.
///
/// ```
/// use stanchion_lockfree::heap::sequential::{QuaternaryHeap, SequentialHeap};
///
/// let mut heap = QuaternaryHeap::with_capacity(2);
/// heap.push(2, 'b');
/// heap.push(1, 'a');
/// assert_eq!(heap.pop_min(), Some((1, 'a')));
/// ```
#[derive(Clone)]
pub struct QuaternaryHeap<K, V> {
    /// The entries: the children of entry i are those from 4i + 1 to 4i + 4.
    entries: Vec<(K, V)>,
}

impl<K: Ord, V> QuaternaryHeap<K, V> {
    /// Returns an empty heap, which has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self::NEW
    }

    fn key(&self, index: usize) -> &K {
        &self.entries[index].0
    }

    /// Returns the smallest child of `parent` among the first `len` entries.
    #[inline]
    fn smallest_child(&self, parent: usize, len: usize) -> Option<usize> {
        let first = parent * CHILDREN + 1;
        let children = self.entries[..len].get(first..)?;
        let (mut smallest, mut key) = (first, &children.first()?.0);
        for (at, child) in children.iter().take(CHILDREN).enumerate().skip(1) {
            if child.0 < *key {
                (smallest, key) = (first + at, &child.0);
            }
        }
        Some(smallest)
    }
}

impl<K: Ord, V> SequentialHeap for QuaternaryHeap<K, V> {
    type Key = K;
    type Value = V;

    const NEW: Self = Self { entries: Vec::new() };

    fn with_capacity(capacity: usize) -> Self {
        Self { entries: Vec::with_capacity(capacity) }
    }

    #[inline]
    fn push(&mut self, key: K, value: V) {
        let end = self.entries.len();
        let mut index = end;
        while index > 0 && key < *self.key(parent(index)) {
            index = parent(index);
        }
        // From here on nothing is compared (Invariant 2).
        self.entries.push((key, value));
        let mut hole = end;
        while hole > index {
            let above = parent(hole);
            self.entries.swap(hole, above);
            hole = above;
        }
    }

    #[inline]
    fn pop_min(&mut self) -> Option<(K, V)> {
        let last = self.entries.len().checked_sub(1)?;
        let mut index = 0;
        while let Some(child) = self.smallest_child(index, last) {
            index = child;
        }
        while index > 0 && *self.key(last) < *self.key(index) {
            index = parent(index);
        }
        // From here on nothing is compared (Invariant 2).
        let mut carried = self.entries.pop()?;
        if last > 0 {
            // Up the path again: each entry goes where its parent was.
            while index > 0 {
                core::mem::swap(&mut self.entries[index], &mut carried);
                index = parent(index);
            }
            core::mem::swap(&mut self.entries[0], &mut carried);
        }
        Some(carried)
    }

    fn peek_min(&self) -> Option<(&K, &V)> {
        self.entries.first().map(|(key, value)| (key, value))
    }

    fn peek_min_mut(&mut self) -> Option<(&K, &mut V)> {
        self.entries.first_mut().map(|(key, value)| (&*key, value))
    }

    fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<K: Ord, V> Default for QuaternaryHeap<K, V> {
    fn default() -> Self {
        Self::NEW
    }
}

impl<K, V> fmt::Debug for QuaternaryHeap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuaternaryHeap").field("len", &self.entries.len()).finish_non_exhaustive()
    }
}
