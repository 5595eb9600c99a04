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

use core::ops::Deref;
use core::ptr;

use lock_api::{Mutex, RawMutex};

use stanchion_lockfree::Progress;
use stanchion_lockfree::queue::{ConcurrentQueue, Full};
use stanchion_lockfree::stack::ConcurrentStack;
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::thread;

/// A value on cache lines of its own, on all of the machines.
#[repr(align(128))]
struct Line<T>(T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

struct Node<T> {
    /// The element; none while a shelf keeps the node.
    value: Option<T>,
    /// The next node of the list, or null.
    next: *mut Node<T>,
}

/// The number of threads that can keep a node.
const KEEPERS: usize = 128;

/// For each thread, the node that it keeps, or null.
struct Shelves<T>(Box<[Line<UnsafeCell<*mut Node<T>>>]>);

impl<T> Shelves<T> {
    fn new() -> Self {
        Self((0..KEEPERS).map(|_| Line(UnsafeCell::new(ptr::null_mut()))).collect())
    }

    fn own(&self) -> Option<&UnsafeCell<*mut Node<T>>> {
        self.0.get(thread::index()?).map(Deref::deref)
    }

    /// Returns a node with `value`: the node that this thread keeps, or a new one.
    fn node(&self, value: T) -> Box<Node<T>> {
        let kept = self.own().map_or(ptr::null_mut(), |shelf| {
            shelf.with_mut(|kept| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                let kept = unsafe { &mut *kept };
                core::mem::replace(kept, ptr::null_mut())
            })
        });
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
    fn value(&self, mut node: Box<Node<T>>) -> Option<T> {
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

/// A stack of `T` as a linked list under a lock `L`.
pub struct LinkedStack<T, L> {
    /// The lock that guards the list.
    lock: Line<Mutex<L, ()>>,
    /// The newest node, or null. Only the lock's holder writes it.
    top: Line<UnsafeCell<*mut Node<T>>>,
    /// The nodes that threads keep for their next insertion.
    shelves: Shelves<T>,
}

// SAFETY: the lock keeps threads apart (Invariant 1), a shelf has one thread (Invariant 3), and a
// value goes from the thread that pushes it to the one that pops it.
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

impl<T, L: RawMutex> ConcurrentStack for LinkedStack<T, L> {
    type Item = T;

    const PROGRESS: Progress = Progress::Blocking;

    fn push(&self, value: T) {
        let mut node = self.shelves.node(value);
        let _held = self.lock.lock();
        self.top.with_mut(|top| {
            // SAFETY: the lock is held (Invariant 1).
            let top = unsafe { &mut *top };
            stanchion_machine::write(&node.next);
            node.next = *top;
            *top = Box::into_raw(node);
        });
    }

    fn pop(&self) -> Option<T> {
        let held = self.lock.lock();
        let node = self.top.with_mut(|top| {
            // SAFETY: the lock is held (Invariant 1).
            let top = unsafe { &mut *top };
            if top.is_null() {
                return None;
            }
            // SAFETY: it was a `Box`, and the list owned it (Invariant 2).
            let node = unsafe { Box::from_raw(*top) };
            stanchion_machine::read(&node.next);
            *top = node.next;
            Some(node)
        });
        drop(held);
        node.and_then(|node| self.shelves.value(node))
    }

    fn is_empty(&self) -> bool {
        let _held = self.lock.lock();
        self.top.with(|top| {
            // SAFETY: the lock is held (Invariant 1).
            unsafe { *top }.is_null()
        })
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

/// Frees a list that no other thread has.
fn free<T>(mut first: *mut Node<T>) {
    while !first.is_null() {
        // SAFETY: it was a `Box`, and the list owned it (Invariant 2).
        let node = unsafe { Box::from_raw(first) };
        first = node.next;
    }
}

/// The ends of a queue: null if it is empty.
struct Ends<T> {
    /// The oldest node, which `pop` takes.
    head: *mut Node<T>,
    /// The newest node, after which `try_push` links the next.
    tail: *mut Node<T>,
}

/// A queue of `T` as a linked list under a lock `L`.
pub struct LinkedQueue<T, L> {
    /// The lock that guards the list.
    lock: Line<Mutex<L, ()>>,
    /// Both ends of the list. Only the lock's holder writes them.
    ends: Line<UnsafeCell<Ends<T>>>,
    /// The nodes that threads keep for their next insertion.
    shelves: Shelves<T>,
}

// SAFETY: as for the stack.
unsafe impl<T: Send, L: Send> Send for LinkedQueue<T, L> {}
// SAFETY: as for the stack.
unsafe impl<T: Send, L: Sync> Sync for LinkedQueue<T, L> {}

impl<T, L: RawMutex> Default for LinkedQueue<T, L> {
    fn default() -> Self {
        let ends = Ends { head: ptr::null_mut(), tail: ptr::null_mut() };
        Self {
            lock: Line(Mutex::new(())),
            ends: Line(UnsafeCell::new(ends)),
            shelves: Shelves::new(),
        }
    }
}

impl<T, L: RawMutex> ConcurrentQueue for LinkedQueue<T, L> {
    type Item = T;

    const PROGRESS: Progress = Progress::Blocking;

    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let mut node = self.shelves.node(value);
        node.next = ptr::null_mut();
        let node = Box::into_raw(node);
        let _held = self.lock.lock();
        self.ends.with_mut(|ends| {
            // SAFETY: the lock is held (Invariant 1).
            let ends = unsafe { &mut *ends };
            if ends.tail.is_null() {
                ends.head = node;
            } else {
                // SAFETY: the list owns its last node, and the lock is held (Invariants 1 and 2).
                let last = unsafe { &mut *ends.tail };
                stanchion_machine::write(&last.next);
                last.next = node;
            }
            ends.tail = node;
        });
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        let held = self.lock.lock();
        let node = self.ends.with_mut(|ends| {
            // SAFETY: the lock is held (Invariant 1).
            let ends = unsafe { &mut *ends };
            if ends.head.is_null() {
                return None;
            }
            // SAFETY: it was a `Box`, and the list owned it (Invariant 2).
            let node = unsafe { Box::from_raw(ends.head) };
            stanchion_machine::read(&node.next);
            ends.head = node.next;
            if ends.head.is_null() {
                ends.tail = ptr::null_mut();
            }
            Some(node)
        });
        drop(held);
        node.and_then(|node| self.shelves.value(node))
    }

    fn is_empty(&self) -> bool {
        let _held = self.lock.lock();
        self.ends.with(|ends| {
            // SAFETY: the lock is held (Invariant 1).
            let ends = unsafe { &*ends };
            ends.head.is_null()
        })
    }
}

impl<T, L> Drop for LinkedQueue<T, L> {
    fn drop(&mut self) {
        self.ends.with_mut(|ends| {
            // SAFETY: no other thread has the queue.
            let ends = unsafe { &*ends };
            free(ends.head);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::Ordinary;
    use super::*;
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
