//! Treiber's stack: a list, of which the first node is exchanged.
//!
//! Why not the obvious thing, an array and an index: two words would have to change at once. In a
//! list one word tells everything.
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
//! `top.next` names the node that was under `top` when it was pushed. If the exchange finds `top`
//! still in place, that node is under it now. A node that was taken out cannot be on top again as
//! the same pointer: [`memory`](crate::memory) prevents that.
//!
//! # Invariants
//!
//! 1. The nodes that can be reached from `top` are linked, each has a value, and each is reached
//!    once.
//! 2. A thread that takes a node out by its exchange owns its value and the node.
//!
//! # Orderings
//!
//! - **Push: exchange `top`**: Release. The partners are the Acquire load of `protect`, and that of
//!   `pop_all`'s exchange: value and `next` are there.
//! - **Pop: exchange `top`**: Release. The partner is the Acquire load of a look or a pop that
//!   finds nothing: it sees what the popping thread did before. The node under it was published by
//!   its push, and an exchange passes that on.
//! - **Pop all: exchange `top`**: AcqRel. The partner is the Release of the pushes of all its
//!   nodes: every write of `top` since is an exchange. It also has the Acquire load of a look as a
//!   partner, as a pop has.
//! - **Is it empty: load `top`**: Acquire. The partner is the Release of the exchange that left it
//!   so.
//! - **`next`**: Relaxed, without a partner. It comes with the node.
//!
//! Source: R. Kent Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986;
//! Michael and Scott 1997, section 4.2.

use core::fmt;

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::Ordering;
use stanchion_spin::Backoff;

use super::{LinkIn, OperationIn, PointerIn};
use crate::Progress;
use crate::iter::{drop_remaining, drop_rest};
use crate::memory::{Hazard, Link, Memory, Operation, Pointer, Store};

/// Treiber's stack, with nodes in memory `M`.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked.
/// - Cost of a push and a pop: with [`Hazard`] two compare-exchanges. With
///   [`Counted`](crate::memory::Counted) four, two of them for the pool.
/// - Memory: a node for each value. See [`memory`](crate::memory) for when it comes back.
/// - Under contention: all threads want the one word. A thread that fails stays away for up to 30
///   µs ([`Backoff`]).
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
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::TreiberStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct TreiberStack<T, M: Memory = Hazard> {
    /// The first node, or null. Written by every thread that pushes or pops.
    top: CachePadded<LinkIn<T, M>>,
    /// The memory of the nodes.
    store: M::Store<T>,
}

/// An error: another thread was quicker.
pub(super) struct Lost;

// SAFETY: a value belongs to the structure or to one thread (Invariant 2), and goes from one to the
// other, hence `T: Send`.
unsafe impl<T: Send, M: Memory> Send for TreiberStack<T, M> {}
// SAFETY: as above; no thread gets a shared reference to a value.
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

    /// Takes the value on top.
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

    /// Makes one try to push. Fails if another thread was quicker.
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
        // Relaxed: it is only compared. The exchange passes on everything that the push of this
        // node published.
        let top = self.top.load(Ordering::Relaxed);
        // Relaxed: the exchange publishes it.
        next.store(top, Ordering::Relaxed);
        // Release: pairs with the Acquire of the thread that takes the node. Relaxed: the next try
        // loads again.
        self.top.compare_exchange(top, node, Ordering::Release, Ordering::Relaxed)
    }

    /// Makes one try to pop. Fails if another thread was quicker. Returns `Ok(None)` if there is
    /// nothing.
    #[inline]
    pub(super) fn try_pop(&self, operation: &OperationIn<'_, T, M>) -> Result<Option<T>, Lost> {
        let top = operation.protect(0, &self.top);
        if top.is_null() {
            return Ok(None);
        }
        // SAFETY: the node is protected.
        let next = unsafe { operation.next(top) };
        // Relaxed: the node was acquired, and `next` came with it. If the node has changed hands
        // since, the exchange fails.
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

    /// Takes all values in one step. Values that other threads push from here on are not among
    /// them.
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

    /// Returns whether there is nothing on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release of the push or pop that left it so. The caller then sees
        // everything that this thread did before, also on another stack.
        self.top.load(Ordering::Acquire).is_null()
    }
}

impl<T, M: Memory> Drop for TreiberStack<T, M> {
    fn drop(&mut self) {
        drop_rest(self);
    }
}

forward! {
    impl[T, M: Memory] ConcurrentStack for TreiberStack<T, M>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T, M: Memory] TreiberStack<T, M>;
    value: T;
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

/// The values that were on a [`TreiberStack`] at one moment, the top first.
pub struct PopAll<'s, T, M: Memory> {
    /// The stack, for its memory.
    stack: &'s TreiberStack<T, M>,
    /// The rest of the chain, which belongs to the iterator.
    first: PointerIn<T, M>,
}

// SAFETY: it owns the values of its chain. It shares only the stack with other threads.
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
