//! Treiber's stack: a list whose first node is exchanged.
//!
//! Why not the obvious thing, an array and an index: two words would have to change at once. In a
//! list one word says it all.
//!
//! ```text
//! push                                    pop
//! ----                                    ---
//! top = the top                           protect top; empty if it is null
//! node.next = top                         next = top.next
//! exchange the top: top → node            exchange the top: top → next
//!          failed: wait, again                     failed: wait, again
//!                                         take top's value; retire top
//! ```
//!
//! What `top.next` says is what was under `top` when it was pushed. If the exchange finds `top`
//! still in place, it is what is under it now: a node that was taken out cannot be on top again as
//! the same pointer, which is what [`memory`](crate::memory) is for.
//!
//! # Invariants
//!
//! 1. The nodes that can be reached from `top` are linked, each has a value, and each is reached
//!    once.
//! 2. The thread whose exchange takes a node out owns its value and the node.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | push: exchange `top` | Release | the Acquire load of `protect`, and that of `pop_all`'s exchange: value and `next` are there |
//! | pop: exchange `top` | Release | the Acquire load of a look or a pop that finds nothing: what the popping thread did before is seen. The node under it was published by its push, and an exchange passes that on |
//! | pop all: exchange `top` | AcqRel | the Release of the pushes of all its nodes: every write of `top` since is an exchange. The Acquire load of a look, as of a pop |
//! | is it empty: load `top` | Acquire | the Release of the exchange that left it so |
//! | `next` | Relaxed | nobody: comes with the node |
//!
//! Source: R. Kent Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986;
//! Michael and Scott 1997, section 4.2.

use core::fmt;

use crossbeam_utils::CachePadded;
use machine::atomic::Ordering;
use stanchion_spin::Backoff;

use super::{ConcurrentStack, LinkIn, OperationIn, PointerIn};
use crate::Progress;
use crate::iter::{drop_remaining, drop_rest};
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// Treiber's stack, whose nodes `M` takes care of.
///
/// | | |
/// | --- | --- |
/// | progress | [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked |
/// | cost of a push and a pop | with [`Hazard`] two compare-exchanges; with [`Counted`](crate::memory::Counted) four, two of them for the pool |
/// | memory | a node for each value; see [`memory`](crate::memory) for when it comes back |
/// | under contention | all threads want the one word; who fails stays away for up to 30 µs ([`Backoff`]) |
///
/// ```
/// use stanchion_lockfree::stack::TreiberStack;
///
/// static STACK: TreiberStack<String> = TreiberStack::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| STACK.push("one".to_owned()));
///     scope.spawn(|| STACK.push("another".to_owned()));
/// });
/// assert_eq!(STACK.pop_all().count(), 2);
/// assert!(STACK.is_empty());
/// ```
///
/// With nodes from a pool, and no allocation as long as there are no more than 100 at a time:
///
/// ```
/// use stanchion_lockfree::{memory::Counted, stack::TreiberStack};
///
/// let stack = TreiberStack::with_capacity_and_memory(100, Counted);
/// stack.push(1);
/// stack.push(2);
/// assert_eq!(stack.pop(), Some(2));
/// ```
///
/// What is not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::TreiberStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct TreiberStack<T, M: Memory = Hazard> {
    top: CachePadded<LinkIn<T, M>>,
    store: M::Store<T>,
}

/// Another thread was quicker.
pub(super) struct Lost;

// SAFETY: a value belongs to the structure or to one thread (Invariant 2), and goes from one to the
// other, hence `T: Send`.
unsafe impl<T: Send, M: Memory> Send for TreiberStack<T, M> {}
// SAFETY: as above; nobody gets a shared reference to a value.
unsafe impl<T: Send, M: Memory> Sync for TreiberStack<T, M> {}

impl<T> TreiberStack<T> {
    /// Returns an empty stack, which has not allocated. Its memory is [`Hazard`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_memory(Hazard)
    }
}

impl<T, M: Memory> TreiberStack<T, M> {
    /// Returns an empty stack, which has not allocated, with the memory of the caller's choice.
    #[must_use]
    pub const fn with_memory(_memory: M) -> Self {
        Self { top: CachePadded::new(Link::NULL), store: Store::NEW }
    }

    /// Returns an empty stack with the memory of the caller's choice. If that can set room aside,
    /// as [`Counted`](crate::memory::Counted) can, then there is room for `capacity` values. It
    /// grows beyond.
    #[must_use]
    pub fn with_capacity_and_memory(capacity: usize, _memory: M) -> Self {
        Self { top: CachePadded::new(Link::NULL), store: Store::with_capacity(capacity) }
    }

    /// Puts `value` on top.
    pub fn push(&self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        let mut backoff = Backoff::new();
        // SAFETY: the node is owned until the push succeeds.
        while !unsafe { self.try_push(&operation, node) } {
            backoff.spin();
        }
    }

    /// Takes what is on top.
    pub fn pop(&self) -> Option<T> {
        let operation = self.store.enter();
        let mut backoff = Backoff::new();
        loop {
            if let Ok(value) = self.try_pop(&operation) {
                return value;
            }
            backoff.spin();
        }
    }

    /// Begins an operation that tries more than once.
    #[inline]
    pub(super) fn enter(&self) -> OperationIn<'_, T, M> {
        self.store.enter()
    }

    /// One try; fails if another thread was quicker.
    ///
    /// # Safety
    ///
    /// The node is owned, and has a value. It is not owned any more if this succeeds.
    #[inline]
    pub(super) unsafe fn try_push(
        &self,
        operation: &OperationIn<'_, T, M>,
        node: PointerIn<T, M>,
    ) -> bool {
        // SAFETY: the node is owned.
        let next = unsafe { operation.next(node) };
        // Relaxed: it is only compared; the exchange passes on what its push published.
        let top = self.top.load(Ordering::Relaxed);
        // Relaxed: the exchange publishes it.
        next.store(top, Ordering::Relaxed);
        // Release: pairs with the Acquire of who takes the node. Relaxed: the next try loads again.
        self.top.compare_exchange(top, node, Ordering::Release, Ordering::Relaxed)
    }

    /// One try; fails if another thread was quicker. `Ok(None)` if there is nothing.
    #[inline]
    pub(super) fn try_pop(&self, operation: &OperationIn<'_, T, M>) -> Result<Option<T>, Lost> {
        let top = operation.protect(0, &self.top);
        if top.is_null() {
            return Ok(None);
        }
        // SAFETY: the node is protected.
        let next = unsafe { operation.next(top) };
        // Relaxed: the node was acquired, and `next` came with it; if it has changed hands since,
        // the exchange fails.
        let next = next.load(Ordering::Relaxed);
        // SAFETY: the node is protected.
        let slot = unsafe { operation.slot(top) };
        // Release: pairs with the Acquire of a thread that finds the stack empty. `protect` has
        // acquired the node. Relaxed: the next try loads again.
        if !self.top.compare_exchange(top, next, Ordering::Release, Ordering::Relaxed) {
            return Err(Lost);
        }
        // SAFETY: the exchange gave this thread node and value (Invariant 2).
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above; `top` was the only way to it (Invariant 1).
        unsafe { operation.retire(top, slot) };
        Ok(Some(value))
    }

    /// Takes all in one step: what others push from here on is not among it.
    ///
    /// Values that are not asked for are dropped with the iterator.
    pub fn pop_all(&self) -> PopAll<'_, T, M> {
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: it is only compared.
            let top = self.top.load(Ordering::Relaxed);
            // Acquire: pairs with the Release of the pushes of all its nodes. Release: with the
            // Acquire of a thread that finds the stack empty. Relaxed: the loop loads again.
            let null = <M::Store<T> as Store<T>>::NULL;
            if top.is_null()
                || self.top.compare_exchange(top, null, Ordering::AcqRel, Ordering::Relaxed)
            {
                return PopAll { stack: self, first: top };
            }
            backoff.spin();
        }
    }

    /// Whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release of the push or pop that left it so. What its thread did
        // before is seen after this look, also on another stack.
        self.top.load(Ordering::Acquire).is_null()
    }
}

impl<T, M: Memory> Drop for TreiberStack<T, M> {
    fn drop(&mut self) {
        drop_rest(self);
    }
}

impl<T, M: Memory> ConcurrentStack for TreiberStack<T, M> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    fn push(&self, value: T) {
        self.push(value);
    }

    fn pop(&self) -> Option<T> {
        self.pop()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

conveniences! {
    impl[T, M: Memory] TreiberStack<T, M>;
    item: T;
    take: |stack| stack.pop();
    take_mut: |stack| stack.pop_mut();
    put: |stack, value| stack.push(value);
    new: TreiberStack::with_memory(M::default());
    debug: |stack| is_empty = stack.is_empty();
}

exclusive! {
    impl[T, M: Memory] TreiberStack<T, M>;
    value: T;
    push_mut: |stack, value| stack.push_alone(value);
    pop_mut: |stack| stack.pop_alone();
    peek_mut: |stack| stack.peek_alone();
    cost: "Needs no exchange of its own, and announces nothing; the memory's cost stays.";
}

impl<T, M: Memory> TreiberStack<T, M> {
    fn push_alone(&mut self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        // SAFETY: the node is owned.
        let next = unsafe { operation.next(node) };
        // Relaxed, all: no other thread has the stack.
        next.store(self.top.load(Ordering::Relaxed), Ordering::Relaxed);
        self.top.store(node, Ordering::Relaxed);
    }

    fn pop_alone(&mut self) -> Option<T> {
        let operation = self.store.enter();
        // Relaxed, all: no other thread has the stack.
        let top = self.top.load(Ordering::Relaxed);
        if top.is_null() {
            return None;
        }
        // SAFETY: linked, and so no other thread could retire it.
        let next = unsafe { operation.next(top) };
        self.top.store(next.load(Ordering::Relaxed), Ordering::Relaxed);
        // SAFETY: as above.
        let slot = unsafe { operation.slot(top) };
        // SAFETY: the node was taken off by this thread (Invariant 2).
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above; no other thread can see it.
        unsafe { operation.discard(top) };
        Some(value)
    }

    fn peek_alone(&mut self) -> Option<&mut T> {
        let operation = self.store.enter();
        // Relaxed: no other thread has the stack.
        let top = self.top.load(Ordering::Relaxed);
        if top.is_null() {
            return None;
        }
        // SAFETY: linked, and so no other thread could retire it.
        let slot = unsafe { operation.slot(top) };
        // SAFETY: as above, and no other thread has the stack.
        let value = unsafe { operation.value(slot) };
        // SAFETY: a linked node has a value (Invariant 1), and nothing else touches it while the
        // stack is borrowed.
        Some(unsafe { &mut *value })
    }
}

/// What was on a [`TreiberStack`] at one moment, the top first.
pub struct PopAll<'s, T, M: Memory> {
    stack: &'s TreiberStack<T, M>,
    /// The chain, which belongs to the iterator.
    first: PointerIn<T, M>,
}

// SAFETY: it owns the values of its chain, and what it shares with others is the stack.
unsafe impl<T: Send, M: Memory> Send for PopAll<'_, T, M> {}
// SAFETY: it can only be used through `&mut`.
unsafe impl<T: Send, M: Memory> Sync for PopAll<'_, T, M> {}

impl<T, M: Memory> Iterator for PopAll<'_, T, M> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let node = self.first;
        if node.is_null() {
            return None;
        }
        let operation = self.stack.store.enter();
        // SAFETY: the chain is owned since its first node was exchanged for null (Invariant 2).
        let next = unsafe { operation.next(node) };
        // Relaxed: that exchange has acquired the whole chain.
        self.first = next.load(Ordering::Relaxed);
        // SAFETY: the node is owned.
        let slot = unsafe { operation.slot(node) };
        // SAFETY: the node is owned, with its value, and leaves the chain.
        let value = unsafe { operation.take(slot) };
        // SAFETY: as above.
        unsafe { operation.retire(node, slot) };
        Some(value)
    }
}

impl<T, M: Memory> core::iter::FusedIterator for PopAll<'_, T, M> {}

impl<T, M: Memory> Drop for PopAll<'_, T, M> {
    fn drop(&mut self) {
        drop_remaining(self);
    }
}

impl<T, M: Memory> fmt::Debug for PopAll<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopAll").field("is_empty", &self.first.is_null()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Counted;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(TreiberStack<u32>: Send, Sync);
    assert_impl_all!(TreiberStack<u32, Counted>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(TreiberStack<std::rc::Rc<u32>>: Send, Sync);
    assert_not_impl_any!(TreiberStack<std::rc::Rc<u32>, Counted>: Send, Sync);
    assert_not_impl_any!(PopAll<'static, std::rc::Rc<u32>, Hazard>: Send, Sync);

    fn last_in_first_out<M: Memory>() {
        let mut stack = TreiberStack::<Box<u32>, M>::default();
        stack.extend([1, 2].map(Box::new));
        (&stack).extend([Box::new(3)]);
        assert_eq!(stack.pop().as_deref(), Some(&3));
        assert_eq!(format!("{stack:?}"), "TreiberStack { is_empty: false, .. }");
        assert!(stack.pop_all().map(|value| *value).eq([2, 1]));
        assert!(stack.is_empty());
        assert_eq!(stack.pop(), None);
        assert_eq!(stack.pop_all().count(), 0);
        let stack: TreiberStack<_, M> = (0..10).collect();
        let mut all = stack.pop_all();
        assert_eq!(all.next(), Some(9));
        stack.push(11);
        assert_eq!(all.next(), Some(8));
        drop(all);
        assert!(stack.into_iter().eq([11]));
    }

    #[test]
    fn last_in_first_out_with_hazards() {
        last_in_first_out::<Hazard>();
    }

    #[test]
    fn last_in_first_out_with_counts() {
        last_in_first_out::<Counted>();
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        drop((0..1_000_000).map(Box::new).collect::<TreiberStack<_>>());
        drop((0..1_000_000).map(Box::new).collect::<TreiberStack<_, Counted>>());
    }
}
