//! Counted pointers into a pool of nodes that stay nodes.
//!
//! Why not free nodes that are not needed any more: a thread that has read a pointer may look at
//! the node much later. Here it then finds a node, even if it is not the one that it meant. Its
//! compare-exchange fails because the pointer's tag has gone up. So no thread announces anything, a
//! stopped thread keeps back two free nodes at most, and nodes are used again at once. The price:
//! the memory stays as large as the structure once was, until it is dropped.
//!
//! Why an index and not an address beside the tag: 48 bits of address leave 16 bits of tag. At 50
//! million operations a second these are used up in 1.3 ms. 32 bits last 86 s, or less if a pointer
//! changes faster. Nothing protects a thread that stops between two instructions for exactly a
//! multiple of 2^32 changes, and then finds the same node. It is only unlikely.
//! [`Hazard`](super::Hazard) is for programs that cannot accept it.
//!
//! ```text
//!  63        32 31         0
//! ┌────────────┬────────────┐      entry 1        entry 2        entry 3
//! │    tag     │   index    │     ┌────────────┐ ┌────────────┐ ┌────────────┐
//! └────────────┴────────────┘     │ next       │ │ next       │ │ next       │
//!        index 0 = null           │ slot       │ │ slot       │ │ slot       │
//!                                 │ storage    │ │ storage    │ │ storage    │
//!                                 └────────────┘ └────────────┘ └────────────┘
//!
//! next: a pointer as well. Its tag goes up with each write.
//! slot: the number of the entry that stores the value.
//! ```
//!
//! Why `slot`: in Michael and Scott's queue the value taken is that of the node *after* the one
//! taken out. That node stays as the dummy. It may be taken out, used again and filled before the
//! taker has read its value. So the taker reads the slot, which is an atomic word, before its
//! compare-exchange. If the exchange succeeds, the taker owns the storage, wherever the node is by
//! then. The node taken out gets that storage for its next value.
//!
//! Why [`spares`](super::spares) before the free list: without them a push and a pop of the queue
//! cost five exchanges, two of which are those of the list. Room that was set aside stays enough
//! for its purpose. In a store with a capacity, threads keep nodes only if there are more nodes
//! than the capacity: as many threads as those nodes suffice for. The store has some more for at
//! least [`KEEPERS`] threads.
//!
//! # Invariants
//!
//! 1. An index in a pointer is 0, or has been handed out by `used`, and its segment was in place
//!    before any pointer with it was written.
//! 2. Each storage belongs to one owned or linked node, the one that names it in its slot, or to
//!    the taker of its value. The exception: a queue's dummy has none.
//! 3. `next` and the top of the free list change their tag with every write, and no tag is ever set
//!    back.
//! 4. A node that is not in use is on the free list or among one thread's spares. Until it is
//!    allocated it keeps its `next`, which leads where it led when the node was taken out.
//!
//! # Orderings
//!
//! - **A thread puts a node on the free list** (exchange of `free`): Release. The partner is the
//!   Acquire with which another thread takes it from there: then slot and storage are its own.
//! - **A thread takes a node from it** (load of `free`, exchange of `free`): Acquire, Acquire. The
//!   partner is the Release above: all writes of `free` are exchanges.
//! - **`next` on the free list**: Release. The partner is the Acquire load of a thread that looks
//!   at a node which has been given back meanwhile.
//! - **`next` of a new node**: Release, as on the free list: a null from a later use must not look
//!   like the end of a queue.
//! - **`slot`**: Relaxed, without a partner. The owner writes it. Other threads read it only for an
//!   exchange that fails if the node has changed hands.
//!
//! Source: Michael and Scott 1997, sections 3 and 4.1. Counted pointers are from the IBM System/370
//! (1983), according to that paper. The slots are ours.

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_spin::Backoff;

use super::segments::Segments;
use super::spares::{KEPT, Spares};
use super::{Counted, Link, Memory, Operation, Pointer, Store};

impl Memory for Counted {
    type Store<T> = CountedStore<T>;
}

/// A pointer to a node: index and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagged(u64);

impl Tagged {
    const NULL: Self = Self(0);

    const fn new(index: u32, tag: u32) -> Self {
        Self((tag as u64) << 32 | index as u64)
    }

    const fn index(self) -> u32 {
        self.0 as u32
    }

    const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the content of a word that held `self`, after it was made to point to `index`.
    const fn then(self, index: u32) -> Self {
        Self::new(index, self.tag().wrapping_add(1))
    }
}

impl Pointer for Tagged {
    #[inline]
    fn is_null(self) -> bool {
        self.index() == 0
    }

    #[inline]
    fn names_same(self, other: Self) -> bool {
        self.index() == other.index()
    }
}

/// A link: a word with index and tag. Written by every thread that changes the structure.
#[derive(Debug)]
pub struct CountedLink(AtomicU64);

impl Link for CountedLink {
    type Pointer = Tagged;

    const NULL: Self = Self(AtomicU64::new(Tagged::NULL.0));

    #[inline]
    fn load(&self, order: Ordering) -> Tagged {
        Tagged(self.0.load(order))
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: Tagged,
        new: Tagged,
        success: Ordering,
        failure: Ordering,
    ) -> bool {
        let new = Self::after(current, new);
        self.0.compare_exchange(current.0, new.0, success, failure).is_ok()
    }

    #[inline]
    fn after(current: Tagged, new: Tagged) -> Tagged {
        current.then(new.index())
    }

    #[inline]
    fn store(&self, new: Tagged, order: Ordering) {
        // Relaxed: no other thread writes it now, and this thread has seen the last write.
        let current = self.load(Ordering::Relaxed);
        self.0.store(Self::after(current, new).0, order);
    }
}

/// A node of the pool. Its memory stays a node until the structure is dropped.
struct Entry<T> {
    /// The link to the next node, in the structure or on the free list. Written by any thread.
    next: CountedLink,
    /// The index of the entry that stores the node's value. Written by the owner.
    slot: AtomicU32,
    /// The storage of one value. Touched by its owner only (Invariant 2).
    storage: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Entry<T> {
    fn new() -> Self {
        Self {
            next: CountedLink(AtomicU64::fresh(Tagged::NULL.0)),
            // Set when the entry is handed out for the first time.
            slot: AtomicU32::fresh(0),
            storage: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// The segments: enough for all indices but the last few: 2^32 - 2. A model has 14 nodes.
type Entries<T> = Segments<Entry<T>, { stanchion_machine::sized(31, 3) }>;

/// A store with a capacity has room for the spare nodes of at least so many threads, beside
/// the capacity. A model has none, so that with a capacity of 2 all nodes go by the free list.
const KEEPERS: usize = stanchion_machine::sized(8, 0);

/// The most threads for which a store with a capacity makes magazines: 8 KiB.
const MOST_KEEPERS: usize = 62;

/// The pool of one structure.
pub struct CountedStore<T> {
    /// The spare nodes of each thread.
    spares: Spares,
    /// The top of the nodes that can be used again, linked through `next`. Written by any thread.
    free: CachePadded<CountedLink>,
    /// The number of indices that have been handed out. Counted up by the threads that need a node.
    used: AtomicU64,
    /// The nodes, by their index less one.
    entries: Entries<T>,
}

// SAFETY: values are written and read by the thread that owns their storage (Invariant 2), and go
// from one thread to another, hence `T: Send`.
unsafe impl<T: Send> Send for CountedStore<T> {}
// SAFETY: as above; no thread gets a shared reference to a value.
unsafe impl<T: Send> Sync for CountedStore<T> {}

impl<T> CountedStore<T> {
    /// Returns the entry of an index that was handed out.
    #[inline]
    fn entry(&self, index: u32) -> &Entry<T> {
        debug_assert_ne!(index, 0, "null has no node");
        self.entries
            .get(index.wrapping_sub(1) as usize)
            .expect("the segment of an index that was handed out is in place")
    }

    /// Returns an owned node with empty storage: one from the free list, or a new one.
    #[inline(never)]
    fn owned(&self) -> u32 {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: pairs with the Release that put the node there, so that its `next` is the
            // node behind it.
            let top = self.free.load(Ordering::Acquire);
            if top.is_null() {
                return self.new_entry();
            }
            // Relaxed: if the node is not on top any more, the value may be anything, and the
            // exchange fails.
            let next = self.entry(top.index()).next.load(Ordering::Relaxed);
            // Relaxed, both: the exchange succeeds only on the pointer that the load has acquired
            // (Invariant 3). Then this thread owns slot and storage. Else the loop loads again.
            if self.free.compare_exchange(top, next, Ordering::Relaxed, Ordering::Relaxed) {
                return top.index();
            }
            backoff.spin();
        }
    }

    #[cold]
    fn new_entry(&self) -> u32 {
        // Relaxed: only the number is needed. The entry is found through the segments.
        let used = self.used.fetch_add(1, Ordering::Relaxed);
        assert!(
            used < Entries::<T>::CAPACITY as u64,
            "a pool of counted pointers is full: a pointer has 32 bits for the index, enough for {} nodes at a time",
            Entries::<T>::CAPACITY
        );
        let index = used as u32 + 1;
        let entry = self.entries.get_or_make(used as usize, Entry::new);
        // Relaxed: the node is owned.
        entry.slot.store(index, Ordering::Relaxed);
        index
    }

    /// Returns an owned node with empty storage and a null next: one that this thread
    /// has kept, or [another](Self::owned).
    #[inline]
    fn node(&self) -> (Tagged, &Entry<T>) {
        let index = self.spares.take().unwrap_or_else(|| self.owned());
        let entry = self.entry(index);
        // Release: pairs with the Acquire of a thread that still looks at the node as what it was
        // before. That thread then sees that the link by which it came has changed, and does not
        // take this null for the end of a queue.
        entry.next.store(Tagged::NULL, Ordering::Release);
        (Tagged::new(index, 0), entry)
    }

    /// Keeps a node with empty storage for this thread's next operation, or gives it back.
    #[inline]
    fn put_away(&self, index: u32) {
        if !self.spares.keep(index) {
            self.give_back(index);
        }
    }

    /// Gives a node back to all threads: puts it on the free list.
    #[inline(never)]
    fn give_back(&self, index: u32) {
        let entry = self.entry(index);
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: the top is only compared.
            let top = self.free.load(Ordering::Relaxed);
            // Release: pairs with the Acquire of a thread that still looks at the node. It may go
            // on to the node behind it. The segment of that node must be in place then. If it looks
            // there, it sees that the link by which it came has changed.
            entry.next.store(top, Ordering::Release);
            let new = Tagged::new(index, 0);
            // Release: pairs with the Acquire of the thread that takes it. Relaxed: the loop loads
            // again.
            if self.free.compare_exchange(top, new, Ordering::Release, Ordering::Relaxed) {
                return;
            }
            backoff.spin();
        }
    }
}

// SAFETY: nodes are never freed while the store lives, so that all may be looked at. An exchange
// that expects a pointer from before the node's last change fails by its tag (Invariant 3). Values
// are reached only through slots, each owned by one thread at a time (Invariant 2).
unsafe impl<T> Store<T> for CountedStore<T> {
    type Pointer = Tagged;
    type Link = CountedLink;
    type Operation<'s>
        = CountedOperation<'s, T>
    where
        T: 's;

    const NEW: Self = Self {
        spares: Spares::new(),
        free: CachePadded::new(CountedLink::NULL),
        used: AtomicU64::new(0),
        entries: Segments::new(),
    };
    const NULL: Tagged = Tagged::NULL;

    fn with_capacity(capacity: usize) -> Self {
        if capacity == 0 {
            return Self::NEW;
        }
        let entries = Entries::new();
        let room = entries.reserve(capacity.saturating_add(KEPT * KEEPERS), Entry::new);
        let keepers = room.saturating_sub(capacity) / KEPT;
        Self { spares: Spares::for_threads(keepers.min(MOST_KEEPERS)), entries, ..Self::NEW }
    }

    #[inline]
    fn enter(&self) -> CountedOperation<'_, T> {
        CountedOperation { store: self }
    }
}

/// An operation. No other thread needs to know of it.
pub struct CountedOperation<'s, T> {
    /// The store that the operation works on.
    store: &'s CountedStore<T>,
}

impl<'s, T> Operation<'s, T> for CountedOperation<'s, T> {
    type Store = CountedStore<T>;
    /// The index of the entry that holds the storage.
    type Slot = u32;

    #[inline]
    fn protect(&self, _hazard: usize, link: &CountedLink) -> Tagged {
        // Acquire: pairs with the Release that published the node.
        link.load(Ordering::Acquire)
    }

    #[inline]
    fn announce(&self, _hazard: usize, _pointer: Tagged) {}

    #[inline]
    fn allocate(&self, value: T) -> Tagged {
        let (node, entry) = self.store.node();
        // Relaxed: the node is owned, and so is its storage.
        let slot = entry.slot.load(Ordering::Relaxed);
        self.store.entry(slot).storage.with_mut(|storage| {
            // SAFETY: the storage belongs to the node (Invariant 2), which this thread owns.
            let storage = unsafe { &mut *storage };
            storage.write(value);
        });
        node
    }

    #[inline]
    fn allocate_empty(&self) -> Tagged {
        self.store.node().0
    }

    #[inline]
    unsafe fn next(&self, pointer: Tagged) -> &CountedLink {
        &self.store.entry(pointer.index()).next
    }

    #[inline]
    unsafe fn slot(&self, pointer: Tagged) -> u32 {
        // Relaxed: the slot means something only if the caller's exchange shows that the node was
        // in place. Then it was published with Release.
        self.store.entry(pointer.index()).slot.load(Ordering::Relaxed)
    }

    #[inline]
    unsafe fn take(&self, slot: u32) -> T {
        self.store.entry(slot).storage.with_mut(|storage| {
            // SAFETY: the caller's exchange gave it the storage with the value in it.
            let storage = unsafe { &*storage };
            // SAFETY: as above; no thread takes it again.
            unsafe { storage.assume_init_read() }
        })
    }

    #[inline]
    unsafe fn value(&self, slot: u32) -> *mut T {
        self.store.entry(slot).storage.with_mut(|storage| storage.cast())
    }

    #[inline]
    unsafe fn retire(&self, pointer: Tagged, slot: u32) {
        // Relaxed: the node is owned; the free list publishes it.
        self.store.entry(pointer.index()).slot.store(slot, Ordering::Relaxed);
        self.store.put_away(pointer.index());
    }

    #[inline]
    unsafe fn discard(&self, pointer: Tagged) {
        self.store.put_away(pointer.index());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_wraps_around_beside_its_index() {
        let link = CountedLink(AtomicU64::new(Tagged::new(7, u32::MAX).0));
        let before = link.load(Ordering::Relaxed);
        let new = Tagged::new(u32::MAX, 5);
        assert!(link.compare_exchange(before, new, Ordering::Relaxed, Ordering::Relaxed));
        assert_eq!(link.load(Ordering::Relaxed), Tagged::new(u32::MAX, 0));
        assert_eq!(CountedLink::after(before, new), Tagged::new(u32::MAX, 0));
        // The pointer from before is stale, although the index comes back.
        link.store(before, Ordering::Relaxed);
        assert_eq!(link.load(Ordering::Relaxed), Tagged::new(7, 1));
        assert!(!link.compare_exchange(before, new, Ordering::Relaxed, Ordering::Relaxed));
    }

    /// The fault that the documentation admits: only a pointer from a multiple of 2^32 uses ago, to
    /// the same node, is taken for the current one.
    #[test]
    fn only_a_whole_round_of_the_tag_deceives() {
        let before = Tagged::new(7, 3);
        let new = Tagged::new(8, 0);
        // As many uses as a tag of 32 bits counts, without doing them: the tag is their result.
        for (uses, deceived) in [(1_u64, false), (1 << 31, false), ((1 << 32) - 1, false)]
            .into_iter()
            .chain([(1 << 32, true), ((1 << 32) + 1, false), (3 << 32, true)])
        {
            let tag = (3 + uses) as u32;
            let link = CountedLink(AtomicU64::new(Tagged::new(7, tag).0));
            let swung = link.compare_exchange(before, new, Ordering::Relaxed, Ordering::Relaxed);
            assert_eq!(swung, deceived, "{uses} uses later");
        }
        // Another node is never taken for it.
        let link = CountedLink(AtomicU64::new(Tagged::new(9, 3).0));
        assert!(!link.compare_exchange(before, new, Ordering::Relaxed, Ordering::Relaxed));
    }

    #[test]
    fn a_node_that_was_used_again_is_not_taken_for_itself() {
        let store = CountedStore::<u32>::NEW;
        let link = CountedLink::NULL;
        let operation = store.enter();
        link.store(operation.allocate(1), Ordering::Relaxed);
        let stale = operation.protect(0, &link);
        let pop = || {
            let node = link.load(Ordering::Relaxed);
            // SAFETY: no other thread uses the store, so the node is owned.
            let slot = unsafe { operation.slot(node) };
            link.store(Tagged::NULL, Ordering::Relaxed);
            // SAFETY: as above, with its value.
            let value = unsafe { operation.take(slot) };
            // SAFETY: as above.
            unsafe { operation.retire(node, slot) };
            value
        };
        assert_eq!(pop(), 1);
        link.store(operation.allocate(2), Ordering::Relaxed);
        let again = link.load(Ordering::Relaxed);
        assert!(again.names_same(stale), "the pool has one node");
        let (null, order) = (Tagged::NULL, Ordering::Relaxed);
        assert!(!link.compare_exchange(stale, null, order, order));
        assert_eq!(pop(), 2);
    }

    #[test]
    fn nodes_are_used_again_before_there_are_new_ones() {
        let store = CountedStore::<String>::with_capacity(100);
        let room = store.entries.iter().count();
        assert!(room >= 100);
        for round in 0..3 {
            let operation = store.enter();
            let nodes: Vec<_> =
                (0..100).map(|value| operation.allocate(format!("{round} {value}"))).collect();
            for (value, node) in nodes.into_iter().enumerate() {
                // SAFETY: the node is owned.
                let slot = unsafe { operation.slot(node) };
                // SAFETY: the value is owned, and taken once.
                assert_eq!(unsafe { operation.take(slot) }, format!("{round} {value}"));
                // SAFETY: the node is owned, and not touched again.
                unsafe { operation.discard(node) };
            }
        }
        assert_eq!(store.used.load(Ordering::Relaxed), 100);
        assert_eq!(store.entries.iter().count(), room);
    }

    #[test]
    fn what_was_set_aside_is_enough_whatever_threads_keep() {
        const THREADS: usize = KEEPERS + 4;
        const CAPACITY: usize = 30 - KEPT * KEEPERS;
        let store = CountedStore::<usize>::with_capacity(CAPACITY);
        assert_eq!(store.entries.iter().count(), 30, "no more nodes than it takes");
        // More threads than may keep nodes, all there at a time, so that no two have the same
        // number. Each takes two nodes and gives them back.
        let all = std::sync::Barrier::new(THREADS);
        let take_and_give_back = || {
            let operation = store.enter();
            assert!(stanchion_machine::thread::index().is_some());
            all.wait();
            let nodes = [0, 1].map(|value| operation.allocate(value));
            // SAFETY: the nodes are owned, and the values need no drop.
            nodes.into_iter().for_each(|node| unsafe { operation.discard(node) });
            all.wait();
        };
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|_| _ = scope.spawn(take_and_give_back));
        });
        let operation = store.enter();
        let nodes: Vec<_> = (0..CAPACITY).map(|value| operation.allocate(value)).collect();
        assert_eq!(store.entries.iter().count(), 30, "nothing was allocated");
        // SAFETY: the nodes are owned, and the values need no drop.
        nodes.into_iter().for_each(|node| unsafe { operation.discard(node) });
    }

    #[test]
    #[should_panic(expected = "a pointer has 32 bits for the index")]
    fn a_full_pool_says_so() {
        let store = CountedStore::<u8>::NEW;
        store.used.store(Entries::<u8>::CAPACITY as u64, Ordering::Relaxed);
        store.enter().allocate(0);
    }
}
