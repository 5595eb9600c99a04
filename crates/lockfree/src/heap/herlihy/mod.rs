//! Herlihy's skew heap: every operation copies the path that it would change, and makes the root
//! point to the copy.
//!
//! Why a path and not the whole: the trees beside the path are shared between the old tree and the
//! new one, so an operation copies amortized O(log n) nodes. Why a skew heap: its operations change
//! one path from the root down, and no node knows its parent.
//!
//! ```text
//! root ──────────────► 1             push(3): the path is 1, 2
//!                     / \
//!                    5   2           root ──► 1'            the copies, and the new node
//!                       / \                  / \
//!                      8   6                2'  5
//!                                          / \              5, 6, 8 belong to both trees
//!                  6 > 3 ends the path    3   8
//!                                        /
//!                                       6
//! ```
//!
//! An attempt: look at the root. Walk down, write the path down, and look at the root again after
//! each node read. Write the copies, from the bottom, into free nodes of one's own. Exchange the
//! root, if it is still the same. If the exchange succeeds, the nodes of the old path are this
//! thread's free nodes now. If it fails, the copies are still free nodes: wait a random while,
//! longer each time, and begin again. Without that wait the method loses to a lock (Herlihy's
//! section 5).
//!
//! Why nothing is announced, counted or freed late: a node that is read may be in use again, but
//! only after the root has changed. So a thread uses the words that it read only if the root,
//! looked at *after* reading, is the one that the path began at. A look at each node then costs a
//! load of a word that is in the cache. Words that were read in vain are never compared: keys are
//! copied as [`Words`] and turned back when they are known to be whole. Values lie in slots. Only
//! the thread that took an entry out touches its slot.
//!
//! # Invariants
//!
//! 1. While the root's word is the same, the nodes that can be reached from it are not written.
//!    Each exchange adds one to the tag in it.
//! 2. A number taken from a node is followed only if the root was the same after it was read. So a
//!    walk ends, and stays in the heap's nodes.
//! 3. An entry's slot is in one node that can be reached from the root. The thread that takes that
//!    node out of the tree by an exchange, without a copy, owns the slot.
//! 4. Everything that may panic, comparing keys and making nodes, happens before the exchange.
//!
//! # Orderings
//!
//! - **Look at the root at the beginning**: Acquire. The partner is the Release exchange that made
//!   it.
//! - **Read a node**: Relaxed, then an Acquire fence. The partner is the Release fence of the
//!   thread that uses the node again. If the reader sees a new word, its next look at the root sees
//!   that thread's exchange.
//! - **Look at the root again**: Relaxed, as above.
//! - **Write the copies**: a Release fence, then Relaxed, as above.
//! - **Exchange the root**: Release. It publishes the copies and the value. The root that it
//!   replaces was acquired.
//!
//! # Wrap-around
//!
//! A thread may stop between two looks at the root for exactly a multiple of 2^32 operations, and
//! then find the same node at the root. It takes that for the same root. At ten million operations
//! a second that is seven minutes of standing still, to the operation.
//!
//! Source: Herlihy, "A Methodology for Implementing Highly Concurrent Data Objects", TOPLAS 15(5),
//! 1993, section 6. It is the non-blocking heap of Michael and Scott 1997, section 4.3.

mod depot;
mod nodes;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, Ordering, fence};
use stanchion_spin::Backoff;

use self::depot::{BATCH, Depot, NodeCache, Step};
use self::nodes::{NONE, Pair, join, split};
use super::Words;
use crate::Progress;
use crate::dropping::drop_each;
use crate::memory::thread_cache::CacheGuard;

/// A priority queue that goes on when a thread stops: Herlihy's skew heap, with only the path
/// copied.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as the allocator is. The heap allocates
///   when it is larger than it ever was.
/// - Cost: amortized O(log n) nodes read and copied, and an exchange. Each operation that was
///   faster costs all that again.
/// - Memory: 12 bytes, the key's words and the value for each entry there ever was at once, and up
///   to 64 free ones for each thread.
/// - A stopped thread keeps back the free nodes of its cache, some dozens.
///
/// Operations do not overlap: the more threads, the more is copied in vain. If no thread stops at a
/// bad time, a [`LockedArrayHeap`](super::LockedArrayHeap) is faster.
///
/// If comparing keys panics, every entry stays, and the entry that was to be pushed is dropped. An
/// `Ord` may use the heap itself.
///
/// ```
/// use stanchion_lockfree::heap::HerlihyHeap;
///
/// static HEAP: HerlihyHeap<u64, String> = HerlihyHeap::new();
/// HEAP.push(2, "second".to_owned());
/// HEAP.push(1, "first".to_owned());
/// assert_eq!(HEAP.min_key(), Some(1));
/// assert_eq!(HEAP.pop_min(), Some((1, "first".to_owned())));
/// ```
///
/// A heap of values that are not `Send` cannot be shared:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::heap::HerlihyHeap::<u32, std::rc::Rc<()>>::new());
/// ```
pub struct HerlihyHeap<K: Words, V> {
    /// The root's node and the tag. Written by every successful exchange.
    root: CachePadded<AtomicU64>,
    /// The nodes. Written by the threads that own them.
    depot: Depot<K::Block, V>,
}

// SAFETY: a value is touched by the one thread that owns its slot (Invariant 3). Keys are copies,
// made from words wherever one is needed.
unsafe impl<K: Words + Send, V: Send> Send for HerlihyHeap<K, V> {}
// SAFETY: as above; no reference to a value is handed out, so `V` need not be `Sync`.
unsafe impl<K: Words + Send, V: Send> Sync for HerlihyHeap<K, V> {}

/// A node as a thread saw it, known to be true.
#[derive(Clone, Copy)]
struct Seen<K: Words> {
    /// The number of the node.
    node: u32,
    /// The node's words.
    words: nodes::Words<K::Block>,
}

impl<K: Words> Seen<K> {
    fn key(&self) -> K {
        K::from_words(self.words.key)
    }

    fn step(&self) -> Step<K::Block> {
        let nodes::Words { key, left, slot, .. } = self.words;
        Step { node: self.node, key, left, slot }
    }
}

/// An error: the root has changed.
struct Changed;

impl<K: Words + Ord, V> HerlihyHeap<K, V> {
    /// Returns an empty heap, which has not allocated.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_batch(BATCH)
    }

    /// Returns an empty heap with room for `capacity` entries. Free nodes that threads keep take
    /// some of that room. The heap grows beyond.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { root: Self::empty(), depot: Depot::with_capacity(capacity) }
    }

    /// Returns a heap for models: free nodes go from thread to thread `batch` at a time.
    #[doc(hidden)]
    #[must_use]
    pub const fn with_batch(batch: usize) -> Self {
        Self { root: Self::empty(), depot: Depot::new(batch) }
    }

    const fn empty() -> CachePadded<AtomicU64> {
        CachePadded::new(AtomicU64::new((NONE as u64) << 32))
    }

    /// Puts `value` in, to come out when no smaller key is left.
    ///
    /// # Panics
    ///
    /// If there are 2^32 - 4 entries and free nodes.
    pub fn push(&self, key: K, value: V) {
        let mut entry = Entry::new(self, value);
        let mut backoff = Backoff::new();
        while self.try_push(key, &mut entry).is_err() {
            backoff.spin();
        }
    }

    /// Takes an entry with the smallest key.
    pub fn pop_min(&self) -> Option<(K, V)> {
        let mut cache = None;
        let mut backoff = Backoff::new();
        loop {
            let root = self.look();
            if split(root).0 == NONE {
                return None;
            }
            let cache = cache.get_or_insert_with(|| self.depot.take());
            if let Ok(entry) = self.try_pop(root, cache) {
                return Some(entry);
            }
            backoff.spin();
        }
    }

    /// Returns the smallest key at some moment during the call.
    #[must_use]
    pub fn min_key(&self) -> Option<K> {
        let mut backoff = Backoff::new();
        loop {
            let root = self.look();
            let (node, _) = split(root);
            if node == NONE {
                return None;
            }
            if let Ok(seen) = self.read(node, root) {
                return Some(seen.key());
            }
            backoff.spin();
        }
    }

    /// Returns whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        split(self.look()).0 == NONE
    }

    /// Returns the root's word.
    #[inline]
    fn look(&self) -> u64 {
        // Acquire: pairs with the Release exchange that made it.
        self.root.load(Ordering::Acquire)
    }

    /// Reads `node`, if `root` is still the root. The number came from there (Invariant 2).
    #[inline]
    fn read(&self, node: u32, root: u64) -> Result<Seen<K>, Changed> {
        let words = self.depot.nodes.at(node).read();
        // Acquire: pairs with the Release fence before the node is written again, which comes after
        // the root has changed.
        fence(Ordering::Acquire);
        // Relaxed: as above.
        if self.root.load(Ordering::Relaxed) == root {
            Ok(Seen { node, words })
        } else {
            Err(Changed)
        }
    }

    /// Does the same as [`read`](Self::read), unless there is no node.
    #[inline]
    fn read_child(&self, node: u32, root: u64) -> Result<Option<Seen<K>>, Changed> {
        if node == NONE { Ok(None) } else { self.read(node, root).map(Some) }
    }

    /// Makes one attempt to push.
    fn try_push(&self, key: K, entry: &mut Entry<'_, K, V>) -> Result<(), Changed> {
        let root = self.look();
        let Pair { node, slot } = entry.pair;
        let cache = &mut entry.cache;
        cache.path.clear();
        let mut below = split(root).0;
        while let Some(seen) = self.read_child(below, root)? {
            if key < seen.key() {
                break;
            }
            cache.path.push(seen.step());
            below = seen.words.right;
        }
        // Before the fence, which must come after everything that this thread acquires with nodes.
        let length = cache.path.len();
        self.depot.supply(&mut cache.free, length);
        // Release: threads that have an old root may still read the nodes that are written from
        // here on.
        fence(Ordering::Release);
        let words = nodes::Words { key: key.to_words(), left: below, right: NONE, slot };
        self.depot.nodes.at(node).write(words);
        let top = self.copy_path(cache, node);
        self.swing(root, top)?;
        self.keep_old_path(cache);
        entry.pushed = true;
        Ok(())
    }

    /// Makes one attempt to pop from the tree at `root`, which is not empty.
    fn try_pop(
        &self,
        root: u64,
        cache: &mut CacheGuard<'_, NodeCache<K::Block>>,
    ) -> Result<(K, V), Changed> {
        let first: Seen<K> = self.read(split(root).0, root)?;
        cache.path.clear();
        let mut x = self.read_child(first.words.left, root)?;
        let mut y = self.read_child(first.words.right, root)?;
        let below = loop {
            let (mut low, mut high) = match (x, y) {
                (Some(x), Some(y)) => (x, y),
                (one, other) => break one.or(other).map_or(NONE, |seen| seen.node),
            };
            // Equal keys: the one on the left first.
            if high.key() < low.key() {
                core::mem::swap(&mut low, &mut high);
            }
            cache.path.push(low.step());
            x = self.read_child(low.words.right, root)?;
            y = Some(high);
        };
        // Before the fence, as in `try_push`.
        let length = cache.path.len();
        self.depot.supply(&mut cache.free, length);
        // Release: as in `try_push`.
        fence(Ordering::Release);
        let top = self.copy_path(cache, below);
        // Room for the pair, so that nothing fails once this thread owns the entry (Invariant 4).
        cache.free.reserve(1);
        let key = first.key();
        self.swing(root, top)?;
        self.keep_old_path(cache);
        let slot = first.words.slot;
        // SAFETY: the node went out of the tree by this thread's exchange, without a copy
        // (Invariant 3).
        let value = unsafe { self.depot.nodes.at(slot).take() };
        cache.free.push(Pair { node: first.node, slot });
        self.depot.tidy(&mut cache.free);
        Ok((key, value))
    }

    /// Copies the path into free nodes, with `below` at its end. Returns the first of them.
    ///
    /// The path's last step goes into the last free node, the step before it into the node before.
    /// [`keep_old_path`](Self::keep_old_path) relies on that.
    fn copy_path(&self, cache: &mut CacheGuard<'_, NodeCache<K::Block>>, below: u32) -> u32 {
        debug_assert!(cache.free.len() >= cache.path.len(), "supplied before the fence");
        let free = cache.free.iter().rev();
        cache.path.iter().rev().zip(free).fold(below, |below, (step, pair)| {
            let Step { key, left, slot, .. } = *step;
            let words = nodes::Words { key, left: below, right: left, slot };
            self.depot.nodes.at(pair.node).write(words);
            pair.node
        })
    }

    /// Exchanges the old nodes for the copies among the free ones: the copies are in the tree and
    /// the old nodes are not. Slots stay where they are.
    fn keep_old_path(&self, cache: &mut CacheGuard<'_, NodeCache<K::Block>>) {
        let NodeCache { free, path } = &mut **cache;
        for (pair, step) in free.iter_mut().rev().zip(path.iter().rev()) {
            pair.node = step.node;
        }
    }

    /// Makes `top` the root if `root` still is the root.
    fn swing(&self, root: u64, top: u32) -> Result<(), Changed> {
        let new = join(top, split(root).1.wrapping_add(1));
        // Release: publishes the copies and the nodes below them. Relaxed: a failure means another
        // look.
        let swung = self.root.compare_exchange(root, new, Ordering::Release, Ordering::Relaxed);
        swung.map_or(Err(Changed), |_| Ok(()))
    }
}

/// A value on its way into a heap.
struct Entry<'h, K: Words, V> {
    /// The heap that the value goes into.
    heap: &'h HerlihyHeap<K, V>,
    /// The cache of the pushing thread, taken.
    cache: CacheGuard<'h, NodeCache<K::Block>>,
    /// The node that the entry will have, and the slot that the value is in.
    pair: Pair,
    /// Set when the value is in the heap. Then `Drop` leaves it there.
    pushed: bool,
}

impl<'h, K: Words + Ord, V> Entry<'h, K, V> {
    fn new(heap: &'h HerlihyHeap<K, V>, value: V) -> Self {
        let mut cache = heap.depot.take();
        heap.depot.supply(&mut cache.free, 1);
        let pair = cache.free.pop().expect("there is one");
        // SAFETY: the slot is free, and this thread owns it (Invariant 3).
        unsafe { heap.depot.nodes.at(pair.slot).put(value) };
        Self { heap, cache, pair, pushed: false }
    }
}

impl<K: Words, V> Drop for Entry<'_, K, V> {
    fn drop(&mut self) {
        if !self.pushed {
            // A comparison has panicked. The cache is given back whatever the value's destructor
            // does.
            self.cache.free.push(self.pair);
            // SAFETY: put there by `new`, and not published.
            drop(unsafe { self.heap.depot.nodes.at(self.pair.slot).take() });
        }
    }
}

forward! {
    impl[K: Words + Ord, V] PriorityQueue for HerlihyHeap<K, V>;
    entry: K, V;
    progress: Progress::LockFree;
}

conveniences! {
    impl[K: Words + Ord, V] HerlihyHeap<K, V>;
    entry: K, V;
    new: HerlihyHeap::new();
    debug: |heap| empty = heap.is_empty();
}

exclusive! {
    impl[K: Words + Ord, V] HerlihyHeap<K, V>;
    entry: K, V;
    key: K;
    push_mut: |heap, key, value| heap.push(key, value);
    pop_mut: |heap| heap.pop_min();
    peek_mut: |heap| heap.peek_alone();
    cost: "Costs as much as the shared operation when no other thread is there.";
}

impl<K: Words + Ord, V> HerlihyHeap<K, V> {
    fn peek_alone(&mut self) -> Option<(K, &mut V)> {
        let root = split(self.look()).0;
        if root == NONE {
            return None;
        }
        let nodes::Words { key, slot, .. } = self.depot.nodes.at(root).read();
        let value = self.depot.nodes.at(slot).value();
        // SAFETY: the slot of a node in the tree has a value (Invariant 3), and nothing else
        // touches it while the heap is borrowed.
        Some((K::from_words(key), unsafe { &mut *value }))
    }
}

impl<K: Words, V> Drop for HerlihyHeap<K, V> {
    fn drop(&mut self) {
        // Relaxed: the sole owner looks.
        let root = split(self.root.load(Ordering::Relaxed)).0;
        let mut trees = vec![root];
        drop_each(|| {
            while let Some(tree) = trees.pop() {
                if tree != NONE {
                    let nodes::Words { left, right, slot, .. } = self.depot.nodes.at(tree).read();
                    trees.extend([left, right]);
                    // SAFETY: the heap is being dropped, and each entry has one node in the tree
                    // (Invariant 3).
                    return Some(unsafe { self.depot.nodes.at(slot).take() });
                }
            }
            None
        });
    }
}

#[cfg(test)]
mod tests;
