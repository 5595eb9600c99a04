//! What a thread keeps in a structure between its operations: a desk of its own.
//!
//! Why not in a thread-local: a structure would have to find its own among all structures', a thread that ends would have to bring things back, and
//! an operation within another, as when comparing two keys uses the heap, would find the outer one's. A desk belongs to the structure. A thread takes
//! that of its own number for the length of an operation, so its lines stay with its processor; it is taken already only if the operation is one
//! within another, and then the next free one will do. The next thread with that number finds the desk as the last one left it.
//!
//! # Invariants
//!
//! 1. Only the thread whose exchange found `taken` false touches what is on the desk, until it stores false.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | take a desk: swap | Acquire | the Release store of its last user |

use core::ops::{Deref, DerefMut};

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicBool, Fresh, Ordering};
use machine::cell::UnsafeCell;

use super::segments::Segments;

/// Room for a desk for each thread that has a number, and as many more.
const SEGMENTS: usize = machine::sized(14, 3);

/// Desks with `S` on them.
pub(crate) struct Desks<S> {
    desks: Segments<CachePadded<Desk<S>>, SEGMENTS>,
}

struct Desk<S> {
    taken: AtomicBool,
    top: UnsafeCell<S>,
}

// SAFETY: what is on it is the business of the one thread that has taken it (Invariant 1).
unsafe impl<S: Send> Sync for Desk<S> {}

impl<S: Default> Desks<S> {
    /// Without desks.
    pub(crate) const fn new() -> Self {
        Self { desks: Segments::new() }
    }

    /// A desk for one operation.
    #[inline]
    pub(crate) fn sit_down(&self) -> Seat<'_, S> {
        let own = machine::thread::index().unwrap_or(0);
        let mut numbers = (own..Segments::<Desk<S>, SEGMENTS>::CAPACITY).chain(0..own);
        let seat = numbers.find_map(|number| self.take(number));
        seat.expect("there are more desks than threads")
    }

    /// Takes the desk if it is free.
    #[inline]
    fn take(&self, number: usize) -> Option<Seat<'_, S>> {
        let desk = self.desks.get_or_make(number, Desk::fresh);
        // Acquire: pairs with the Release of the one that had it before.
        if desk.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut seat = Seat { desk, top: S::default() };
        seat.swap();
        Some(seat)
    }
}

impl<S: Default> Desk<S> {
    fn fresh() -> CachePadded<Self> {
        let top = UnsafeCell::new(S::default());
        CachePadded::new(Self { taken: AtomicBool::fresh(false), top })
    }
}

/// A desk that is taken, and what is on it in hand; put back by `Drop`.
pub(crate) struct Seat<'d, S> {
    desk: &'d Desk<S>,
    top: S,
}

impl<S> Seat<'_, S> {
    /// Exchanges what is on the desk for what is in hand.
    #[inline]
    fn swap(&mut self) {
        self.desk.top.with_mut(|top| {
            // SAFETY: this thread has taken the desk (Invariant 1).
            let top = unsafe { &mut *top };
            core::mem::swap(top, &mut self.top);
        });
    }
}

impl<S> Deref for Seat<'_, S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.top
    }
}

impl<S> DerefMut for Seat<'_, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.top
    }
}

impl<S> Drop for Seat<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.swap();
        // Release: pairs with the next user's Acquire.
        self.desk.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_finds_what_it_left() {
        let desks: Desks<Vec<u32>> = Desks::new();
        desks.sit_down().push(1);
        let mut outer = desks.sit_down();
        outer.push(2);
        desks.sit_down().push(9);
        assert_eq!(*outer, [1, 2]);
        drop(outer);
        assert_eq!(*desks.sit_down(), [1, 2]);
    }
}
