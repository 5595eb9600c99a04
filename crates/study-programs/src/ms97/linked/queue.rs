//! The queue under a lock.

use core::ptr;

use lock_api::{Mutex, RawMutex};

use stanchion_lockfree::Progress;
use stanchion_lockfree::queue::{ConcurrentQueue, Full};
use stanchion_machine::cell::UnsafeCell;

use super::{Line, Node, Shelves, free};

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

impl<T, L> LinkedQueue<T, L> {
    /// Reads the ends, for the holder of the lock.
    #[inline(always)]
    fn ends(&self) -> Ends<T> {
        // SAFETY: the lock is held (Invariant 1 of `linked`).
        self.ends.with(|ends| unsafe { ends.read() })
    }

    /// Writes the ends, for the holder of the lock.
    #[inline(always)]
    fn set_ends(&self, ends: Ends<T>) {
        // SAFETY: the lock is held (Invariant 1 of `linked`).
        self.ends.with_mut(|place| unsafe { *place = ends });
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
        let Ends { mut head, tail } = self.ends();
        if tail.is_null() {
            head = node;
        } else {
            // SAFETY: the list owns its last node, and the lock is held (Invariants 1 and 2 of
            // `linked`).
            let last = unsafe { &mut *tail };
            stanchion_machine::write(&last.next);
            last.next = node;
        }
        self.set_ends(Ends { head, tail: node });
        Ok(())
    }

    fn pop(&self) -> Option<T> {
        let held = self.lock.lock();
        let Ends { head, mut tail } = self.ends();
        let node = (!head.is_null()).then(|| {
            // SAFETY: it was a `Box`, and the list owned it (Invariant 2 of `linked`).
            let node = unsafe { Box::from_raw(head) };
            stanchion_machine::read(&node.next);
            if node.next.is_null() {
                tail = ptr::null_mut();
            }
            self.set_ends(Ends { head: node.next, tail });
            node
        });
        drop(held);
        node.and_then(|node| self.shelves.value(node))
    }

    fn is_empty(&self) -> bool {
        let _held = self.lock.lock();
        self.ends().head.is_null()
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
