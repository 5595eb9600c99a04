//! The paper's heap under one lock: a skew heap, with the lock on a cache line of its own.
//!
//! Why not the crate's [`LockedHeap`](stanchion_lockfree::heap::LockedHeap): its nodes lie in
//! one block, and the paper compares "link-based queues, stacks, and skew heaps" (section 4).
//!
//! # Invariants
//!
//! 1. The nodes of the tree are touched only by the holder of the lock.
//! 2. A node is owned by the tree, by the shelf that keeps it, or by the thread that has taken it
//!    from one of them.
//!
//! Source: Sleator and Tarjan, "Self-adjusting heaps", SIAM J. Comput. 1986, section 2: top-down
//! melding.

use core::ptr;

use lock_api::{Mutex, RawMutex};

use stanchion_lockfree::{PriorityQueue, Progress};
use stanchion_machine::cell::UnsafeCell;

use super::linked::{Line, Node, Shelves};

/// An entry of the heap; its node's `next` is the right child.
struct Entry<K, V> {
    /// The key.
    key: K,
    /// The value.
    value: V,
    /// The left child, or null.
    left: *mut Tree<K, V>,
}

/// A node of the tree.
type Tree<K, V> = Node<Entry<K, V>>;

/// A priority queue: a skew heap under a lock `L`.
pub struct SkewHeap<K, V, L> {
    /// The lock that guards the tree.
    lock: Line<Mutex<L, ()>>,
    /// The least entry, or null. Only the lock's holder writes it.
    root: Line<UnsafeCell<*mut Tree<K, V>>>,
    /// The nodes that threads keep for their next insertion.
    shelves: Shelves<Entry<K, V>>,
}

// SAFETY: the lock keeps threads apart (Invariant 1), a shelf has one thread, and an entry goes
// from the thread that pushes it to the one that pops it.
unsafe impl<K: Send, V: Send, L: Send> Send for SkewHeap<K, V, L> {}
// SAFETY: as above.
unsafe impl<K: Send, V: Send, L: Sync> Sync for SkewHeap<K, V, L> {}

impl<K, V, L: RawMutex> Default for SkewHeap<K, V, L> {
    fn default() -> Self {
        Self {
            lock: Line(Mutex::new(())),
            root: Line(UnsafeCell::new(ptr::null_mut())),
            shelves: Shelves::new(),
        }
    }
}

impl<K, V> Tree<K, V> {
    fn key(&self) -> &K {
        &self.value.as_ref().expect(OF_A_TREE).key
    }
}

/// Only a node that a shelf keeps has no entry.
const OF_A_TREE: &str = "a node of a tree has an entry";

/// Makes one tree of two.
///
/// # Safety
///
/// Each is null or a tree, and no other thread touches their nodes.
unsafe fn meld<K: Ord, V>(mut one: *mut Tree<K, V>, mut other: *mut Tree<K, V>) -> *mut Tree<K, V> {
    let mut root = ptr::null_mut();
    let mut place = &mut root;
    // SAFETY: null or a node, which this thread has alone.
    while let Some(mut least) = unsafe { one.as_mut() } {
        // SAFETY: as above; the two trees have no node in common.
        let Some(mut more) = (unsafe { other.as_mut() }) else { break };
        stanchion_machine::read(least.key());
        stanchion_machine::read(more.key());
        if more.key() < least.key() {
            core::mem::swap(&mut least, &mut more);
            core::mem::swap(&mut one, &mut other);
        }
        *place = one;
        // The children change places, and the tree that was the right one is melded on.
        let entry = least.value.as_mut().expect(OF_A_TREE);
        stanchion_machine::write(&least.next);
        stanchion_machine::write(&entry.left);
        one = core::mem::replace(&mut least.next, entry.left);
        place = &mut entry.left;
    }
    *place = if one.is_null() { other } else { one };
    root
}

impl<K, V, L> SkewHeap<K, V, L> {
    /// Returns the root, or null, for the holder of the lock.
    #[inline(always)]
    fn least(&self) -> *mut Tree<K, V> {
        // SAFETY: the lock is held (Invariant 1).
        self.root.with(|root| unsafe { *root })
    }
}

impl<K: Ord, V, L: RawMutex> PriorityQueue for SkewHeap<K, V, L> {
    type Key = K;
    type Value = V;

    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, key: K, value: V) {
        let mut node = self.shelves.node(Entry { key, value, left: ptr::null_mut() });
        node.next = ptr::null_mut();
        let node = Box::into_raw(node);
        let _held = self.lock.lock();
        // SAFETY: the lock is held (Invariant 1), and the node is this thread's (Invariant 2).
        let root = unsafe { meld(self.least(), node) };
        // SAFETY: the lock is held (Invariant 1).
        self.root.with_mut(|place| unsafe { *place = root });
    }

    fn pop_min(&self) -> Option<(K, V)> {
        let held = self.lock.lock();
        let least = self.least();
        let node = (!least.is_null()).then(|| {
            // SAFETY: it was a `Box`, and the tree owned it (Invariant 2).
            let least = unsafe { Box::from_raw(least) };
            stanchion_machine::read(&least.next);
            let left = least.value.as_ref().map_or(ptr::null_mut(), |entry| entry.left);
            // SAFETY: the lock is held (Invariant 1), and the node's children are two trees.
            let root = unsafe { meld(left, least.next) };
            // SAFETY: the lock is held (Invariant 1).
            self.root.with_mut(|place| unsafe { *place = root });
            least
        });
        drop(held);
        let entry = node.and_then(|node| self.shelves.value(node))?;
        Some((entry.key, entry.value))
    }

    fn is_empty(&self) -> bool {
        let _held = self.lock.lock();
        self.least().is_null()
    }
}

impl<K, V, L> Drop for SkewHeap<K, V, L> {
    fn drop(&mut self) {
        self.root.with_mut(|root| {
            // SAFETY: no other thread has the heap.
            let mut left = vec![unsafe { *root }];
            while let Some(node) = left.pop() {
                if !node.is_null() {
                    // SAFETY: it was a `Box`, and the tree owned it (Invariant 2).
                    let node = unsafe { Box::from_raw(node) };
                    left.push(node.next);
                    left.extend(node.value.map(|entry| entry.left));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Ordinary;
    use super::*;
    use stanchion_machine::model;

    #[test]
    fn a_skew_heap_gives_back_the_least_and_drops_the_rest() {
        model(|| {
            let heap: SkewHeap<u32, Box<u32>, Ordinary> = SkewHeap::default();
            assert!(heap.is_empty() && heap.pop_min().is_none());
            let keys = (0..100).map(|n| n * 37 % 101);
            keys.clone().for_each(|key| heap.push(key, Box::new(key)));
            let mut sorted: Vec<u32> = keys.collect();
            sorted.sort_unstable();
            for key in &sorted[..60] {
                assert_eq!(heap.pop_min(), Some((*key, Box::new(*key))));
            }
            assert!(!heap.is_empty());
        });
    }
}
