//! A stack under a lock: an array, and any lock.
//!
//! Why it is here: the other stacks are measured against it, and if no thread stops at a bad time
//! it is hard to beat. An array needs no node for a value. A lock that a running thread may take
//! before its turn keeps the array's end in one processor's cache for many operations in a row.
//!
//! Source: the single-lock stack that Michael and Scott 1997, section 4.2, measure against.

use lock_api::RawMutex;
use stanchion_competitive::RawPolicyMutex;

use crate::Progress;
use crate::guarded::Guarded;

/// A stack of `T` under a lock `L`: any `lock_api` raw mutex.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): a thread that stops with the lock stops others |
/// | cost | the lock's |
/// | memory | an array that doubles when it is full, under the lock, and does not shrink |
///
/// ```
/// use stanchion_lockfree::stack::LockedStack;
///
/// static STACK: LockedStack<&str> = LockedStack::new();
/// STACK.push("below");
/// STACK.push("on top");
/// assert_eq!(STACK.pop(), Some("on top"));
/// assert_eq!(STACK.pop_all(), ["below"]);
/// ```
///
/// With another lock:
///
/// ```
/// use stanchion_lockfree::stack::LockedStack;
///
/// let stack = LockedStack::with_capacity_and_lock(8, stanchion_spin::TestAndSet::new());
/// stack.push(1);
/// assert_eq!(stack.len(), 1);
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let stack: stanchion_lockfree::stack::LockedStack<std::rc::Rc<()>> = Default::default();
/// shared(&stack);
/// ```
pub struct LockedStack<T, L = RawPolicyMutex> {
    /// The values, the top last. Written by the holder of the lock.
    values: Guarded<Vec<T>, L>,
}

impl<T> LockedStack<T> {
    /// Returns an empty stack, which has not allocated, under the default lock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_lock(RawMutex::INIT)
    }

    /// Returns an empty stack with room for `capacity` values, under the default lock. It grows
    /// beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_lock(capacity, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> LockedStack<T, L> {
    /// Returns an empty stack, which has not allocated, under `lock`. That lock must be free.
    #[must_use]
    pub const fn with_lock(lock: L) -> Self {
        Self { values: Guarded::new(lock, Vec::new()) }
    }

    /// Returns an empty stack with room for `capacity` values, under `lock`. That lock must be
    /// free. The stack grows beyond.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn with_capacity_and_lock(capacity: usize, lock: L) -> Self {
        Self { values: Guarded::new(lock, Vec::with_capacity(capacity)) }
    }

    /// Puts `value` on top.
    pub fn push(&self, value: T) {
        self.values.with(|values| values.push(value));
    }

    /// Takes the value on top.
    pub fn pop(&self) -> Option<T> {
        self.values.with(Vec::pop)
    }

    /// Calls `look` with the value on top, under the lock: a `look` that uses the stack waits for
    /// itself.
    ///
    /// ```
    /// use stanchion_lockfree::stack::LockedStack;
    ///
    /// let stack = LockedStack::new();
    /// stack.push(5);
    /// assert_eq!(stack.peek(|top| *top), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.values.with(|values| values.last().map(look))
    }

    /// Takes the value on top, if `predicate` is true of it. Calls `predicate` under the lock: a
    /// `predicate` that uses the stack waits for itself, and one that panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::stack::LockedStack;
    ///
    /// let stack = LockedStack::new();
    /// stack.push(5);
    /// assert_eq!(stack.pop_if(|top| top % 2 == 0), None);
    /// assert_eq!(stack.pop_if(|top| top % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        self.values.with(|values| if predicate(values.last()?) { values.pop() } else { None })
    }

    /// Takes all values in one step, the lowest first. The stack allocates anew for later values.
    #[must_use = "what was on the stack is in it"]
    pub fn pop_all(&self) -> Vec<T> {
        self.values.with(core::mem::take)
    }

    /// Returns the number of values. Takes the lock.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.look(Vec::len)
    }

    /// Returns whether there is nothing on it. Takes the lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of values, if the lock is free.
    fn try_len(&self) -> Option<usize> {
        self.values.try_look(Vec::len)
    }
}

forward! {
    impl[T, L: RawMutex] ConcurrentStack for LockedStack<T, L>;
    item: T;
    progress: Progress::Blocking;
}

conveniences! {
    impl[T, L: RawMutex] LockedStack<T, L>;
    value: T;
    new: LockedStack::with_lock(L::INIT);
    debug: |stack| len = stack.try_len();
}

exclusive! {
    impl[T, L: RawMutex] LockedStack<T, L>;
    value: T;
    push_mut: |stack, value| stack.values.get_mut().push(value);
    pop_mut: |stack| stack.values.get_mut().pop();
    peek_mut: |stack| stack.values.get_mut().last_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(LockedStack<u32>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(LockedStack<std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn last_in_first_out() {
        let mut stack: LockedStack<u32> = LockedStack::default();
        stack.extend([1, 2]);
        (&stack).extend([3]);
        assert_eq!(stack.len(), 3);
        assert_eq!(stack.pop(), Some(3));
        assert!(stack.drain().eq([2, 1]));
        assert!(stack.is_empty());
        assert_eq!(stack.pop(), None);
    }

    #[test]
    fn debug_does_not_wait_for_the_lock() {
        let stack: LockedStack<u32> = [1].into_iter().collect();
        assert_eq!(format!("{stack:?}"), "LockedStack { len: Some(1), .. }");
        let held =
            stack.peek(|_| assert_eq!(format!("{stack:?}"), "LockedStack { len: None, .. }"));
        assert!(held.is_some());
    }
}
