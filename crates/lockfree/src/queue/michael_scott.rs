//! Michael and Scott's queue without locks: a list with a dummy node, and a tail that may be one
//! node late.
//!
//! A push takes two steps, to link its node behind the last one and to move `tail` to it. A thread
//! may stop between the two; so whoever finds `tail` late moves it, and nobody waits. Why not
//! fetch-and-add on a ring, which is faster: a thread that stops between claiming a place and
//! filling it makes the others wait, and to avoid that takes the machinery of [`queue`](super)'s
//! rings. Here every state in between can be finished by anybody in one step.
//!
//! Layout and invariants are those of the [`list`](super::list); this is how they are kept.
//!
//! # The looks again
//!
//! | operation | after reading | looks again whether | because otherwise |
//! | --- | --- | --- | --- |
//! | push | `tail`, then its node's `next` | `tail` is the same | the node may be in use elsewhere, and its `next` null for another reason |
//! | pop | `head`, then `tail` and its node's `next` | `head` is the same | the same; `tail` may name the node in a later use, and must not be moved to `next`; and `next` may have been retired before it was announced |
//!
//! Both changes of a link are compare-exchanges from what was read, so a look that was right and is
//! right no more does no harm. A look that finds a change is a race lost, as a failed exchange is:
//! the thread stays away for a while ([`away`]).
//!
//! # Why a pop knows that `tail` has passed
//!
//! It reads `tail` after `head`. Whoever moved `head` to the node had seen `tail` at it or further
//! (Invariant 2) and released that with `head`; so what is read is not older, and if it does not
//! name `head`'s node, it is past it, and stays so.
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
//! Source: Michael and Scott, "Simple, fast, and practical non-blocking and blocking concurrent
//! queue algorithms", PODC 1996, figure 1; with hazard pointers Michael 2004, figure 6. Where the
//! value is read late there, it is found through a slot here, see [`memory`](crate::memory).

use machine::atomic::Ordering;

use super::list::List;
use super::{ConcurrentQueue, Full, away};
use crate::Progress;
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// A queue of `T` that no stopped thread stops, in a list with memory `M`: [`Hazard`], or
/// [`Counted`](crate::memory::Counted) as in the paper.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree): a thread that stops stops nobody, as far as the allocator is where it is asked |
/// | cost | a push changes two links, a pop one; each is a compare-exchange, and the memory's come on top if it has any |
/// | order | by the moment of linking; each producer's values stay in order |
/// | memory | see [`memory`](crate::memory): nodes are used again, and a stopped thread keeps back a bounded number |
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
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// shared(&stanchion_lockfree::queue::MichaelScottQueue::<std::rc::Rc<()>>::new());
/// ```
pub struct MichaelScottQueue<T, M: Memory = Hazard> {
    pub(super) list: List<T, M>,
}

/// The hazards of an operation: what it looks at from `head` or `tail`…
const END: usize = 0;
/// …and the one behind it.
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
            // Acquire: pairs with the Release of the push that linked it, for `tail` may be moved
            // to it.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.list.tail.load(Ordering::Relaxed) != last {
                backoff.spin();
                continue;
            }
            if !next.is_null() {
                self.list.move_tail(last, next);
                continue;
            }
            // Release: pairs with the Acquire of whoever finds the node. Relaxed: the pointer that
            // another has put there is read anew.
            if link.compare_exchange(next, node, Ordering::Release, Ordering::Relaxed) {
                self.list.move_tail(last, node);
                return;
            }
            backoff.spin();
        }
    }

    /// Takes the oldest; `None` if there was nothing at some moment during the call.
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
            // Relaxed: after an Acquire of whatever has happened to the node.
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
            // SAFETY: announced, and after that `head` was still before it: it had not been retired
            // (Invariant 4).
            let slot = unsafe { operation.slot(next) };
            // Release: pairs with the Acquire of the next one to find this head. Relaxed: read
            // anew.
            if self.list.head.compare_exchange(dummy, next, Ordering::Release, Ordering::Relaxed) {
                // SAFETY: this thread moved `head` to the node, so the value is its own (Invariant
                // 3).
                let value = unsafe { operation.take(slot) };
                // SAFETY: this thread moved `head` past it, and `tail` has passed (Invariant 4);
                // the slot is empty.
                unsafe { operation.retire(dummy, slot) };
                return Some(value);
            }
            backoff.spin();
        }
    }

    /// Whether there was nothing in it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.list.store.enter();
        loop {
            let dummy = operation.protect(END, &self.list.head);
            // SAFETY: protected, and not null: there always is a dummy.
            let link = unsafe { operation.next(dummy) };
            // Acquire: so that the look at `head` is not older.
            let next = link.load(Ordering::Acquire);
            // Relaxed: after an Acquire of whatever has happened to the node.
            if self.list.head.load(Ordering::Relaxed) == dummy {
                return next.is_null();
            }
        }
    }
}

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
    take_mut: |queue| queue.pop_mut();
    put: |queue, value| queue.push(value);
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
