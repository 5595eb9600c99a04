//! The paper's structures under one lock: linked lists, with the lock on a cache line of its own.
//!
//! Why not the crate's [`LockedStack`](stanchion_lockfree::stack::LockedStack) and
//! [`LockedQueue`](stanchion_lockfree::queue::LockedQueue): those are arrays, and the paper
//! compares "link-based queues, stacks, and skew heaps" (section 4). An array needs no node, so its
//! rows are the stronger rivals. They are further rows of the figures.
//!
//! Why the lock has a line of its own: "a push or a pop in Treiber's algorithm typically needs to
//! access only two cache lines in the data structure, while a lock-based implementation has the
//! overhead of accessing lock variables as well" (section 4.2).
//!
//! A word that a section changes is read first and written last, as two accesses. On a machine with
//! shared copies the read fetches the line, and the write asks for it once more.
//!
//! A thread keeps the last node that it removed, and uses it for its next insertion, as the stacks
//! and queues without locks do. So no row pays for the allocator.
//!
//! # Invariants
//!
//! 1. `top`, `head`, `tail` and the `next` of linked nodes are touched only by the holder of the
//!    lock.
//! 2. A node is owned by the list that contains it, by the shelf that keeps it, or by the thread
//!    that has taken it from one of them.
//! 3. A shelf is touched only by the thread with its index, by `&mut self`, or on drop.

mod queue;
mod stack;

pub use queue::LinkedQueue;
pub use stack::LinkedStack;

use core::ops::Deref;
use core::ptr;

use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::thread;

/// A value on cache lines of its own, on all of the machines.
#[repr(align(128))]
pub(super) struct Line<T>(pub(super) T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A node, on lines of its own like those of the structures without locks.
#[repr(align(128))]
pub(super) struct Node<T> {
    /// The element; none while a shelf keeps the node.
    pub(super) value: Option<T>,
    /// The next node of the list, or null.
    pub(super) next: *mut Node<T>,
}

/// The number of threads that can keep a node.
pub(super) const KEEPERS: usize = 128;

/// For each thread, the node that it keeps, or null.
pub(super) struct Shelves<T>(Box<[Line<UnsafeCell<*mut Node<T>>>]>);

impl<T> Shelves<T> {
    pub(super) fn new() -> Self {
        Self((0..KEEPERS).map(|_| Line(UnsafeCell::new(ptr::null_mut()))).collect())
    }

    fn own(&self) -> Option<&UnsafeCell<*mut Node<T>>> {
        self.0.get(thread::index()?).map(Deref::deref)
    }

    /// Returns a node with `value`: the node that this thread keeps, or a new one.
    #[track_caller]
    pub(super) fn node(&self, value: T) -> Box<Node<T>> {
        let kept = match self.own() {
            None => ptr::null_mut(),
            Some(shelf) => shelf.with_mut(|kept| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                let kept = unsafe { &mut *kept };
                core::mem::replace(kept, ptr::null_mut())
            }),
        };
        if kept.is_null() {
            return Box::new(Node { value: Some(value), next: ptr::null_mut() });
        }
        // SAFETY: it was a `Box`, and the shelf owned it (Invariant 2).
        let mut node = unsafe { Box::from_raw(kept) };
        stanchion_machine::write(&node.value);
        node.value = Some(value);
        node
    }

    /// Takes the value out of `node`. Keeps the node for this thread if it keeps none yet.
    #[track_caller]
    pub(super) fn value(&self, mut node: Box<Node<T>>) -> Option<T> {
        stanchion_machine::read(&node.value);
        let value = node.value.take();
        if let Some(shelf) = self.own() {
            shelf.with_mut(|kept| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                let kept = unsafe { &mut *kept };
                if kept.is_null() {
                    *kept = Box::into_raw(node);
                }
            });
        }
        value
    }
}

impl<T> Drop for Shelves<T> {
    fn drop(&mut self) {
        for shelf in &self.0 {
            let kept = shelf.with_mut(|kept| {
                // SAFETY: no other thread has the shelves (Invariant 3).
                let kept = unsafe { &mut *kept };
                core::mem::replace(kept, ptr::null_mut())
            });
            if !kept.is_null() {
                // SAFETY: it was a `Box`, and the shelf owned it (Invariant 2).
                drop(unsafe { Box::from_raw(kept) });
            }
        }
    }
}

/// Frees a list that no other thread has.
fn free<T>(mut first: *mut Node<T>) {
    while !first.is_null() {
        // SAFETY: it was a `Box`, and the list owned it (Invariant 2).
        let node = unsafe { Box::from_raw(first) };
        first = node.next;
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Ordinary;
    use super::*;
    use stanchion_lockfree::{ConcurrentQueue, ConcurrentStack};
    use stanchion_machine::model;

    #[test]
    fn a_linked_stack_gives_back_the_newest_and_drops_the_rest() {
        model(|| {
            let stack: LinkedStack<Box<u32>, Ordinary> = LinkedStack::default();
            assert!(stack.is_empty() && stack.pop().is_none());
            (0..4).for_each(|value| stack.push(Box::new(value)));
            assert_eq!([stack.pop(), stack.pop()].map(|value| *value.unwrap()), [3, 2]);
            stack.push(Box::new(9));
            assert_eq!(*stack.pop().unwrap(), 9);
            assert!(!stack.is_empty());
        });
    }

    #[test]
    fn a_linked_queue_gives_back_the_oldest_and_drops_the_rest() {
        model(|| {
            let queue: LinkedQueue<Box<u32>, Ordinary> = LinkedQueue::default();
            assert!(queue.is_empty() && queue.pop().is_none());
            (0..4).for_each(|value| assert!(queue.try_push(Box::new(value)).is_ok()));
            assert_eq!([queue.pop(), queue.pop()].map(|value| *value.unwrap()), [0, 1]);
            assert!(queue.try_push(Box::new(9)).is_ok());
            assert_eq!([(); 3].map(|()| *queue.pop().unwrap()), [2, 3, 9]);
            assert!(queue.is_empty() && queue.pop().is_none());
            assert!(queue.try_push(Box::new(1)).is_ok());
        });
    }
}
