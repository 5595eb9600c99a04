//! Michael and Scott's queue with two locks: pushes exclude pushes, pops exclude pops, and a push
//! does not exclude a pop.
//!
//! Why a dummy node: with it `head` and `tail` never name the node that the other end works on, so
//! neither end looks at the other's word, even when the queue has one value or none. The one word
//! that both touch is the `next` of the last node. The 1996 text leaves it to the machine; here it
//! is atomic.
//!
//! Why not a free list between the ends: a pop would have to hand its node over by a locked
//! instruction. The nodes that have been popped stay in the list, before `head`, and a push takes
//! them from there. (This is Vyukov's trick for queues of one producer and one consumer. Each end
//! is one to the other.)
//!
//! ```text
//! first ──► … ──► dummy ──► oldest ──► … ──► newest
//! tail's          head                       last
//! └ empty, for use again ┘  └──── hold values ─────┘
//! ```
//!
//! # Invariants
//!
//! 1. From `first` each node's `next` leads to the following one, up to `last`, which has a null
//!    `next`. No node is freed before the queue is.
//! 2. `head` names the dummy. The nodes after it hold values. It and those before it hold none.
//! 3. The holder of the head's lock moves `head` forward, and takes the value of the node that it
//!    moves it to.
//! 4. The holder of the tail's lock owns `first`, `last` and the nodes from `first` up to the dummy
//!    that it has `seen`, without that one.
//! 5. As long as nothing was ever pushed, all pointers are null. The first push makes the dummy.
//!
//! # Orderings
//!
//! - **Push: exchange the `next` of the last**: SeqCst. The partner is the SeqCst load of a pop or
//!   a look: the value is there. See below.
//! - **Pop: store `head`**: Release. The partner is the Acquire load of a push: the value has been
//!   taken, and the node before belongs to no pop.
//! - **The first push: store `head`**: SeqCst. The partner is the SeqCst load of a pop: there is a
//!   node.
//!
//! A pop has another lock than a push. So only `next` tells whether a pop that finds nothing came
//! before a push. A plain store may still be in the store buffer of the processor when the push
//! returns. Then a thread that pushes and looks for sleepers, and one that announces its sleep and
//! pops, would miss each other (`tests/litmus.rs`). The exchange is visible before the push
//! returns.
//!
//! Why no [`Handshake`](stanchion_machine::handshake::Handshake): it fences between a write of one
//! word and a read of another. Here the second word is the caller's, and the queue does not know
//! whether the caller reads one at all. The exchange is write and fence in one instruction.
//!
//! Source: Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent
//! queue algorithms", PODC 1996, figure 2.

use core::mem::MaybeUninit;
use core::ptr;

use crossbeam_utils::CachePadded;
use lock_api::{Mutex, RawMutex};
use stanchion_competitive::RawPolicyMutex;
use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use crate::Progress;
use crate::dropping::{Finally, drop_each};

/// A queue of `T` with a lock `L` at each end: any `lock_api` raw mutex.
///
/// - Progress: [`Blocking`](Progress::Blocking). Pushes wait for a thread that stops in a push,
///   pops for one that stops in a pop.
/// - Cost: one lock and one node's lines. Nothing is allocated up to the length that the queue once
///   had.
/// - Memory: a node for each value, for as many as there ever were at a time.
///
/// Two locks are a gain if pushes and pops come from different threads on at least two processors.
/// If the same threads do both, one lock moves fewer lines: see
/// [`LockedQueue`](super::LockedQueue). [`SegmentedQueue`](super::SegmentedQueue) has two locks
/// too, and is faster under its default ones. Here a push does not allocate up to a known length,
/// and a pop of an empty queue does not wait for a push.
///
/// ```
/// use stanchion_lockfree::queue::TwoLockQueue;
///
/// static QUEUE: TwoLockQueue<&str> = TwoLockQueue::new();
/// QUEUE.push("first");
/// QUEUE.push("second");
/// assert_eq!(QUEUE.pop(), Some("first"));
/// assert!(!QUEUE.is_empty());
/// ```
///
/// With another lock:
///
/// ```
/// use stanchion_lockfree::queue::TwoLockQueue;
///
/// let queue: TwoLockQueue<u32, stanchion_spin::Ticket> = (1..=3).collect();
/// assert!(queue.into_iter().eq([1, 2, 3]));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let queue: stanchion_lockfree::queue::TwoLockQueue<std::rc::Rc<()>> = Default::default();
/// shared(&queue);
/// ```
pub struct TwoLockQueue<T, L: RawMutex = RawPolicyMutex> {
    /// The pops' end.
    head: CachePadded<Head<T, L>>,
    /// The pushes' end, under its lock.
    tail: CachePadded<Mutex<L, UnsafeCell<Tail<T>>>>,
}

/// The end of the queue that pops work on.
struct Head<T, L> {
    /// The lock of the pops.
    lock: Mutex<L, ()>,
    /// The dummy, or null before the first push. Written by the holder of `lock`, and by the first
    /// push.
    dummy: AtomicPtr<Node<T>>,
}

/// The pushes' end. Touched by the holder of the tail's lock (Invariant 4).
struct Tail<T> {
    /// The first node, for use again unless it is `seen`.
    first: *mut Node<T>,
    /// The dummy when a push last looked.
    seen: *mut Node<T>,
    /// The last node.
    last: *mut Node<T>,
}

/// A node of the list.
struct Node<T> {
    /// The next node, or null. Written by the holder of the tail's lock.
    next: AtomicPtr<Node<T>>,
    /// The value. Touched by the holders of the locks (Invariants 3 and 4).
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Node<T> {
    fn allocate(next: *mut Self) -> *mut Self {
        let value = UnsafeCell::new(MaybeUninit::uninit());
        Box::into_raw(Box::new(Self { next: AtomicPtr::fresh(next), value }))
    }
}

impl<T> TwoLockQueue<T> {
    /// Returns an empty queue, which has not allocated, under the default locks.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_locks(RawMutex::INIT, RawMutex::INIT)
    }

    /// Returns an empty queue with nodes for `capacity` values, under the default locks. It grows
    /// beyond.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_locks(capacity, RawMutex::INIT, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> TwoLockQueue<T, L> {
    /// Returns an empty queue, which has not allocated, with a lock for each end. Both must be
    /// free.
    #[must_use]
    pub const fn with_locks(head: L, tail: L) -> Self {
        let dummy = AtomicPtr::new(ptr::null_mut());
        let nodes = Tail { first: ptr::null_mut(), seen: ptr::null_mut(), last: ptr::null_mut() };
        Self {
            head: CachePadded::new(Head { lock: Mutex::from_raw(head, ()), dummy }),
            tail: CachePadded::new(Mutex::from_raw(tail, UnsafeCell::new(nodes))),
        }
    }

    /// Returns an empty queue with nodes for `capacity` values and a lock for each end. Both must
    /// be free. The queue grows beyond.
    #[must_use]
    pub fn with_capacity_and_locks(capacity: usize, head: L, tail: L) -> Self {
        let dummy = Node::allocate(ptr::null_mut());
        let mut first = dummy;
        for _ in 0..capacity {
            first = Node::allocate(first);
        }
        let mut queue = Self::with_locks(head, tail);
        *queue.tail.get_mut() = UnsafeCell::new(Tail { first, seen: dummy, last: dummy });
        queue.head.dummy = AtomicPtr::fresh(dummy);
        queue
    }

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        let tail = self.tail.lock();
        tail.with_mut(|tail| {
            // SAFETY: the tail's lock is held (Invariant 4).
            let tail = unsafe { &mut *tail };
            tail.push(&self.head, value);
        });
    }

    /// Takes the oldest value.
    pub fn pop(&self) -> Option<T> {
        let _held = self.head.lock.lock();
        self.head.pop()
    }

    /// Calls `look` with the oldest value, under the pops' lock: a `look` that pops waits for
    /// itself.
    ///
    /// ```
    /// use stanchion_lockfree::queue::TwoLockQueue;
    ///
    /// let queue = TwoLockQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.peek(|oldest| *oldest), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let _held = self.head.lock.lock();
        self.head.peek(look)
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the pops'
    /// lock: a `predicate` that pops waits for itself, and one that panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::queue::TwoLockQueue;
    ///
    /// let queue = TwoLockQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 0), None);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        let _held = self.head.lock.lock();
        if self.head.peek(predicate)? { self.head.pop() } else { None }
    }

    /// Returns the number of values. Takes both locks, and looks at every node meanwhile.
    #[must_use]
    pub fn len(&self) -> usize {
        let _pops = self.head.lock.lock();
        let _pushes = self.tail.lock();
        let mut node = self.head.oldest();
        let mut count = 0;
        while let Some(oldest) = node {
            count += 1;
            node = Node::after(oldest);
        }
        count
    }

    /// Returns whether there is nothing in it. Takes the pops' lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let _held = self.head.lock.lock();
        self.head.oldest().is_none()
    }
}

impl<T> Tail<T> {
    /// Puts `value` at the end, for the holder of the tail's lock, or the only owner.
    fn push<L>(&mut self, head: &Head<T, L>, value: T) {
        let node = self.unused(head);
        // SAFETY: the node is the lock holder's (Invariant 4), and nodes are not freed (Invariant
        // 1).
        let node = unsafe { &*node };
        node.value.with_mut(|slot| {
            // SAFETY: no other thread uses the node, which holds no value (Invariant 2).
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
        // Relaxed: published by the next store.
        node.next.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: nodes are not freed (Invariant 1).
        let last = unsafe { &*self.last };
        // SeqCst, an exchange and not a store: pairs with the SeqCst of a pop that finds the node,
        // and of one that does not. See the header.
        last.next.swap(ptr::from_ref(node).cast_mut(), Ordering::SeqCst);
        self.last = ptr::from_ref(node).cast_mut();
    }

    /// Returns a node for a push: one that was popped, or a new one.
    fn unused<L>(&mut self, head: &Head<T, L>) -> *mut Node<T> {
        if self.first == self.seen {
            // Acquire: pairs with the Release of the pop that has left the nodes before it.
            self.seen = head.dummy.load(Ordering::Acquire);
        }
        if self.first == self.seen {
            if self.last.is_null() {
                let dummy = Node::allocate(ptr::null_mut());
                *self = Self { first: dummy, seen: dummy, last: dummy };
                // SeqCst: pairs with that of the pops. They do not write it while it is null
                // (Invariant 5). A store is enough: the exchange of the push comes after it.
                head.dummy.store(dummy, Ordering::SeqCst);
            }
            return Node::allocate(ptr::null_mut());
        }
        let node = self.first;
        // SAFETY: nodes are not freed (Invariant 1).
        let link = unsafe { &(*node).next };
        // Relaxed: written under this lock.
        self.first = link.load(Ordering::Relaxed);
        node
    }
}

impl<T> Node<T> {
    /// Returns the node after `node` of a queue, if there is one.
    fn after(node: *mut Self) -> Option<*mut Self> {
        // SAFETY: nodes are not freed (Invariant 1).
        let link = unsafe { &(*node).next };
        // SeqCst: pairs with the exchange of the push that linked it, or will.
        let next = link.load(Ordering::SeqCst);
        (!next.is_null()).then_some(next)
    }
}

impl<T, L> Head<T, L> {
    /// Returns the node of the oldest value, for the holder of the lock.
    fn oldest(&self) -> Option<*mut Node<T>> {
        // SeqCst: pairs with that of the first push. Pops come one after the other.
        let dummy = self.dummy.load(Ordering::SeqCst);
        if dummy.is_null() { None } else { Node::after(dummy) }
    }

    /// Takes the oldest value, for the holder of the lock, or the only owner.
    fn pop(&self) -> Option<T> {
        let next = self.oldest()?;
        // SAFETY: nodes are not freed (Invariant 1).
        let cell = unsafe { &(*next).value };
        let value = cell.with(|value| {
            // SAFETY: with the head's lock this value is this thread's (Invariant 3).
            let value = unsafe { &*value };
            // SAFETY: nodes after the dummy hold values (Invariant 2), and the dummy moves on to
            // this one.
            unsafe { value.assume_init_read() }
        });
        // Release: pairs with the Acquire of the push that uses the former dummy.
        self.dummy.store(next, Ordering::Release);
        Some(value)
    }

    /// Calls `look` with the oldest value, for the holder of the lock.
    fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        // SAFETY: nodes are not freed (Invariant 1).
        let cell = unsafe { &(*self.oldest()?).value };
        Some(cell.with(|value| {
            // SAFETY: only the holder of this lock touches the values of nodes that are linked
            // (Invariant 3).
            let value = unsafe { &*value };
            // SAFETY: nodes after the dummy hold values (Invariant 2).
            look(unsafe { value.assume_init_ref() })
        }))
    }

    /// Returns the oldest value, for the only owner.
    fn peek_mut(&mut self) -> Option<&mut T> {
        // SAFETY: nodes are not freed (Invariant 1), and no other thread has the queue.
        let node = unsafe { &mut *self.oldest()? };
        // SAFETY: nodes after the dummy hold values (Invariant 2).
        Some(unsafe { node.value.get_mut().assume_init_mut() })
    }
}

impl<T, L: RawMutex> Drop for TwoLockQueue<T, L> {
    fn drop(&mut self) {
        let first = self.tail.get_mut().get_mut().first;
        // Last, and also if dropping a value panics.
        let _nodes = Finally(|| {
            let mut node = first;
            while !node.is_null() {
                // SAFETY: each is in the list once, and no other thread has the queue (Invariant
                // 1).
                let owned = unsafe { Box::from_raw(node) };
                // Relaxed: the thread that drops the queue has come after all pushes.
                node = owned.next.load(Ordering::Relaxed);
            }
        });
        // Relaxed: likewise.
        let mut node = self.head.dummy.load(Ordering::Relaxed);
        drop_each(|| {
            if node.is_null() {
                return None;
            }
            // SAFETY: nodes are freed last.
            let link = unsafe { &(*node).next };
            // Relaxed: likewise.
            node = link.load(Ordering::Relaxed);
            if node.is_null() {
                return None;
            }
            // SAFETY: nodes are freed last.
            let cell = unsafe { &(*node).value };
            let value = cell.with(|value| {
                // SAFETY: the owner is alone.
                let value = unsafe { &*value };
                // SAFETY: nodes after the dummy hold values (Invariant 2). Each is passed once.
                unsafe { value.assume_init_read() }
            });
            Some(value)
        });
    }
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it, and the nodes belong
// to the queue.
unsafe impl<T: Send, L: RawMutex + Send> Send for TwoLockQueue<T, L> {}
// SAFETY: the ends are used under their locks (Invariants 3 and 4). No two threads ever share a
// value.
unsafe impl<T: Send, L: RawMutex + Sync> Sync for TwoLockQueue<T, L> {}

forward! {
    impl[T, L: RawMutex] ConcurrentQueue for TwoLockQueue<T, L>;
    item: T;
    progress: Progress::Blocking;
}

conveniences! {
    impl[T, L: RawMutex] TwoLockQueue<T, L>;
    value: T;
    new: TwoLockQueue::with_locks(L::INIT, L::INIT);
}

exclusive! {
    impl[T, L: RawMutex] TwoLockQueue<T, L>;
    value: T;
    push_mut: |queue, value| {
        let Self { head, tail } = queue;
        tail.get_mut().get_mut().push(head, value);
    };
    pop_mut: |queue| queue.head.pop();
    peek_mut: |queue| queue.head.peek_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(TwoLockQueue<u32>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(TwoLockQueue<std::rc::Rc<u32>>: Send, Sync);

    fn nodes<T>(queue: &mut TwoLockQueue<T>) -> usize {
        let mut node = queue.tail.get_mut().get_mut().first;
        let mut count = 0;
        while !node.is_null() {
            count += 1;
            // SAFETY: no other thread has the queue.
            node = unsafe { (*node).next.load(Ordering::Relaxed) };
        }
        count
    }

    #[test]
    fn first_in_first_out() {
        let mut queue: TwoLockQueue<u32> = TwoLockQueue::new();
        assert_eq!(queue.pop(), None);
        queue.extend([1, 2]);
        (&queue).extend([3]);
        assert_eq!(queue.pop(), Some(1));
        assert!(queue.drain().eq([2, 3]));
        assert!(queue.is_empty());
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn nodes_are_used_again() {
        let mut queue: TwoLockQueue<u32> = TwoLockQueue::with_capacity(2);
        for round in 0..100 {
            queue.push(round);
            queue.push(round);
            assert_eq!(queue.pop(), Some(round));
            assert_eq!(queue.pop(), Some(round));
        }
        assert_eq!(nodes(&mut queue), 3);
        (0..5).for_each(|value| queue.push(value));
        assert_eq!(nodes(&mut queue), 6);
    }
}
