//! A bounded queue under a lock: the default choice among the bounded queues.
//!
//! Why a lock, where there are rings without one: each operation of such a ring moves a word that
//! all threads move. With two threads a pair of operations pays for two transfers of a line between
//! processors. A lock that a running thread may take before its turn (*barging*) lets one thread do
//! hundreds of operations while the lines stay in its cache, and the release is a plain store. A
//! push and a pop have two locked instructions together, as many as the best ring without a lock.
//!
//! The price: the other threads wait for a thread that stops with the lock, and a thread may be
//! passed over for longer. [`NikolaevQueue`](super::NikolaevQueue) is for programs that cannot have
//! that.
//!
//! ```text
//!        head        head + len
//!          ▼              ▼
//! ┌───┬───┬───┬───┬───┬───┬───┐      one line has the lock, `head`, `len`, the slots' address
//! │   │   │ A │ B │ C │ D │   │
//! └───┴───┴───┴───┴───┴───┴───┘
//! ```
//!
//! # Between a producer and a consumer
//!
//! Under a lock that favours its last holder, a thread that polls an empty or a full ring would
//! hold the lock most of the time. Its partner would find the lock held at each look, and stay away
//! for longer each time. Two rules prevent that:
//!
//! 1. A thread that finds the lock held says so in `vain_left`. The next [`VAIN`] calls that change
//!    nothing then each let a transfer of a line pass after the release. A ring on which threads do
//!    not meet never delays a call.
//! 2. A holder has at most as many operations to do as the ring has slots. So a thread that finds
//!    the lock of a small ring held looks again after so long, before it waits as the lock does.
//!
//! # Invariants
//!
//! 1. The ring is touched only by the holder of the lock.
//! 2. The `len` slots from `head` on, going round, have values. The others have none. `head` is
//!    below the capacity, and `len` is at most the capacity.
//!
//! # Orderings
//!
//! The lock orders everything. Why `len` and `is_empty` take it too, and do not read a copy of the
//! length beside it: the holder would write that copy, and release the lock, by plain stores. A
//! later load of the same thread may pass these. Two threads that each push to one ring and look at
//! the other could then both find nothing, and so could a thread that announces itself in a flag
//! before it looks, while the thread that has pushed does not see the flag. A fence after each push
//! and each pop would cost as much as a second lock.
//!
//! `vain_left` is Relaxed: it says how long a call takes, not what it does.
//!
//! Source: the ring is common knowledge. That a barging lock around it wins was measured here: see
//! the README of the crate.

use core::mem::MaybeUninit;

use crossbeam_utils::CachePadded;
use lock_api::{Mutex, MutexGuard, RawMutex};
use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::wait;

use super::Full;
use crate::Progress;
use crate::barging::Barging;
use crate::dropping::drop_each;

/// The number of calls without a change that give way after two threads have met at the lock.
const VAIN: u32 = 64;

/// The number of operations that a holder gets done in the time of one transfer of a line, with
/// their part of the lines' travel.
const OPERATIONS: u64 = 5;

/// The time for which a thread looks that way before it waits as the lock does, in transfers.
const LOOKS_TRANSFERS: u64 = 5;

/// A bounded queue of `T` under a lock `L`: any `lock_api` raw mutex, by default the one for very
/// short sections.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): a thread that stops with the lock stops others |
/// | cost | the lock's: two locked instructions for a push and a pop |
/// | memory | the slots, allocated when it is made |
/// | fairness | the lock's: by default none, a waiter may be passed over for milliseconds |
///
/// ```
/// use stanchion_lockfree::queue::LockedRing;
///
/// let ring = LockedRing::with_capacity(2);
/// assert!(ring.try_push("first").is_ok());
/// assert!(ring.try_push("second").is_ok());
/// assert_eq!(ring.try_push("third").unwrap_err().0, "third");
/// assert_eq!(ring.pop(), Some("first"));
/// assert_eq!(ring.len(), 1);
/// ```
///
/// With a lock that lets waiters sleep, and passes over no thread for much longer than 10 ms:
///
/// ```
/// use stanchion_competitive::RawPolicyMutex;
/// use stanchion_lockfree::queue::LockedRing;
///
/// let ring = LockedRing::with_capacity_and_lock(8, RawPolicyMutex::new());
/// assert!(ring.try_push(1).is_ok());
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// use stanchion_lockfree::queue::LockedRing;
/// let ring: LockedRing<std::rc::Rc<()>> = LockedRing::with_capacity(1);
/// shared(&ring);
/// ```
pub struct LockedRing<T, L = Barging> {
    /// The words that every operation fetches.
    line: CachePadded<Line<T, L>>,
    /// The number of slots.
    capacity: usize,
}

/// The lock, the ends of the ring, and the count of a meeting.
struct Line<T, L> {
    /// The ring. Written by the holder of the lock (Invariant 1).
    ring: Mutex<L, UnsafeCell<Ring<T>>>,
    /// The number of further calls without a change that give way. Set by a thread that finds the
    /// lock held, counted down by holders. A set may be lost against a count: the next meeting
    /// repeats it.
    vain_left: AtomicU32,
}

/// The ring itself.
struct Ring<T> {
    /// The slots. Those from `head` on hold values (Invariant 2). Written by the holder of the
    /// lock.
    slots: Box<[MaybeUninit<T>]>,
    /// The index of the oldest value.
    head: usize,
    /// The number of values.
    len: usize,
}

/// The lock of a ring, held.
type Locked<'r, T, L> = MutexGuard<'r, L, UnsafeCell<Ring<T>>>;

/// Lets the others have the lock for a while: the lines travel to the partner, which does a few
/// operations.
#[cold]
#[inline(never)]
fn give_way() {
    wait::delay(wait::transfers(1));
}

impl<T> Ring<T> {
    #[inline]
    fn push(&mut self, value: T) -> Result<(), Full<T>> {
        let room = self.slots.len();
        if self.len == room {
            return Err(Full(value));
        }
        let at = self.head + self.len;
        let slot = &mut self.slots[if at < room { at } else { at - room }];
        // The cell is charged for the line; the slot lies on another.
        stanchion_machine::write(&*slot);
        slot.write(value);
        self.len += 1;
        Ok(())
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        let slot = &self.slots[self.head];
        stanchion_machine::read(slot);
        // SAFETY: the first of `len` slots has a value (Invariant 2). It is taken once: `len` has
        // gone down, and `head` moves.
        let value = unsafe { slot.assume_init_read() };
        let next = self.head + 1;
        self.head = if next < self.slots.len() { next } else { 0 };
        Some(value)
    }
}

impl<T> Ring<T> {
    fn first_mut(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: the first of `len` slots has a value (Invariant 2).
        Some(unsafe { self.slots[self.head].assume_init_mut() })
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        drop_each(|| self.pop());
    }
}

impl<T> LockedRing<T> {
    /// Returns an empty queue for at most `capacity` values, under [`Barging`].
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than memory can hold.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_lock(capacity, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> LockedRing<T, L> {
    /// Returns an empty queue for at most `capacity` values, under `lock`. That lock must be free.
    ///
    /// # Panics
    ///
    /// If `capacity` is 0, or more than memory can hold.
    #[must_use]
    pub fn with_capacity_and_lock(capacity: usize, lock: L) -> Self {
        assert!(capacity > 0, "a LockedRing of capacity 0 could hold nothing: ask for 1 at least");
        assert!(capacity <= isize::MAX as usize, "no ring has room for {capacity} values");
        let slots = (0..capacity).map(|_| MaybeUninit::uninit()).collect();
        let ring = Mutex::from_raw(lock, UnsafeCell::new(Ring { slots, head: 0, len: 0 }));
        let line = Line { ring, vain_left: AtomicU32::fresh(0) };
        Self { line: CachePadded::new(line), capacity }
    }

    /// Puts `value` at the end.
    ///
    /// # Errors
    ///
    /// [`Full`] with the value, if there were as many as the capacity.
    #[inline]
    pub fn try_push(&self, value: T) -> Result<(), Full<T>> {
        self.locked(|ring| ring.push(value))
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        self.locked(Ring::pop)
    }

    /// Puts `value` at the end. If the queue is full, takes the oldest value out for it, in the
    /// same step, and returns that.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let last_two = LockedRing::with_capacity(2);
    /// assert_eq!(last_two.force_push(1), None);
    /// assert_eq!(last_two.force_push(2), None);
    /// assert_eq!(last_two.force_push(3), Some(1));
    /// assert!(last_two.into_iter().eq([2, 3]));
    /// ```
    pub fn force_push(&self, value: T) -> Option<T> {
        self.locked(|ring| {
            let Full(value) = ring.push(value).err()?;
            let oldest = ring.pop();
            // There is room now.
            let _ = ring.push(value);
            oldest
        })
    }

    /// Calls `look` with the oldest value, under the lock: a `look` that uses the queue waits for
    /// itself.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.try_push(5).is_ok());
    /// assert_eq!(ring.peek(|oldest| *oldest), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.locked(|ring| ring.first_mut().map(|oldest| look(oldest)))
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the lock: a
    /// `predicate` that uses the queue waits for itself, and one that panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.try_push(5).is_ok());
    /// assert_eq!(ring.pop_if(|oldest| oldest % 2 == 0), None);
    /// assert_eq!(ring.pop_if(|oldest| oldest % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        self.locked(|ring| if predicate(ring.first_mut()?) { ring.pop() } else { None })
    }

    /// Returns the ring to its only owner.
    fn ring(&mut self) -> &mut Ring<T> {
        self.line.ring.get_mut().get_mut()
    }

    #[inline]
    fn locked<R>(&self, operation: impl FnOnce(&mut Ring<T>) -> R) -> R {
        let Line { ring, vain_left } = &*self.line;
        let locked = ring.try_lock().unwrap_or_else(|| self.lock_held());
        let mut changed = false;
        // One closure deep, and `changed` beside it: an unoptimized build copies a large value at
        // each level.
        let outcome = locked.with_mut(|ring| {
            // SAFETY: the lock is held (Invariant 1).
            let ring = unsafe { &mut *ring };
            let before = ring.len;
            let outcome = operation(ring);
            changed = ring.len != before;
            outcome
        });
        if !changed {
            // Relaxed: see the module.
            let left = vain_left.load(Ordering::Relaxed);
            if left > 0 {
                vain_left.store(left - 1, Ordering::Relaxed);
                drop(locked);
                give_way();
            }
        }
        outcome
    }

    /// Acquires the lock, which was held at the first try.
    #[cold]
    fn lock_held(&self) -> Locked<'_, T, L> {
        let Line { ring, vain_left } = &*self.line;
        // Relaxed: see the module.
        vain_left.store(VAIN, Ordering::Relaxed);
        let turn = wait::transfers(self.capacity as u64) / OPERATIONS;
        let mut looks = OPERATIONS * LOOKS_TRANSFERS / self.capacity as u64;
        let is_small = looks > 0;
        let again = || {
            looks -= 1;
            looks > 0
        };
        // The ring is small: its holder is soon done.
        if is_small && let Some(locked) = wait::retry_for(|| ring.try_lock(), turn..turn, again) {
            return locked;
        }
        ring.lock()
    }

    /// Returns how many values there are. Takes the lock, as a push or a pop does.
    #[must_use]
    pub fn len(&self) -> usize {
        self.locked(|ring| ring.len)
    }

    /// Returns whether there is no value. Takes the lock, as a push or a pop does.
    ///
    /// The answer is in one order with all pushes and pops, also for a thread that writes something
    /// else first and looks then: a thread may announce in a flag that it is about to sleep, find
    /// the ring empty, and sleep. If the other thread pushes first and reads the flag then, one of
    /// the two sees what the other has done.
    ///
    /// ```
    /// use stanchion_lockfree::queue::LockedRing;
    ///
    /// let ring = LockedRing::with_capacity(1);
    /// assert!(ring.is_empty());
    /// assert!(ring.try_push(7).is_ok());
    /// assert!(!ring.is_empty());
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether there are as many values as the capacity. Takes the lock, as a push or a pop
    /// does.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Returns how many values there are, or `None` if the lock is held.
    fn try_len(&self) -> Option<usize> {
        let locked = self.line.ring.try_lock()?;
        // SAFETY: the lock is held (Invariant 1).
        Some(locked.with_mut(|ring| unsafe { (*ring).len }))
    }

    /// Returns the most that it can hold.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }
}

forward! {
    impl[T, L: RawMutex] ConcurrentQueue for LockedRing<T, L>;
    item: T;
    progress: Progress::Blocking;
    capacity: |queue| queue.capacity;
}

conveniences! {
    impl[T, L: RawMutex] LockedRing<T, L>;
    value: T;
    debug: |ring| len = ring.try_len(), capacity = ring.capacity();
}

exclusive! {
    impl[T, L: RawMutex] LockedRing<T, L>;
    value: T;
    push_mut: |ring, value| ring.ring().push(value);
    returns: Result<(), Full<T>>;
    pop_mut: |ring| ring.ring().pop();
    peek_mut: |ring| ring.ring().first_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(LockedRing<u32>: Send, Sync);
    assert_impl_all!(LockedRing<std::cell::Cell<u32>>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(LockedRing<std::rc::Rc<u32>>: Send, Sync);

    #[test]
    fn calls_that_change_nothing_give_way_after_two_threads_have_met() {
        let ring = LockedRing::with_capacity(1);
        let left = || ring.line.vain_left.load(Ordering::Relaxed);
        assert_eq!((ring.pop(), left()), (None, 0));
        std::thread::scope(|scope| {
            let held = ring.line.ring.lock();
            let popper = scope.spawn(|| ring.pop());
            while left() == 0 {
                std::thread::yield_now();
            }
            assert_eq!(left(), VAIN);
            drop(held);
            assert_eq!(popper.join().unwrap(), None);
        });
        // The thread that has waited found nothing.
        assert_eq!(left(), VAIN - 1);
        assert!(ring.try_push(1).is_ok());
        assert_eq!(left(), VAIN - 1);
        assert!(ring.try_push(2).is_err());
        assert_eq!(left(), VAIN - 2);
        assert_eq!((ring.pop(), left()), (Some(1), VAIN - 2));
        assert_eq!((ring.is_empty(), left()), (true, VAIN - 3));
    }
}
