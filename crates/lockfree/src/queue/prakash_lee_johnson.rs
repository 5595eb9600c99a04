//! Prakash, Lee and Johnson's queue without locks: each operation first takes a snapshot of both ends.
//!
//! What differs from [`MichaelScottQueue`](super::MichaelScottQueue), which came later and is simpler: a push there looks at the tail only, and a pop
//! looks again at one pointer. Here both operations read `head`, `tail` and what is behind the tail, and look at both ends again. If the snapshot
//! shows a push that is not finished, the thread finishes it and begins again with another snapshot; else it tries its own step. So pushes read the
//! line that pops write, and the other way round: that is what it costs. It is here because the 1997 comparison has it.
//!
//! | snapshot | the queue | a push | a pop |
//! | --- | --- | --- | --- |
//! | something behind `tail` | has a push that is not finished | moves `tail`, begins again | moves `tail`, begins again |
//! | nothing behind, `head` and `tail` name the same | is empty | links its node | returns nothing |
//! | nothing behind, different | has values | links its node | moves `head` |
//!
//! The dummy node is Valois's (1994). The 1994 paper has none, and so a protocol of its own for the last value; it is left out here, and with it some
//! of the paper's cost.
//!
//! # Invariants
//!
//! Those of [`MichaelScottQueue`](super::MichaelScottQueue), by the same numbers:
//!
//! 1. From the node that `head` names, `next` leads through all nodes that are linked.
//! 2. `tail` names the last node or the one before it, and never one before `head`'s: `head` is moved only after a snapshot in which `tail` was not
//!    behind, and named another node.
//! 3. The nodes after `head`'s hold values. The value of a node belongs to the thread that moved `head` to it.
//! 4. A node is retired by the thread that moved `head` past it, when `tail` has passed it too.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | link, exchange `next` | Release | the Acquire load of `next`: the value and the place it is in |
//! | move `tail`, move `head` | Release | the Acquire loads of the snapshot: what was known when they were moved |
//! | look again at the ends | Relaxed | nobody: they come after the Acquire loads of what has happened to the nodes |
//!
//! Source: Prakash, Lee and Johnson, "A nonblocking algorithm for shared queues using compare-and-swap", IEEE Transactions on Computers 43(5), 1994,
//! as Michael and Scott 1997 describe it, section 4.1.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use machine::atomic::Ordering;
use stanchion_spin::Backoff;

use super::{ConcurrentQueue, Full, away};
use crate::Progress;
use crate::dropping::{Finally, drop_each};
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// A queue of `T` that no stopped thread stops and whose operations look at both ends, with memory `M`: [`Hazard`], or
/// [`Counted`](crate::memory::Counted) as in the paper.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree): a thread that stops stops nobody, as far as the allocator is where it is asked |
/// | cost | as [`MichaelScottQueue`](super::MichaelScottQueue), which is to be preferred, and the other end's line for each operation |
/// | memory | see [`memory`](crate::memory) |
///
/// ```
/// use stanchion_lockfree::queue::PrakashLeeJohnsonQueue;
///
/// let queue = PrakashLeeJohnsonQueue::<_>::new();
/// queue.push("first");
/// queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// assert!(queue.into_iter().eq(["second"]));
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::PrakashLeeJohnsonQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct PrakashLeeJohnsonQueue<T, M: Memory = Hazard> {
    head: CachePadded<<M::Store<T> as Store<T>>::Link>,
    tail: CachePadded<<M::Store<T> as Store<T>>::Link>,
    store: M::Store<T>,
    values: PhantomData<T>,
}

/// The hazards of an operation: the node at the head…
const HEAD: usize = 0;
/// …the one at the tail…
const TAIL: usize = 1;
/// …and the one behind the head's.
const BEHIND: usize = 2;

/// The queue at one moment, when no push was unfinished.
struct Snapshot<P> {
    head: P,
    tail: P,
    /// Null, as the tail's `next` held it.
    behind: P,
}

impl<T, M: Memory> PrakashLeeJohnsonQueue<T, M> {
    /// An empty queue, with its dummy.
    #[must_use]
    pub fn new() -> Self {
        Self::within(M::Store::NEW)
    }

    /// With room for `capacity` values set aside, if the memory can do that; it grows beyond.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::within(M::Store::with_capacity(capacity.saturating_add(1)))
    }

    fn within(store: M::Store<T>) -> Self {
        let queue = Self {
            head: CachePadded::new(Link::NULL),
            tail: CachePadded::new(Link::NULL),
            store,
            values: PhantomData,
        };
        let dummy = queue.store.enter().allocate_empty();
        // Relaxed: nobody else has the queue yet.
        queue.head.store(dummy, Ordering::Relaxed);
        queue.tail.store(dummy, Ordering::Relaxed);
        queue
    }

    /// Both ends and what is behind the tail, as they were at one moment; finishes the pushes that it finds unfinished, and stays away for a while when
    /// another was quicker.
    fn snapshot(
        &self,
        operation: &<M::Store<T> as Store<T>>::Operation<'_>,
        backoff: &mut Backoff,
    ) -> Snapshot<<M::Store<T> as Store<T>>::Pointer> {
        loop {
            let head = operation.protect(HEAD, &self.head);
            let tail = operation.protect(TAIL, &self.tail);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(tail) };
            // Acquire: pairs with the Release of the push that linked it, for `tail` may be moved to it.
            let behind = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of whatever has happened to the node at the tail.
            let same_head = self.head.load(Ordering::Relaxed) == head;
            // Relaxed: likewise.
            if !same_head || self.tail.load(Ordering::Relaxed) != tail {
                backoff.spin();
                continue;
            }
            if behind.is_null() {
                return Snapshot { head, tail, behind };
            }
            self.move_tail(tail, behind);
        }
    }

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        let mut backoff = away();
        loop {
            let Snapshot { tail, behind, .. } = self.snapshot(&operation, &mut backoff);
            // SAFETY: protected since the snapshot, and not null.
            let link = unsafe { operation.next(tail) };
            // Release: pairs with the Acquire of whoever finds the node. Relaxed: the pointer that another has put there is read anew.
            if link.compare_exchange(behind, node, Ordering::Release, Ordering::Relaxed) {
                self.move_tail(tail, node);
                return;
            }
            backoff.spin();
        }
    }

    /// Takes the oldest; `None` if there was nothing at some moment during the call.
    pub fn pop(&self) -> Option<T> {
        let operation = self.store.enter();
        let mut backoff = away();
        loop {
            let Snapshot { head, tail, .. } = self.snapshot(&operation, &mut backoff);
            if head.names_same(tail) {
                return None;
            }
            // SAFETY: protected since the snapshot, and not null.
            let link = unsafe { operation.next(head) };
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            operation.announce(BEHIND, next);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.head.load(Ordering::Relaxed) != head {
                backoff.spin();
                continue;
            }
            // SAFETY: announced, and after that `head` was still before it: it had not been retired (Invariant 4); and as `tail` was further than
            // `head`, it is not null (Invariant 1).
            let slot = unsafe { operation.slot(next) };
            // Release: pairs with the Acquire of the next one to find this head. Relaxed: read anew.
            if self.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant 3).
                let value = unsafe { operation.take(slot) };
                // SAFETY: this thread moved `head` past it, and `tail` has passed (Invariant 4); the slot is empty.
                unsafe { operation.retire(head, slot) };
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Whether there was nothing in it at some moment during the call. Finishes what it finds unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.store.enter();
        let Snapshot { head, tail, .. } = self.snapshot(&operation, &mut away());
        head.names_same(tail)
    }

    /// Moves `tail` from `last` to the node behind it, unless another thread has.
    fn move_tail(
        &self,
        last: <M::Store<T> as Store<T>>::Pointer,
        next: <M::Store<T> as Store<T>>::Pointer,
    ) {
        // Release: pairs with the Acquire of whoever finds the node here. Relaxed: then it has been moved.
        let _ = self.tail.compare_exchange(last, next, Ordering::Release, Ordering::Relaxed);
    }
}

impl<T, M: Memory> Drop for PrakashLeeJohnsonQueue<T, M> {
    fn drop(&mut self) {
        let queue = &*self;
        // Last, and also if dropping a value panics.
        let _dummy = Finally(|| {
            let operation = queue.store.enter();
            // Relaxed: nobody else has the queue.
            let dummy = queue.head.load(Ordering::Relaxed);
            // SAFETY: it is the only node left, and nobody else has the queue.
            unsafe { operation.discard(dummy) };
        });
        drop_each(|| queue.pop());
    }
}

// SAFETY: a value goes from the thread that pushes it to the one that pops it, and the nodes belong to the queue.
unsafe impl<T: Send, M: Memory> Send for PrakashLeeJohnsonQueue<T, M> {}
// SAFETY: all that threads share is atomic, and a value is touched only by the thread that it belongs to (Invariant 3).
unsafe impl<T: Send, M: Memory> Sync for PrakashLeeJohnsonQueue<T, M> {}

impl<T, M: Memory> ConcurrentQueue for PrakashLeeJohnsonQueue<T, M> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.push(value);
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        self.pop()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[T, M: Memory] PrakashLeeJohnsonQueue<T, M>;
    item: T;
    take: |queue| queue.pop();
    put: |queue, value| queue.push(value);
    new: PrakashLeeJohnsonQueue::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Counted;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(PrakashLeeJohnsonQueue<u32>: Send, Sync);
    assert_impl_all!(PrakashLeeJohnsonQueue<u32, Counted>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(PrakashLeeJohnsonQueue<std::rc::Rc<u32>>: Send, Sync);
    assert_not_impl_any!(PrakashLeeJohnsonQueue<std::rc::Rc<u32>, Counted>: Send, Sync);

    fn first_in_first_out<M: Memory>() {
        let mut queue: PrakashLeeJohnsonQueue<Box<u32>, M> =
            PrakashLeeJohnsonQueue::with_capacity(2);
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
        assert_eq!(format!("{queue:?}"), "PrakashLeeJohnsonQueue { .. }");
    }

    #[test]
    fn first_in_first_out_with_either_memory() {
        first_in_first_out::<Hazard>();
        first_in_first_out::<Counted>();
    }

    /// A push stops after its first step: the others go on, and finish it.
    fn a_push_that_stops_is_finished_by_others<M: Memory>() {
        let queue = PrakashLeeJohnsonQueue::<u32, M>::new();
        let operation = queue.store.enter();
        let node = operation.allocate(1);
        let last = operation.protect(0, &queue.tail);
        // SAFETY: protected.
        let link = unsafe { operation.next(last) };
        let next = link.load(Ordering::Acquire);
        assert!(link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed));
        // Here it stops.
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
        let queue = PrakashLeeJohnsonQueue::<u32, Counted>::new();
        let operation = queue.store.enter();
        let node = operation.allocate(1);
        let last = operation.protect(0, &queue.tail);
        // SAFETY: protected.
        let link = unsafe { operation.next(last) };
        let next = link.load(Ordering::Acquire);
        assert!(link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed));
        assert_eq!(queue.pop(), Some(1));
        let (head, tail) = (queue.head.load(Ordering::Relaxed), queue.tail.load(Ordering::Relaxed));
        assert!(head.names_same(tail) && !head.names_same(last));
        queue.push(2);
        assert_eq!(queue.pop(), Some(2));
    }
}
