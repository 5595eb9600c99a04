//! What a thread keeps in a structure between its operations: a desk of its own.
//!
//! Why not in a thread-local: a structure would have to find its own among all structures', a
//! thread that ends would have to bring things back, and an operation within another, as when
//! comparing two keys uses the heap, would find the outer one's. A desk belongs to the structure. A
//! thread takes that of its own number for the length of an operation, so its lines stay with its
//! processor. The next thread with that number finds the desk as the last one left it.
//!
//! A thread can find its own desk taken, because the operation is one within another. Or it has no
//! number, because it is ending. Then it takes any guests' desk that is free. Why not the next
//! thread's: then no desk would be used by one thread alone, and taking it would cost an exchange.
//!
//! A closure that calls the operation that calls it could nest operations until the stack
//! overflows. So a thread nests at most [`NESTED`], and panics before the next one.
//!
//! # Invariants
//!
//! 1. Only the thread that has its number takes one of `own`, and only when it finds `users` 0.
//! 2. Only the thread that takes a desk touches what is on it, until it gives the desk back.
//! 3. `users` of one of `own` is the number of operations that its thread is in.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | count an operation of the thread: load, store | Relaxed | none: what the last holder of a number wrote happened before what the next one does ([`machine::thread::index`]) |
//! | take a guests' desk: swap | Acquire | the Release store of its last user |

use core::ops::{Deref, DerefMut};

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU32, Fresh, Ordering, signal_fence};
use machine::cell::UnsafeCell;

use super::segments::Segments;

/// Room for a desk for each thread that has a number; and for as many guests.
const SEGMENTS: usize = machine::sized(14, 3);

type Row<S> = Segments<CachePadded<Desk<S>>, SEGMENTS>;

/// Desks with `S` on them.
pub(crate) struct Desks<S> {
    /// By their threads' numbers.
    own: Row<S>,
    guests: Row<S>,
}

/// The most operations that a thread nests: far fewer than fill a stack, and far more than a
/// program needs that nests them on purpose.
pub(crate) const NESTED: u32 = 64;

struct Desk<S> {
    /// Of a guests' desk: 1 if it is taken. Of a thread's own desk: Invariant 3.
    users: AtomicU32,
    top: UnsafeCell<S>,
}

// SAFETY: what is on it is the business of the one thread that has taken it (Invariant 2).
unsafe impl<S: Send> Sync for Desk<S> {}

impl<S: Default> Desks<S> {
    /// Without desks.
    pub(crate) const fn new() -> Self {
        Self { own: Segments::new(), guests: Segments::new() }
    }

    /// Returns a desk for one operation.
    ///
    /// # Panics
    ///
    /// If the thread is in [`NESTED`] operations already.
    #[inline]
    pub(crate) fn sit_down(&self) -> Seat<'_, S> {
        let Some(index) = machine::thread::index() else { return Seat::at(self.guest(), None) };
        let own = self.own.get_or_make(index, Desk::fresh);
        // Relaxed, both: only this thread writes it, and what interrupts it leaves it as it was
        // (Invariant 1).
        let users = own.users.load(Ordering::Relaxed);
        if users == 0 {
            own.users.store(1, Ordering::Relaxed);
            signal_fence();
            return Seat::at(own, None);
        }
        assert!(
            users < NESTED,
            "more than {NESTED} operations of one thread on one object are nested"
        );
        own.users.store(users + 1, Ordering::Relaxed);
        signal_fence();
        Seat::at(self.guest(), Some(own))
    }

    /// The first guests' desk that is free.
    #[cold]
    fn guest(&self) -> &Desk<S> {
        let free = (0..Row::<S>::CAPACITY).find_map(|number| {
            let desk = self.guests.get_or_make(number, Desk::fresh);
            // Acquire: pairs with the Release of the operation that had it before.
            (desk.users.swap(1, Ordering::Acquire) == 0).then_some(&**desk)
        });
        free.expect("there are more desks than operations at a time")
    }
}

impl<S: Default> Desk<S> {
    fn fresh() -> CachePadded<Self> {
        let top = UnsafeCell::new(S::default());
        CachePadded::new(Self { users: AtomicU32::fresh(0), top })
    }
}

/// A desk that is taken, and what is on it in hand; put back by `Drop`.
pub(crate) struct Seat<'d, S> {
    desk: &'d Desk<S>,
    /// The thread's own desk, if this one is a guests' desk for a nested operation.
    own: Option<&'d Desk<S>>,
    top: S,
}

impl<'d, S: Default> Seat<'d, S> {
    /// At a desk that the calling thread has taken.
    #[inline]
    fn at(desk: &'d Desk<S>, own: Option<&'d Desk<S>>) -> Self {
        let mut seat = Seat { desk, own, top: S::default() };
        seat.swap();
        seat
    }
}

impl<S> Seat<'_, S> {
    /// Exchanges what is on the desk for what is in hand.
    #[inline]
    fn swap(&mut self) {
        self.desk.top.with_mut(|top| {
            // SAFETY: this thread has taken the desk (Invariant 2).
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
        // Release: pairs with the Acquire of the next guest.
        self.desk.users.store(0, Ordering::Release);
        if let Some(own) = self.own {
            // Relaxed, both: as in `sit_down`. The operations within this one are over.
            own.users.store(own.users.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
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

    #[test]
    fn operations_within_others_find_the_same_desk_again() {
        let desks: Desks<Vec<u32>> = Desks::new();
        let outer = desks.sit_down();
        for number in 0..3 {
            let mut inner = desks.sit_down();
            assert_eq!(inner.len(), number);
            inner.push(7);
            assert!(desks.sit_down().is_empty(), "the first one is taken");
        }
        assert!(outer.is_empty());
        assert_eq!(desks.guests.iter().count(), 2);
    }

    /// Its number is asked for last, so its destructor would be the first of all.
    #[test]
    fn a_thread_that_is_ending_sits_at_its_own_desk() {
        static DESKS: Desks<Vec<u32>> = Desks::new();
        struct Last;
        impl Drop for Last {
            fn drop(&mut self) {
                DESKS.sit_down().push(2);
            }
        }
        std::thread_local! {
            static LAST: Last = const { Last };
        }
        let user = std::thread::spawn(|| {
            LAST.with(|_| ());
            DESKS.sit_down().push(1);
        });
        user.join().expect("no panic");
        let on = |row: &Row<Vec<u32>>| -> Vec<u32> {
            // SAFETY: the only thread that sat at a desk has ended.
            row.iter().flat_map(|desk| desk.top.with(|top| unsafe { (*top).clone() })).collect()
        };
        assert_eq!((on(&DESKS.own), on(&DESKS.guests)), (vec![1, 2], vec![]));
    }
}
