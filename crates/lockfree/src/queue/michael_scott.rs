//! Michael and Scott's queue without locks: a list with a dummy node, and a tail that may be one node late.
//!
//! A push takes two steps, to link its node behind the last one and to move `tail` to it. A thread may stop between the two; so whoever finds `tail`
//! late moves it, and nobody waits. Why not fetch-and-add on a ring, which is faster: a thread that stops between claiming a place and filling it
//! makes the others wait, and to avoid that takes the machinery of [`queue`](super)'s rings. Here every state in between can be finished by anybody
//! in one step.
//!
//! ```text
//! head ──► dummy ──► oldest ──► … ──► newest ◄── tail         or, between the two steps of a push, tail names the one before
//! ```
//!
//! # Invariants
//!
//! 1. From the node that `head` names, `next` leads through all nodes that are linked. A node is linked by the change of the last node's `next`, from
//!    null, and is behind for good.
//! 2. `tail` names the last node or the one before it, and never one before `head`'s.
//! 3. The nodes after `head`'s hold values. The value of a node belongs to the thread that moved `head` to it.
//! 4. A node is retired by the thread that moved `head` past it, when `tail` has passed it too; so no link of the queue names a retired node.
//!
//! # The looks again
//!
//! | operation | after reading | looks again whether | because otherwise |
//! | --- | --- | --- | --- |
//! | push | `tail`, then its node's `next` | `tail` is the same | the node may be in use elsewhere, and its `next` null for another reason |
//! | pop | `head`, then `tail` and its node's `next` | `head` is the same | the same; `tail` may name the node in a later use, and must not be moved to `next`; and `next` may have been retired before it was announced |
//!
//! Both changes of a link are compare-exchanges from what was read, so a look that was right and is right no more does no harm. A look that finds a
//! change is a race lost, as a failed exchange is: the thread stays away for a while ([`away`]).
//!
//! # Why a pop knows that `tail` has passed
//!
//! It reads `tail` after `head`. Whoever moved `head` to the node had seen `tail` at it or further (Invariant 2) and released that with `head`; so
//! what is read is not older, and if it does not name `head`'s node, it is past it, and stays so.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | push: link, exchange `next` | Release | the Acquire load of `next`: the value and the place it is in |
//! | move `tail` | Release | the Acquire load of `tail`: whoever finds the node there has its `next` |
//! | pop: move `head` | Release | the Acquire load of `head`: what its thread knew of `tail` and the list |
//! | pop: look at `tail` | Acquire | the Release that moved it there: if to the node in a later use, the look at `head` is not older |
//!
//! Source: Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent queue algorithms", PODC 1996, figure 1; with hazard
//! pointers Michael 2004, figure 6. Where the value is read late there, it is found through a slot here, see [`memory`](crate::memory).

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;
use machine::atomic::Ordering;

use super::{ConcurrentQueue, Full, away};
use crate::Progress;
use crate::dropping::{Finally, drop_each};
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// A queue of `T` that no stopped thread stops, in a list with memory `M`: [`Hazard`], or [`Counted`](crate::memory::Counted) as in the paper.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree): a thread that stops stops nobody, as far as the allocator is where it is asked |
/// | cost | a push changes two links, a pop one; each is a compare-exchange, and the memory's come on top if it has any |
/// | order | by the moment of linking; each producer's values stay in order |
/// | memory | see [`memory`](crate::memory): nodes are used again, and a stopped thread keeps back a bounded number |
///
/// It is not the fastest queue here: all pushes want one line, and all pops another. Take it if a thread may stop at any time and the queue must not
/// have a bound.
///
/// ```
/// use stanchion_lockfree::queue::MichaelScottQueue;
///
/// let queue = MichaelScottQueue::<&str>::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.push("first"));
/// });
/// queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// assert!(queue.into_iter().eq(["second"]));
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::MichaelScottQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct MichaelScottQueue<T, M: Memory = Hazard> {
    head: CachePadded<<M::Store<T> as Store<T>>::Link>,
    tail: CachePadded<<M::Store<T> as Store<T>>::Link>,
    store: M::Store<T>,
    values: PhantomData<T>,
}

/// The hazards of an operation: what it looks at from `head` or `tail`…
const END: usize = 0;
/// …and the one behind it.
const BEHIND: usize = 1;

impl<T, M: Memory> MichaelScottQueue<T, M> {
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

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        let mut backoff = away();
        loop {
            let last = operation.protect(END, &self.tail);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(last) };
            // Acquire: pairs with the Release of the push that linked it, for `tail` may be moved to it.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.tail.load(Ordering::Relaxed) != last {
                backoff.spin();
                continue;
            }
            if !next.is_null() {
                self.move_tail(last, next);
                continue;
            }
            // Release: pairs with the Acquire of whoever finds the node. Relaxed: the pointer that another has put there is read anew.
            if link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed) {
                self.move_tail(last, node);
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
            let dummy = operation.protect(END, &self.head);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(dummy) };
            // Acquire: so that the look at `head` is not older, if it names the dummy's node in a later use.
            let last = self.tail.load(Ordering::Acquire);
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            operation.announce(BEHIND, next);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.head.load(Ordering::Relaxed) != dummy {
                backoff.spin();
                continue;
            }
            if next.is_null() {
                return None;
            }
            if last.names_same(dummy) {
                self.move_tail(last, next);
            }
            // SAFETY: announced, and after that `head` was still before it: it had not been retired (Invariant 4).
            let slot = unsafe { operation.slot(next) };
            // Release: pairs with the Acquire of the next one to find this head. Relaxed: read anew.
            if self.head.compare_exchange(dummy, next, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant 3).
                let value = unsafe { operation.take(slot) };
                // SAFETY: this thread moved `head` past it, and `tail` has passed (Invariant 4); the slot is empty.
                unsafe { operation.retire(dummy, slot) };
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.store.enter();
        loop {
            let dummy = operation.protect(END, &self.head);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(dummy) };
            // Acquire: so that the look at `head` is not older.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.head.load(Ordering::Relaxed) == dummy {
                return next.is_null();
            }
        }
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

impl<T, M: Memory> Drop for MichaelScottQueue<T, M> {
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
unsafe impl<T: Send, M: Memory> Send for MichaelScottQueue<T, M> {}
// SAFETY: all that threads share is atomic, and a value is touched only by the thread that it belongs to (Invariant 3).
unsafe impl<T: Send, M: Memory> Sync for MichaelScottQueue<T, M> {}

impl<T, M: Memory> ConcurrentQueue for MichaelScottQueue<T, M> {
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
    impl[T, M: Memory] MichaelScottQueue<T, M>;
    item: T;
    take: |queue| queue.pop();
    put: |queue, value| queue.push(value);
    new: MichaelScottQueue::new();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Counted;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(MichaelScottQueue<u32>: Send, Sync);
    assert_impl_all!(MichaelScottQueue<u32, Counted>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(MichaelScottQueue<std::rc::Rc<u32>>: Send, Sync);
    assert_not_impl_any!(MichaelScottQueue<std::rc::Rc<u32>, Counted>: Send, Sync);

    fn first_in_first_out<M: Memory>() {
        let mut queue: MichaelScottQueue<Box<u32>, M> = MichaelScottQueue::with_capacity(2);
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
        assert_eq!(format!("{queue:?}"), "MichaelScottQueue { .. }");
    }

    #[test]
    fn first_in_first_out_with_either_memory() {
        first_in_first_out::<Hazard>();
        first_in_first_out::<Counted>();
    }

    /// A push stops after its first step: the others go on, and finish it.
    fn a_push_that_stops_is_finished_by_others<M: Memory>() {
        let queue = MichaelScottQueue::<u32, M>::new();
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
        let queue = MichaelScottQueue::<u32, Counted>::new();
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
