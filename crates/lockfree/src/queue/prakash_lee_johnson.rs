//! Prakash, Lee and Johnson's queue without locks: each operation first takes a snapshot of both
//! ends.
//!
//! It differs from [`MichaelScottQueue`](super::MichaelScottQueue), which came later and is
//! simpler: a push there looks at the tail only, and a pop looks again at one pointer. Here both
//! operations read `head`, `tail` and the node behind the tail, and look at both ends again. If the
//! snapshot shows a push that is not finished, the thread finishes it and begins again with another
//! snapshot. Else it tries its own step. So pushes read the line that pops write, and the other way
//! round: that is the cost. It is here because the 1997 comparison has it.
//!
//! | snapshot | the queue | a push | a pop |
//! | --- | --- | --- | --- |
//! | a node behind `tail` | has an unfinished push | moves `tail`, begins again | the same |
//! | nothing behind, `head` and `tail` the same | is empty | links its node | returns nothing |
//! | nothing behind, different | has values | links its node | moves `head` |
//!
//! The dummy node is Valois's (1994). The 1994 paper has none, and so a protocol of its own for the
//! last value. That protocol is left out here, and with it some of the paper's cost.
//!
//! Layout and invariants are those of the [`list`](super::list). The second says that `tail` is
//! never before `head`. It holds because `head` is moved only after a snapshot in which `tail` was
//! not behind, and named another node.
//!
//! # Orderings
//!
//! - **Link, exchange `next`**: Release. The partner is the Acquire load of `next`: the value and
//!   its slot.
//! - **Move `tail`, move `head`**: Release. The partners are the Acquire loads of the snapshot:
//!   what was known when they were moved.
//! - **Look again at the ends**: Relaxed, without a partner. The looks come after the Acquire loads
//!   of what has happened to the nodes.
//!
//! Source: Prakash, Lee and Johnson, "A nonblocking algorithm for shared queues using
//! compare-and-swap", IEEE Transactions on Computers 43(5), 1994, as Michael and Scott 1997
//! describe it, section 4.1.

use stanchion_machine::atomic::Ordering;
use stanchion_spin::Backoff;

use super::away;
use super::list::List;
use crate::Progress;
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// A queue of `T` that goes on when a thread stops, with operations that look at both ends and with
/// memory `M`: [`Hazard`], or [`Counted`](crate::memory::Counted) as in the paper.
///
/// - Progress: [`LockFree`](Progress::LockFree). A thread that stops stops no other thread, as far
///   as the allocator does not where it is asked.
/// - Cost: that of [`MichaelScottQueue`](super::MichaelScottQueue), which is to be preferred, and
///   the other end's line for each operation.
/// - Memory: see [`memory`](crate::memory).
///
/// ```
/// use stanchion_lockfree::queue::PrakashLeeJohnsonQueue;
///
/// let queue = PrakashLeeJohnsonQueue::new();
/// queue.push("first");
/// queue.push("second");
/// assert_eq!(queue.pop(), Some("first"));
/// assert!(queue.into_iter().eq(["second"]));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::PrakashLeeJohnsonQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct PrakashLeeJohnsonQueue<T, M: Memory = Hazard> {
    /// The list of the values, with both ends.
    pub(super) list: List<T, M>,
}

/// The hazard for the node at the head.
const HEAD: usize = 0;
/// The hazard for the node at the tail.
const TAIL: usize = 1;
/// The hazard for the node behind the head's.
const BEHIND: usize = 2;

/// The queue at one moment, when no push was unfinished.
struct Snapshot<P> {
    /// The dummy node.
    head: P,
    /// The last node.
    tail: P,
    /// The pointer that the tail's `next` held: null.
    behind: P,
}

impl<T> PrakashLeeJohnsonQueue<T> {
    /// Returns an empty queue, with its dummy node. Its memory is [`Hazard`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_memory(Hazard)
    }
}

impl<T, M: Memory> PrakashLeeJohnsonQueue<T, M> {
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

    /// Returns both ends and the node behind the tail, as they were at one moment. Finishes the
    /// pushes that it finds unfinished, and stays away for a while when another thread was quicker.
    fn snapshot(
        &self,
        operation: &<M::Store<T> as Store<T>>::Operation<'_>,
        backoff: &mut Backoff,
    ) -> Snapshot<<M::Store<T> as Store<T>>::Pointer> {
        loop {
            let head = operation.protect(HEAD, &self.list.head);
            let tail = operation.protect(TAIL, &self.list.tail);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(tail) };
            // Acquire: pairs with the Release of the push that linked it, because `tail` may be
            // moved to it.
            let behind = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of everything that has happened to the node at the tail.
            let same_head = self.list.head.load(Ordering::Relaxed) == head;
            // Relaxed: likewise.
            if !same_head || self.list.tail.load(Ordering::Relaxed) != tail {
                backoff.spin();
                continue;
            }
            if behind.is_null() {
                return Snapshot { head, tail, behind };
            }
            self.list.move_tail(tail, behind);
        }
    }

    /// Puts `value` at the end.
    pub fn push(&self, value: T) {
        let operation = self.list.store.enter();
        let node = operation.allocate(value);
        let mut backoff = away();
        loop {
            let Snapshot { tail, behind, .. } = self.snapshot(&operation, &mut backoff);
            // SAFETY: protected since the snapshot, and not null.
            let link = unsafe { operation.next(tail) };
            // Release: pairs with the Acquire of a thread that finds the node. Relaxed: the pointer
            // that another thread has put there is read anew.
            if link.compare_exchange(behind, node, Ordering::Release, Ordering::Relaxed) {
                self.list.move_tail(tail, node);
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
            let Snapshot { head, tail, .. } = self.snapshot(&operation, &mut backoff);
            if head.names_same(tail) {
                return None;
            }
            // SAFETY: protected since the snapshot, and not null.
            let link = unsafe { operation.next(head) };
            // Acquire: pairs with the Release of the push that linked it.
            let next = link.load(Ordering::Acquire);
            operation.announce(BEHIND, next);
            // Relaxed: after an Acquire of everything that has happened to the node.
            if self.list.head.load(Ordering::Relaxed) != head {
                backoff.spin();
                continue;
            }
            // SAFETY: announced, and after that `head` was still before it. So it had not been
            // retired (Invariant 4). As `tail` was further than `head`, it is not null (Invariant
            // 1).
            let slot = unsafe { operation.slot(next) };
            // Release: pairs with the Acquire of the next thread to find this head. Relaxed: read
            // anew.
            if self.list.head.compare_exchange(head, next, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant
                // 3).
                let value = unsafe { operation.take(slot) };
                // SAFETY: this thread moved `head` past it, and `tail` has passed (Invariant 4).
                // The slot is empty.
                unsafe { operation.retire(head, slot) };
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Returns whether there was nothing in it at some moment during the call. Finishes the pushes
    /// that it finds unfinished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.list.store.enter();
        let Snapshot { head, tail, .. } = self.snapshot(&operation, &mut away());
        head.names_same(tail)
    }
}

forward! {
    impl[T, M: Memory] ConcurrentQueue for PrakashLeeJohnsonQueue<T, M>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T, M: Memory] PrakashLeeJohnsonQueue<T, M>;
    value: T;
    new: PrakashLeeJohnsonQueue::with_memory(M::default());
}

exclusive! {
    impl[T, M: Memory] PrakashLeeJohnsonQueue<T, M>;
    value: T;
    push_mut: |queue, value| queue.list.push_mut(value);
    pop_mut: |queue| queue.list.pop_mut();
    peek_mut: |queue| queue.list.peek_mut();
    cost: "Needs no exchange of its own, and announces nothing; the memory's cost stays.";
}
