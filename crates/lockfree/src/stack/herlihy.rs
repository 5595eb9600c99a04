//! A stack made by Herlihy's methodology, without the copying that is not needed.
//!
//! The methodology makes any sequential object non-blocking. A thread copies the object into a
//! block of its own and works on the copy. Then it makes one shared pointer point to its own block,
//! if that pointer has not moved from the copied block meanwhile. A stack is a list. An old version
//! and a new one may share all of it except for the top, so the top alone is copied.
//!
//! ```text
//! version ──► block: top ──► node ──► node ──► null
//!                              ▲
//! own block: top ──► new node ─┘        a push, before its exchange of `version`
//! ```
//!
//! Why not this one: it does with two words, the version and the top, what
//! [Treiber's](super::TreiberStack) does with one. It is here because the paper measures it. It
//! shows the cost of a general method beside an algorithm made for the purpose, when everything
//! that can be saved has been saved.
//!
//! The paper's load-linked and store-conditional are a load and a compare-exchange here, of a
//! pointer that [`memory`](crate::memory) keeps from coming back. They also do the work of
//! Herlihy's two check counters: if a block was used again while it was read, `version` does not
//! point to it any more. A block is a node without a value. Its `next` is the copy of the top. The
//! memory keeps a spare block for each thread, as the methodology has it: the block that a thread
//! took from `version` by its exchange is the one for its next operation.
//!
//! # Invariants
//!
//! 1. `version` is null, which is an empty stack, or a block that no thread writes any more. Blocks
//!    are never on the list.
//! 2. A thread that moves `version` by its exchange owns the block that it was. A pop's thread also
//!    owns the node that is not reached any more, with its value.
//!
//! # Orderings
//!
//! - **Push, pop: exchange `version`**: Release. The partner is the Acquire load of
//!   [`protect`](Operation::protect): block and list are there.
//! - **Write the top of an own block**: Release. The partner is the Acquire load of a thread that
//!   reads the block late: it sees that `version` has moved.
//! - **Read the top of a block**: Acquire. The partner is the Release above.
//! - **Write `next` of an own node**: Release, as for the top of a block: the node may have been a
//!   block.
//! - **Read `next` of a node**: Relaxed, without a partner. It comes with the version.
//!
//! Source: Maurice Herlihy, "A Methodology for Implementing Highly Concurrent Data Objects", ACM
//! TOPLAS 15(5), 1993; Michael and Scott 1997, sections 3 and 4.2.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::Ordering;
use stanchion_spin::Backoff;

use super::{LinkIn, OperationIn, PointerIn};
use crate::Progress;
use crate::iter::drop_rest;
use crate::memory::{Counted, Link, Memory, Operation, Pointer, Store};

/// Herlihy's stack, with nodes and blocks in memory `M`.
///
/// - Progress: [`LockFree`](Progress::LockFree), as far as the allocator is where it is asked.
/// - Cost of a push and a pop: two compare-exchanges, and two nodes more than
///   [`TreiberStack`](super::TreiberStack) from those that the thread has kept.
/// - Memory: a node for each value, and a block for each thread.
/// - Under contention: a thread that fails stays away for longer and longer ([`Backoff`]). Without
///   that the method loses to a lock.
///
/// ```
/// use stanchion_lockfree::stack::HerlihyStack;
///
/// static STACK: HerlihyStack<&str> = HerlihyStack::new();
/// STACK.push("below");
/// STACK.push("on top");
/// assert_eq!(STACK.pop(), Some("on top"));
/// assert_eq!(STACK.pop(), Some("below"));
/// assert_eq!(STACK.pop(), None);
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::HerlihyStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct HerlihyStack<T, M: Memory = Counted> {
    /// The block of the current version, or null. Written by the thread that makes a new version.
    version: CachePadded<LinkIn<T, M>>,
    /// The memory of nodes and blocks.
    store: M::Store<T>,
}

// SAFETY: a value belongs to the structure or to one thread (Invariant 2), and goes from one to the
// other, hence `T: Send`.
unsafe impl<T: Send, M: Memory> Send for HerlihyStack<T, M> {}
// SAFETY: as above; no thread gets a shared reference to a value.
unsafe impl<T: Send, M: Memory> Sync for HerlihyStack<T, M> {}

impl<T> HerlihyStack<T> {
    /// Returns an empty stack, which has not allocated. Its memory is [`Counted`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_memory(Counted)
    }

    /// Returns an empty stack with room for `capacity` values and blocks. It grows beyond.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_memory(capacity, Counted)
    }
}

impl<T, M: Memory> HerlihyStack<T, M> {
    /// Returns an empty stack, which has not allocated, with the memory of the caller's choice.
    #[must_use]
    pub const fn with_memory(_memory: M) -> Self {
        Self { version: CachePadded::new(Link::NULL), store: Store::NEW }
    }

    /// Returns an empty stack with the memory of the caller's choice. If that can set room aside,
    /// as [`Counted`](crate::memory::Counted) can, then there is room for `capacity` values and
    /// blocks. It grows beyond.
    #[must_use]
    pub fn with_capacity_and_memory(capacity: usize, _memory: M) -> Self {
        Self { version: CachePadded::new(Link::NULL), store: Store::with_capacity(capacity) }
    }

    /// Puts `value` on top.
    pub fn push(&self, value: T) {
        let operation = self.store.enter();
        let node = operation.allocate(value);
        let block = operation.allocate_empty();
        // SAFETY: node and block are owned until they are published.
        let next = unsafe { operation.next(node) };
        // SAFETY: as above.
        let copy = unsafe { operation.next(block) };
        // Release: for a thread that has read the node that is a block now, late.
        copy.store(node, Ordering::Release);
        let mut backoff = Backoff::new();
        loop {
            let (version, top) = self.look(&operation);
            // Release: for a thread that has read the block that is a node now, late.
            next.store(top, Ordering::Release);
            if self.swing(&operation, version, block) {
                return;
            }
            backoff.spin();
        }
    }

    /// Takes the value on top.
    pub fn pop(&self) -> Option<T> {
        let operation = self.store.enter();
        let mut block = None;
        let mut backoff = Backoff::new();
        loop {
            let (version, top) = self.look(&operation);
            operation.announce(1, top);
            // Relaxed: after the announcement. If the version has not moved, the top has not been
            // retired.
            if self.version.load(Ordering::Relaxed) == version {
                if top.is_null() {
                    if let Some(block) = block {
                        // SAFETY: the block is owned, and no other thread has seen it.
                        unsafe { operation.discard(block) };
                    }
                    return None;
                }
                // SAFETY: the node is protected, as its version was in place after the
                // announcement.
                let next = unsafe { operation.next(top) };
                // Relaxed: it came with the version. If the node has changed hands since, the
                // exchange fails.
                let next = next.load(Ordering::Relaxed);
                // SAFETY: the node is protected.
                let slot = unsafe { operation.slot(top) };
                let block = *block.get_or_insert_with(|| operation.allocate_empty());
                // SAFETY: the block is owned until it is published.
                let copy = unsafe { operation.next(block) };
                // Release: pairs with the Acquire of a thread that has read this block in its last
                // use, late.
                copy.store(next, Ordering::Release);
                if self.swing(&operation, version, block) {
                    // SAFETY: the exchange gave this thread node and value (Invariant 2).
                    let value = unsafe { operation.take(slot) };
                    // SAFETY: as above; only the version that is gone led to it.
                    unsafe { operation.retire(top, slot) };
                    return Some(value);
                }
            }
            backoff.spin();
        }
    }

    /// Returns the version, protected, and its top. The top means something if the version is still
    /// the same later.
    #[inline]
    fn look(&self, operation: &OperationIn<'_, T, M>) -> (PointerIn<T, M>, PointerIn<T, M>) {
        let version = operation.protect(0, &self.version);
        if version.is_null() {
            return (version, <M::Store<T> as Store<T>>::NULL);
        }
        // SAFETY: the block is protected.
        let copy = unsafe { operation.next(version) };
        // Acquire: pairs with the Release of the thread that writes the block in its next use.
        // `version` is then seen to have moved, and the node that it points to is there.
        (version, copy.load(Ordering::Acquire))
    }

    /// Makes `block` the version, if `version` still is it. Gives the old version back then.
    #[inline]
    fn swing(
        &self,
        operation: &OperationIn<'_, T, M>,
        version: PointerIn<T, M>,
        block: PointerIn<T, M>,
    ) -> bool {
        // Release: pairs with the Acquire of `protect`. Relaxed: the caller looks again.
        if !self.version.compare_exchange(version, block, Ordering::Release, Ordering::Relaxed) {
            return false;
        }
        if !version.is_null() {
            // SAFETY: the block is protected, or nodes are never freed.
            let slot = unsafe { operation.slot(version) };
            // SAFETY: the exchange gave this thread the block (Invariant 2). Its storage has been
            // empty all the time.
            unsafe { operation.retire(version, slot) };
        }
        true
    }

    /// Returns whether there was nothing on it at some moment during the call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let operation = self.store.enter();
        let mut backoff = Backoff::new();
        loop {
            let (version, top) = self.look(&operation);
            // Relaxed: `look` has acquired everything that a later user of the block would have
            // done after `version` moved.
            if self.version.load(Ordering::Relaxed) == version {
                return top.is_null();
            }
            backoff.spin();
        }
    }
}

impl<T, M: Memory> Drop for HerlihyStack<T, M> {
    fn drop(&mut self) {
        /// Gives the last block back, also if a value's destructor panics.
        struct LastBlock<'s, T, M: Memory>(&'s HerlihyStack<T, M>);

        impl<T, M: Memory> Drop for LastBlock<'_, T, M> {
            fn drop(&mut self) {
                // Relaxed: the owner is alone.
                let block = self.0.version.load(Ordering::Relaxed);
                if !block.is_null() {
                    // SAFETY: the stack is being dropped and all values are gone, so nothing else
                    // reaches the block.
                    unsafe { self.0.store.enter().discard(block) };
                }
            }
        }

        let last = LastBlock(self);
        drop_rest(last.0);
    }
}

forward! {
    impl[T, M: Memory] ConcurrentStack for HerlihyStack<T, M>;
    item: T;
    progress: Progress::LockFree;
}

conveniences! {
    impl[T, M: Memory] HerlihyStack<T, M>;
    value: T;
    new: HerlihyStack::with_memory(M::default());
    debug: |stack| is_empty = stack.is_empty();
}

exclusive! {
    impl[T, M: Memory] HerlihyStack<T, M>;
    value: T;
    push_mut: |stack, value| stack.push(value);
    pop_mut: |stack| stack.pop();
    peek_mut: |stack| stack.peek_alone();
    cost: "Costs as much as the shared operation when no other thread is there.";
}

impl<T, M: Memory> HerlihyStack<T, M> {
    fn peek_alone(&mut self) -> Option<&mut T> {
        let operation = self.store.enter();
        let (_, top) = self.look(&operation);
        if top.is_null() {
            return None;
        }
        // SAFETY: on the list, and so no other thread could retire it.
        let slot = unsafe { operation.slot(top) };
        // SAFETY: as above, and no other thread has the stack.
        let value = unsafe { operation.value(slot) };
        // SAFETY: a node of the list has a value, and nothing else touches it while the stack is
        // borrowed.
        Some(unsafe { &mut *value })
    }
}
