//! The stack under a lock.

use core::ptr;

use lock_api::{Mutex, RawMutex};

use stanchion_lockfree::Progress;
use stanchion_lockfree::stack::ConcurrentStack;
use stanchion_machine::cell::UnsafeCell;

use super::{Line, Node, Shelves, free};

/// A stack of `T` as a linked list under a lock `L`.
pub struct LinkedStack<T, L> {
    /// The lock that guards the list.
    lock: Line<Mutex<L, ()>>,
    /// The newest node, or null. Only the lock's holder writes it.
    top: Line<UnsafeCell<*mut Node<T>>>,
    /// The nodes that threads keep for their next insertion.
    shelves: Shelves<T>,
}

// SAFETY: the lock keeps threads apart (Invariant 1 of `linked`), a shelf has one thread
// (Invariant 3 of `linked`), and a value goes from the thread that pushes it to the one that
// pops it.
unsafe impl<T: Send, L: Send> Send for LinkedStack<T, L> {}
// SAFETY: as above.
unsafe impl<T: Send, L: Sync> Sync for LinkedStack<T, L> {}

impl<T, L: RawMutex> Default for LinkedStack<T, L> {
    fn default() -> Self {
        Self {
            lock: Line(Mutex::new(())),
            top: Line(UnsafeCell::new(ptr::null_mut())),
            shelves: Shelves::new(),
        }
    }
}

impl<T, L> LinkedStack<T, L> {
    /// Returns the newest node, or null, for the holder of the lock.
    #[inline(always)]
    fn newest(&self) -> *mut Node<T> {
        // SAFETY: the lock is held (Invariant 1 of `linked`).
        self.top.with(|top| unsafe { *top })
    }
}

impl<T, L: RawMutex> ConcurrentStack for LinkedStack<T, L> {
    type Item = T;

    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, value: T) {
        let mut node = self.shelves.node(value);
        let _held = self.lock.lock();
        node.next = self.newest();
        stanchion_machine::write(&node.next);
        let node = Box::into_raw(node);
        // SAFETY: the lock is held (Invariant 1 of `linked`).
        self.top.with_mut(|top| unsafe { *top = node });
    }

    fn pop(&self) -> Option<T> {
        let held = self.lock.lock();
        let newest = self.newest();
        let node = (!newest.is_null()).then(|| {
            // SAFETY: it was a `Box`, and the list owned it (Invariant 2 of `linked`).
            let node = unsafe { Box::from_raw(newest) };
            stanchion_machine::read(&node.next);
            // SAFETY: the lock is held (Invariant 1 of `linked`).
            self.top.with_mut(|top| unsafe { *top = node.next });
            node
        });
        drop(held);
        node.and_then(|node| self.shelves.value(node))
    }

    fn is_empty(&self) -> bool {
        let _held = self.lock.lock();
        self.newest().is_null()
    }
}

impl<T, L> Drop for LinkedStack<T, L> {
    fn drop(&mut self) {
        self.top.with_mut(|top| {
            // SAFETY: no other thread has the stack.
            free(unsafe { *top });
        });
    }
}
