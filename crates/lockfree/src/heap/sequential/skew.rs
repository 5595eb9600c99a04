//! The skew heap: a binary tree that balances itself by swapping the children of every node it
//! passes.
//!
//! Why not an array: two arrays cannot be made one without a look at every entry. An operation on
//! an array writes all over it, while here it changes one path. That makes the heap fit for copying
//! ([`HerlihyHeap`](crate::heap::HerlihyHeap)).
//!
//! ```text
//! meld(x, y):  the right spines of both, merged in the order of keys. Then, from the bottom, each
//!              node's left tree becomes its right one, and the rest of the spine its left one
//!
//!   1        2          1
//!  / \  and / \   =    / \        path: 1, 2, 3 (the right child of 1)
//! 4   3    6   5      2   4
//!                    / \
//!                   ..  6
//! ```
//!
//! Nodes are numbered and lie in one block: there is no recursion, neither in an operation nor in
//! `Drop`.
//!
//! # Invariants
//!
//! 1. A node's key is no smaller than its parent's.
//! 2. No node changes before an operation's last comparison: the merged path is written down first.
//!    So a comparison that panics has changed nothing.
//! 3. A node has an entry exactly if it can be reached from the root. The other nodes are chained
//!    from `free` by their `left`.
//!
//! Source: Sleator and Tarjan, "Self-adjusting heaps", SIAM Journal on Computing 15(1), 1986,
//! top-down skew heaps.

use core::fmt;

use super::SequentialHeap;

/// The number that names no node.
const NONE: u32 = u32::MAX;

/// The skew heap of one thread.
///
/// Both operations take amortized O(log n) comparisons. A single operation can take n. A node takes
/// 8 bytes besides its entry. The heap allocates when it is larger than it ever was, or its path
/// longer.
///
/// ```
/// use stanchion_lockfree::heap::sequential::{SequentialHeap, SkewHeap};
///
/// let mut heap = SkewHeap::NEW;
/// heap.push(2, 'b');
/// heap.push(1, 'a');
/// assert_eq!(heap.pop_min(), Some((1, 'a')));
/// ```
pub struct SkewHeap<K, V> {
    /// The nodes, in the tree or free.
    nodes: Vec<Node<K, V>>,
    /// The root, or [`NONE`].
    root: u32,
    /// The first free node, or [`NONE`].
    free: u32,
    /// The number of entries.
    len: usize,
    /// The merged path of the operation that is going on.
    path: Vec<u32>,
}

/// A node of the tree, or a free one.
#[derive(Clone)]
struct Node<K, V> {
    /// The entry, if the node is in the tree.
    entry: Option<(K, V)>,
    /// The left child, or the next free node, or [`NONE`].
    left: u32,
    /// The right child, or [`NONE`].
    right: u32,
}

impl<K: Ord, V> SkewHeap<K, V> {
    /// Returns an empty heap, which has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self::NEW
    }

    fn node(&self, node: u32) -> &Node<K, V> {
        &self.nodes[node as usize]
    }

    /// Returns the key of a node of the tree.
    fn key(&self, node: u32) -> Option<&K> {
        self.node(node).entry.as_ref().map(|(key, _)| key)
    }

    /// Writes down the merged right spines of the trees `x` and `y`. Returns the rest of one when
    /// the other has ended: it hangs below the path.
    fn merge(&mut self, mut x: u32, mut y: u32) -> u32 {
        self.path.clear();
        while x != NONE && y != NONE {
            // Equal keys: the one of `x` first.
            if self.key(y) < self.key(x) {
                core::mem::swap(&mut x, &mut y);
            }
            self.path.push(x);
            x = self.node(x).right;
        }
        if x == NONE { y } else { x }
    }

    /// Links the nodes of the path, with `below` at its end. Returns the first of them.
    fn link(&mut self, mut below: u32) -> u32 {
        while let Some(index) = self.path.pop() {
            let node = &mut self.nodes[index as usize];
            node.right = node.left;
            node.left = below;
            below = index;
        }
        below
    }

    /// Makes a node with this entry that has no children but `left`.
    fn make(&mut self, entry: (K, V), left: u32) -> u32 {
        let node = Node { entry: Some(entry), left, right: NONE };
        if self.free == NONE {
            assert!(
                self.nodes.len() < NONE as usize,
                "a skew heap numbers its nodes in 32 bits and has {NONE} entries: take some out before the next push"
            );
            self.nodes.push(node);
            // Fits, by the assertion.
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].left;
        self.nodes[index as usize] = node;
        index
    }
}

impl<K: Ord, V> SequentialHeap for SkewHeap<K, V> {
    type Key = K;
    type Value = V;

    const NEW: Self = Self { nodes: Vec::new(), root: NONE, free: NONE, len: 0, path: Vec::new() };

    fn with_capacity(capacity: usize) -> Self {
        Self { nodes: Vec::with_capacity(capacity), ..Self::NEW }
    }

    fn push(&mut self, key: K, value: V) {
        self.path.clear();
        let mut below = self.root;
        while below != NONE && self.key(below).is_some_and(|other| *other <= key) {
            self.path.push(below);
            below = self.node(below).right;
        }
        // From here on nothing is compared (Invariant 2). The new node's only child changes sides
        // like the others.
        let new = self.make((key, value), below);
        self.root = self.link(new);
        self.len += 1;
    }

    fn pop_min(&mut self) -> Option<(K, V)> {
        if self.root == NONE {
            return None;
        }
        let root = self.root;
        let below = self.merge(self.node(root).left, self.node(root).right);
        // From here on nothing is compared (Invariant 2).
        self.root = self.link(below);
        self.len -= 1;
        let node = &mut self.nodes[root as usize];
        node.left = self.free;
        self.free = root;
        node.entry.take()
    }

    fn peek_min(&self) -> Option<(&K, &V)> {
        // The root is `NONE`, which numbers no node, if there are none.
        let root = self.nodes.get(self.root as usize)?;
        root.entry.as_ref().map(|(key, value)| (key, value))
    }

    fn peek_min_mut(&mut self) -> Option<(&K, &mut V)> {
        let root = self.nodes.get_mut(self.root as usize)?;
        root.entry.as_mut().map(|(key, value)| (&*key, value))
    }

    fn len(&self) -> usize {
        self.len
    }
}

impl<K: Clone, V: Clone> Clone for SkewHeap<K, V> {
    fn clone(&self) -> Self {
        Self { nodes: self.nodes.clone(), path: Vec::new(), ..*self }
    }

    /// Keeps the old memory. If cloning an entry panics, the heap is empty.
    fn clone_from(&mut self, source: &Self) {
        (self.root, self.free, self.len) = (NONE, NONE, 0);
        self.nodes.clone_from(&source.nodes);
        (self.root, self.free, self.len) = (source.root, source.free, source.len);
    }
}

impl<K: Ord, V> Default for SkewHeap<K, V> {
    fn default() -> Self {
        Self::NEW
    }
}

impl<K, V> fmt::Debug for SkewHeap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkewHeap").field("len", &self.len).finish_non_exhaustive()
    }
}
