//! Michael and Scott's queue without locks: a list with a dummy node, and a tail that may be one
//! node late.
//!
//! A push takes two steps: it links its node behind the last one, and moves `tail` to it. A thread
//! may stop between the two. So a thread that finds `tail` late moves it, and no thread waits. Why
//! not fetch-and-add on a ring, which is faster: a thread that stops between claiming a slot and
//! filling it makes the others wait, and to avoid that takes the machinery of [`queue`](super)'s
//! rings. Here any thread can finish every state in between in one step.
//!
//! Layout and invariants are those of the [`list`](super::list). This module keeps them.
//!
//! # The looks again
//!
//! - A push reads `tail`, then its node's `next`. It looks again whether `tail` is the same. If it
//!   is not, the node may be in use elsewhere, and its `next` null for another reason.
//! - A pop reads `head`, then `tail` and its node's `next`. It looks again whether `head` is the
//!   same. If it is not, the same may be the case. Besides, `tail` may name the node in a later
//!   use, and must not be moved to `next`. And `next` may have been retired before it was
//!   announced.
//!
//! Both changes of a link are compare-exchanges from the pointer that was read. So a look that was
//! right and is right no more does no harm. A look that finds a change is a race lost, as a failed
//! exchange is: the thread stays away for a while ([`away`]).
//!
//! # Why a pop knows that `tail` has passed
//!
//! It reads `tail` after `head`. The thread that moved `head` to the node had seen `tail` at it or
//! further (Invariant 2) and released that with `head`. So the `tail` that is read is not older. If
//! it does not name `head`'s node, it is past it, and stays so.
//!
//! # Orderings
//!
//! - **Push: link, exchange `next`**: Release. The partner is the Acquire load of `next`: the value
//!   and its slot.
//! - **Move `tail`**: Release. The partner is the Acquire load of `tail`: a thread that finds the
//!   node there has its `next`.
//! - **Pop: move `head`**: Release. The partner is the Acquire load of `head`: what its thread knew
//!   of `tail` and the list.
//! - **Pop: look at `tail`**: Acquire. The partner is the Release that moved it there. If that
//!   moved it to the node in a later use, the look at `head` is not older.
//!
//! Source: Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent
//! queue algorithms", PODC 1996, figure 1. With hazard pointers it is Michael 2004, figure 6. That
//! version reads the value late; here the value is found through a slot, see
//! [`memory`](crate::memory).

use stanchion_machine::atomic::Ordering;

use super::away;
use super::list::List;
use crate::Progress;
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// A queue of `T` that goes on when a thread stops, in a list with memory `M`: [`Hazard`], or
/// [`Counted`](crate::memory::Counted) as in the paper.
///
/// - Progress: [`LockFree`](Progress::LockFree). A thread that stops stops no other thread, as far
///   as the allocator does not where it is asked.
/// - Cost: a push changes two links, a pop one. Each change is a compare-exchange. The memory's
///   exchanges are added if it has any.
/// - Order: by the moment of linking. Each producer's values stay in order.
/// - Memory: see [`memory`](crate::memory). Nodes are used again, and a stopped thread keeps back a
///   bounded number.
///
/// It is not the fastest queue here: all pushes want one line, and all pops another. Take it if a
/// thread may stop at any time and the queue must not have a bound.
///
/// ```
/// use stanchion_lockfree::queue::MichaelScottQueue;
///
/// let queue = MichaelScottQueue::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| queue.push("first"));
/// });
/// queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// assert!(queue.into_iter().eq(["second"]));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::MichaelScottQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct MichaelScottQueue<T, M: Memory = Hazard> {
    /// The list of the values, with both ends.
    pub(super) list: List<T, M>,
}

/// The hazard for the node at `head` or `tail`.
const END: usize = 0;
/// The hazard for the node behind it.
const BEHIND: usize = 1;

impl<T> MichaelScottQueue<T> {
    /// Returns an empty queue, with its dummy node. Its memory is [`Hazard`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_memory(Hazard)
    }
}

impl<T, M: Memory> MichaelScottQueue<T, M> {
    /// Returns an empty queue, with its dummy node, with the memory of the caller's choice.
    #[must_use]
    pub fn with_memory(_memory: M) -> Self {
        Self { list: List::new() }
    }

    /// Returns an empty queue with the memory of the caller's choice. If that can set room aside,
    /// as [`Counted`](crate::memory::Counted) can, then there is room for `capacity` values. It
    /// grows beyond.
    #[must_use]
    pub fn with_capacity_and_memory(capacity: usize, _memory: M) -> Self {
        Self { list: List::with_capacity(capacity) }
    }

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        let operation = self.list.store.enter();
        let node = operation.allocate(value);
        let mut backoff = away();
        loop {
            let last = operation.protect(END, &self.list.tail);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(last) };
            // Acquire: pairs with the Release of the push that linked it, because `tail` may be
            // moved to it.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of everything that has happened to the node.
            if self.list.tail.load(Ordering::Relaxed) != last {
                backoff.spin();
                continue;
            }
            if !next.is_null() {
                self.list.move_tail(last, next);
                continue;
            }
            // Release: pairs with the Acquire of a thread that finds the node. Relaxed: the pointer
            // that another thread has put there is read anew.
            if link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed) {
                self.list.move_tail(last, node);
                return;
            }
            backoff.spin();
        }
    }

    /// Takes the oldest value. Returns `None` if there was nothing at some moment during the call.
    pub fn pop(&self) -> Option<T> {
        let operation = self.list.store.enter();
        let mut backoff = away();
        loop {
            let dummy = operation.protect(END, &self.list.head);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(dummy) };
            // Acquire: so that the look at `head` is not older, if it names the dummy's node in a
            // later use.
            let last = self.list.tail.load(Ordering::Acquire);
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            operation.announce(BEHIND, next);
            // Relaxed: after an Acquire of everything that has happened to the node.
            if self.list.head.load(Ordering::Relaxed) != dummy {
                backoff.spin();
                continue;
            }
            if next.is_null() {
                return None;
            }
            if last.names_same(dummy) {
                self.list.move_tail(last, next);
            }
            // SAFETY: announced, and after that `head` was still before it. So it had not been
            // retired (Invariant 4).
            let slot = unsafe { operation.slot(next) };
            // Release: pairs with the Acquire of the next thread to find this head. Relaxed: read
            // anew.
            if self.list.head.compare_exchange(dummy, next, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant
                // 3).
                let value = unsafe { operation.take(slot) };
                // SAFETY: this thread moved `head` past it, and `tail` has passed (Invariant 4).
                // The slot is empty.
                unsafe { operation.retire(dummy, slot) };
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Returns whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.list.store.enter();
        loop {
            let dummy = operation.protect(END, &self.list.head);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(dummy) };
            // Acquire: so that the look at `head` is not older.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of everything that has happened to the node.
            if self.list.head.load(Ordering::Relaxed) == dummy {
                return next.is_null();
            }
        }
    }
}

forward! {
    impl[T, M: Memory] ConcurrentQueue for MichaelScottQueue<T, M>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T, M: Memory] MichaelScottQueue<T, M>;
    value: T;
    new: MichaelScottQueue::with_memory(M::default());
}

exclusive! {
    impl[T, M: Memory] MichaelScottQueue<T, M>;
    value: T;
    push_mut: |queue, value| queue.list.push_mut(value);
    pop_mut: |queue| queue.list.pop_mut();
    peek_mut: |queue| queue.list.peek_mut();
    cost: "Needs no exchange of its own, and announces nothing; the memory's cost stays.";
}
