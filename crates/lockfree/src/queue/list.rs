//! The common part of the queues without locks in lists: a list with a dummy node, its two ends,
//! and its end.
//!
//! Why not the operations too: [`MichaelScottQueue`](super::MichaelScottQueue) and
//! [`PrakashLeeJohnsonQueue`](super::PrakashLeeJohnsonQueue) differ in how an operation comes to
//! know that the pointers it read belong together.
//!
//! ```text
//! head ──► dummy ──► oldest ──► … ──► newest ◄── tail
//! ```
//!
//! Between the two steps of a push, `tail` names the node before the newest.
//!
//! # Invariants
//!
//! 1. From the node that `head` names, `next` leads through all nodes that are linked. A node is
//!    linked by the change of the last node's `next` from null, and is behind for good.
//! 2. `tail` names the last node or the one before it, and never one before `head`'s.
//! 3. The nodes after `head`'s hold values. The value of a node belongs to the thread that moved
//!    `head` to it.
//! 4. A node is retired by the thread that moved `head` past it, when `tail` has passed it too. So
//!    no link of the queue names a retired node.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::Ordering;

use crate::dropping::{Finally, drop_each};
use crate::memory::{Link, Memory, Operation, Pointer, Store};

/// A list of `T` in memory `M`. Values that are still in it are dropped with it.
pub(super) struct List<T, M: Memory> {
    /// The dummy node. Written by pops.
    pub(super) head: CachePadded<<M::Store<T> as Store<T>>::Link>,
    /// The last node, or the one before it. Written by every thread that finds it late.
    pub(super) tail: CachePadded<<M::Store<T> as Store<T>>::Link>,
    /// The memory of the nodes.
    pub(super) store: M::Store<T>,
    /// Tells the compiler that the list owns values.
    values: PhantomData<T>,
}

impl<T, M: Memory> List<T, M> {
    /// Returns an empty list, with its dummy.
    pub(super) fn new() -> Self {
        Self::within(M::Store::NEW)
    }

    /// Returns a list with room for `capacity` values, if the memory can set it aside. It grows
    /// beyond.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self::within(M::Store::with_capacity(capacity.saturating_add(1)))
    }

    fn within(store: M::Store<T>) -> Self {
        let list = Self {
            head: CachePadded::new(Link::NULL),
            tail: CachePadded::new(Link::NULL),
            store,
            values: PhantomData,
        };
        let dummy = list.store.enter().allocate_empty();
        // Relaxed: no other thread has the list yet.
        list.head.store(dummy, Ordering::Relaxed);
        list.tail.store(dummy, Ordering::Relaxed);
        list
    }

    /// Moves `tail` from `last` to the node behind it, unless another thread has.
    #[inline]
    pub(super) fn move_tail(
        &self,
        last: <M::Store<T> as Store<T>>::Pointer,
        next: <M::Store<T> as Store<T>>::Pointer,
    ) {
        // Release: pairs with the Acquire of a thread that finds the node here. Relaxed: then it
        // has been moved.
        let _ = self.tail.compare_exchange(last, next, Ordering::Release, Ordering::Relaxed);
    }

    /// Puts `value` at the end, for the only owner. No push is going on, so `tail` names the last
    /// node (Invariant 2).
    pub(super) fn push_mut(&mut self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        // Relaxed, all: no other thread has the list.
        let last = self.tail.load(Ordering::Relaxed);
        // SAFETY: linked, and so no other thread could retire it. Not null: there always is a
        // dummy.
        let link = unsafe { operation.next(last) };
        debug_assert!(link.load(Ordering::Relaxed).is_null(), "`tail` names the last node");
        link.store(node, Ordering::Relaxed);
        self.tail.store(node, Ordering::Relaxed);
    }

    /// Takes the oldest value, for the only owner.
    pub(super) fn pop_mut(&mut self) -> Option<T> {
        // No push is going on, so `tail` names the last node, which is not the dummy if there is a
        // value.
        self.take_alone()
    }

    /// Returns the oldest value, for the only owner.
    pub(super) fn peek_mut(&mut self) -> Option<&mut T> {
        let operation = self.store.enter();
        // Relaxed, all: no other thread has the list.
        let dummy = self.head.load(Ordering::Relaxed);
        // SAFETY: linked, and so no other thread could retire it. Not null: there always is a
        // dummy.
        let link = unsafe { operation.next(dummy) };
        let next = link.load(Ordering::Relaxed);
        if next.is_null() {
            return None;
        }
        // SAFETY: linked, and not null by the look.
        let slot = unsafe { operation.slot(next) };
        // SAFETY: as above, and no other thread has the list.
        let value = unsafe { operation.value(slot) };
        // SAFETY: a node after the dummy holds a value (Invariant 3), and nothing else touches it
        // while the list is borrowed.
        Some(unsafe { &mut *value })
    }

    /// Takes the oldest value of a list that no other thread has. Either `tail` names the last
    /// node, or nothing will be pushed any more.
    fn take_alone(&self) -> Option<T> {
        let operation = self.store.enter();
        // Relaxed, all: no other thread has the list.
        let dummy = self.head.load(Ordering::Relaxed);
        // SAFETY: linked, and so only this thread could retire it. Not null: there always is a
        // dummy.
        let link = unsafe { operation.next(dummy) };
        let next = link.load(Ordering::Relaxed);
        if next.is_null() {
            return None;
        }
        // SAFETY: as above, not null by the look.
        let slot = unsafe { operation.slot(next) };
        self.head.store(next, Ordering::Relaxed);
        // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant 3).
        let value = unsafe { operation.take(slot) };
        // SAFETY: this thread moved `head` past it, and no thread looks at the node that `tail`
        // names. The slot is empty.
        unsafe { operation.retire(dummy, slot) };
        Some(value)
    }
}

impl<T, M: Memory> Drop for List<T, M> {
    fn drop(&mut self) {
        let list = &*self;
        // Last, and also if dropping a value panics.
        let _dummy = Finally(|| {
            let operation = list.store.enter();
            // Relaxed: no other thread has the list.
            let dummy = list.head.load(Ordering::Relaxed);
            // SAFETY: it is the only node left, and no other thread has the list.
            unsafe { operation.discard(dummy) };
        });
        drop_each(|| list.take_alone());
    }
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it, and the nodes belong
// to the list.
unsafe impl<T: Send, M: Memory> Send for List<T, M> {}
// SAFETY: everything that threads share is atomic, and a value is touched only by the thread that
// it belongs to (Invariant 3).
unsafe impl<T: Send, M: Memory> Sync for List<T, M> {}

#[cfg(test)]
mod tests {
    /// Makes the same tests for each queue that is such a list.
    macro_rules! of {
        ($($name:ident: $queue:ident;)+) => {$(mod $name {
            use stanchion_machine::atomic::Ordering;
            use static_assertions::{assert_impl_all, assert_not_impl_any};

            use crate::memory::{Counted, Hazard, Link, Memory, Operation, Pointer, Store};
            use crate::queue::$queue;

            assert_impl_all!($queue<u32>: Send, Sync);
            assert_impl_all!($queue<u32, Counted>: Send, Sync);
            // A value that must stay with its thread must not be pushed here and popped there.
            assert_not_impl_any!($queue<std::rc::Rc<u32>>: Send, Sync);
            assert_not_impl_any!($queue<std::rc::Rc<u32>, Counted>: Send, Sync);

            fn first_in_first_out<M: Memory>() {
                let mut queue: $queue<Box<u32>, _> =
                    $queue::with_capacity_and_memory(2, M::default());
                assert_eq!(queue.pop(), None);
                queue.extend([1, 2].map(Box::new));
                (&queue).extend([3].map(Box::new));
                assert!(!queue.is_empty());
                assert_eq!(queue.pop().as_deref(), Some(&1));
                assert!(queue.drain().map(|value| *value).eq([2, 3]));
                assert!(queue.is_empty());
                assert_eq!(queue.pop(), None);
                queue.extend((0..1_000).map(Box::new));
                assert!(queue.drain().take(500).map(|value| *value).eq(0..500));
                assert_eq!(format!("{queue:?}"), concat!(stringify!($queue), " { .. }"));
            }

            #[test]
            fn first_in_first_out_with_either_memory() {
                first_in_first_out::<Hazard>();
                first_in_first_out::<Counted>();
            }

            type Of<M> = <M as Memory>::Store<u32>;

            /// Makes a push of 1 that stops after its first step. Returns it, and the node that was
            /// the last before.
            fn push_that_stops<M: Memory>(
                queue: &$queue<u32, M>,
            ) -> (<Of<M> as Store<u32>>::Operation<'_>, <Of<M> as Store<u32>>::Pointer) {
                let operation = queue.list.store.enter();
                let node = operation.allocate(1);
                let last = operation.protect(0, &queue.list.tail);
                // SAFETY: protected.
                let link = unsafe { operation.next(last) };
                let next = link.load(Ordering::Acquire);
                assert!(link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed));
                (operation, last)
            }

            /// Checks that the other threads go on, and finish it.
            fn a_push_that_stops_is_finished_by_others<M: Memory>() {
                let queue = $queue::<u32, M>::default();
                let _stopped = push_that_stops(&queue);
                assert!(!queue.is_empty());
                queue.push(2);
                assert_eq!(queue.pop(), Some(1));
                assert_eq!(queue.pop(), Some(2));
                assert_eq!(queue.pop(), None);
            }

            #[test]
            fn a_push_that_stops_is_finished_by_others_with_either_memory() {
                a_push_that_stops_is_finished_by_others::<Hazard>();
                a_push_that_stops_is_finished_by_others::<Counted>();
            }

            /// The same with a pop as the first to find it: `head` must not pass `tail`.
            #[test]
            fn a_pop_finishes_a_push_that_stopped() {
                let queue = $queue::<u32, _>::with_memory(Counted);
                let (_stopped, last) = push_that_stops(&queue);
                assert_eq!(queue.pop(), Some(1));
                let (head, tail) =
                    (queue.list.head.load(Ordering::Relaxed), queue.list.tail.load(Ordering::Relaxed));
                assert!(head.names_same(tail) && !head.names_same(last));
                queue.push(2);
                assert_eq!(queue.pop(), Some(2));
            }
        })+};
    }

    of! {
        michael_scott: MichaelScottQueue;
        prakash_lee_johnson: PrakashLeeJohnsonQueue;
    }
}
