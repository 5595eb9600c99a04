//! An unbounded queue with a lock at each end: the default choice among the unbounded queues.
//!
//! Values are in segments, in a list that leads from the head to the tail. The protocol of the ends
//! is in [`two_ends`](super::two_ends); here are the segments.
//!
//! ```text
//! oldest ──► [ │ │A│B] ──► [C│D│E│F] ──► [G│ │ │ ]       [ │ │ │ ] ◄── spare
//!                 ▲                         ▲
//!                head                      tail
//! ```
//!
//! # Invariants
//!
//! 1. From `oldest` each segment's `next` leads to the following one, up to the tail's, which has a
//!    null `next`. Before the first push there is none.
//! 2. An end is in a segment of the list. At the end of a segment it stays until it asks for
//!    another slot. Until an end first asks, its place has a null segment and no slots.
//! 3. The head leaves a segment only for a value in the next one. So the tail has left it before.
//! 4. The first push writes `oldest`, and then the holder of the head's lock.
//! 5. The holder of the head's lock puts a segment that the head leaves into `spare` if that is
//!    null, and frees it otherwise. The holder of the tail's lock takes a segment out of `spare`.
//!
//! # Orderings
//!
//! - **Pop: put a segment into `spare`**: Release. The partner is the Acquire load of a push: no
//!   pop uses the segment any more.
//! - **Push: clear `spare`**: Relaxed, without a partner. A pop that sees null puts another pointer
//!   there. A pop that still sees the old pointer frees its own segment.
//!
//! A `next` is written before the first value of its segment passes the tail. A pop that has seen
//! that value pass reads it.
//!
//! Source: Michael and Scott 1996 have a node for each value (see
//! [`TwoLockQueue`](super::TwoLockQueue)); segments are usual.

use core::mem::{self, MaybeUninit};
use core::ptr;

use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use super::two_ends::{Slot, Slots, TwoEnds};
use crate::Progress;
use crate::barging::BargingAtEnd;

/// The bytes of a queue's first segment. A model has two slots, so that a segment comes to its end.
const FIRST: usize = stanchion_machine::sized(512, 2 * SLOT);

/// The most bytes of a segment that has more than two slots. A new one has at most twice as many
/// slots as the one before. Why more than at first: the processor fetches ahead within a segment
/// only.
const MOST: usize = stanchion_machine::sized(4096, 2 * SLOT);

/// A smaller slot counts as so many bytes.
const SLOT: usize = 8;

/// An unbounded queue of `T` with a lock `L` at each end: any `lock_api` raw mutex, by default the
/// one for very short sections.
///
/// | | |
/// | --- | --- |
/// | progress | [`Blocking`](Progress::Blocking): see below |
/// | cost | the lock's; by default two locked instructions for a push and a pop |
/// | a call in vain | takes both locks |
/// | memory | segments of 64 to 512 slots; one segment to spare |
/// | fairness | the lock's: by default none, a waiter may be passed over for milliseconds |
///
/// A thread that stops with the lock of an end stops the calls at that end. A thread that stops in
/// a push also stops the pops that find nothing, `is_empty` of an empty queue, and `len`.
///
/// A segment has 64 slots at first and 512 at most. Of values of more than 8 bytes it has 512 to
/// 4,096 bytes, and at least 2. A push that comes to the end of a segment takes the spare one, or
/// allocates one under its lock. A pop that leaves a segment keeps it as the spare one, or frees it
/// under its lock. An empty queue keeps up to two.
///
/// Where all threads push and pop, with next to no other work, [`LockedQueue`](super::LockedQueue)
/// under [`Barging`](crate::barging::Barging) is a little faster. It also has `with_capacity` and
/// `pop_all`.
///
/// ```
/// use stanchion_lockfree::queue::SegmentedQueue;
///
/// static QUEUE: SegmentedQueue<&str> = SegmentedQueue::new();
/// QUEUE.push("first");
/// QUEUE.push("second");
/// assert_eq!(QUEUE.pop(), Some("first"));
/// assert_eq!(QUEUE.len(), 1);
/// ```
///
/// With locks that let waiters sleep, and seldom pass one over for longer than 10 ms:
///
/// ```
/// use stanchion_competitive::RawPolicyMutex;
/// use stanchion_lockfree::queue::SegmentedQueue;
///
/// let queue: SegmentedQueue<u32, RawPolicyMutex> = (1..=3).collect();
/// assert!(queue.into_iter().eq([1, 2, 3]));
/// ```
///
/// Values that are not `Send` cannot be shared by it:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>(_: &T) {}
/// let queue: stanchion_lockfree::queue::SegmentedQueue<std::rc::Rc<()>> = Default::default();
/// shared(&queue);
/// ```
pub struct SegmentedQueue<T, L: RawMutex = BargingAtEnd> {
    /// The ends, and the slots between them.
    ends: TwoEnds<Segments<T>, L>,
}

/// The segments of a queue.
pub(super) struct Segments<T> {
    /// The first segment of the list, or null (Invariants 1 and 4).
    oldest: UnsafeCell<*mut Segment<T>>,
    /// A segment for use again, or null (Invariant 5).
    spare: AtomicPtr<Segment<T>>,
}

/// A segment of the list.
struct Segment<T> {
    /// The next segment, or null. Written by the holder of the tail's lock.
    next: UnsafeCell<*mut Segment<T>>,
    /// The slots.
    slots: Box<[Slot<T>]>,
}

/// The place of an end.
pub(super) struct Place<T> {
    /// The segment, or null before the end first asks for a slot.
    segment: *mut Segment<T>,
    /// The index of the next slot. At the end of the segment it is the number of slots.
    slot: u32,
    /// The number of slots of the segment.
    slots: u32,
}

// SAFETY: the segments belong to the queue, with the values.
unsafe impl<T: Send> Send for Segments<T> {}
// SAFETY: as above; a place is used where the queue is.
unsafe impl<T: Send> Send for Place<T> {}

impl<T> Segment<T> {
    fn allocate(slots: usize) -> *mut Self {
        let slots = (0..slots).map(|_| UnsafeCell::fresh(MaybeUninit::uninit())).collect();
        Box::into_raw(Box::new(Self { next: UnsafeCell::fresh(ptr::null_mut()), slots }))
    }

    /// Returns how many slots fit into `bytes`, at least 2.
    fn slots_of(bytes: usize) -> usize {
        (bytes / size_of::<T>().max(SLOT)).max(2)
    }
}

impl<T> Place<T> {
    /// The place of an end that has asked for no slot yet.
    const BEFORE: Self = Self { segment: ptr::null_mut(), slot: 0, slots: 0 };

    /// Returns the first place of `segment`.
    ///
    /// # Safety
    ///
    /// The segment is in the list, and the head has not left it.
    unsafe fn of(segment: *mut Segment<T>) -> Self {
        // SAFETY: by the caller's promise it has not been freed.
        let slots = unsafe { &(*segment).slots };
        Self { segment, slot: 0, slots: slots.len() as u32 }
    }

    /// Returns whether the end goes to the next segment with its next value.
    const fn is_at_end(&self) -> bool {
        self.slot == self.slots
    }
}

impl<T> Segments<T> {
    /// Returns the cell with the pointer to the segment after that of `place`.
    ///
    /// # Safety
    ///
    /// The caller holds the lock of an end of this queue, or is alone, and `place` is that end's.
    unsafe fn link(&self, place: &Place<T>) -> &UnsafeCell<*mut Segment<T>> {
        if place.segment.is_null() {
            &self.oldest
        } else {
            // SAFETY: the end is in that segment (Invariant 2).
            unsafe { &(*place.segment).next }
        }
    }

    /// Returns the slot at `place`.
    ///
    /// # Safety
    ///
    /// As for [`link`](Self::link), and the place is not at the end of its segment.
    #[inline]
    unsafe fn slot(&self, place: &Place<T>) -> &Slot<T> {
        // SAFETY: the end is in that segment (Invariant 2).
        let segment = unsafe { &*place.segment };
        &segment.slots[place.slot as usize]
    }

    /// Moves the tail to another segment, the spare one or a new one.
    ///
    /// # Safety
    ///
    /// The caller holds the tail's lock, or is alone. `place` is the tail's, and at the end of its
    /// segment.
    #[cold]
    unsafe fn append(&self, place: &mut Place<T>) {
        // Acquire: no pop uses it any more. The partner is the Release of `leave`.
        let mut segment = self.spare.load(Ordering::Acquire);
        if segment.is_null() {
            let double = Segment::<T>::slots_of(MOST).min(2 * place.slots as usize);
            segment = Segment::allocate(double.max(Segment::<T>::slots_of(FIRST)));
        } else {
            // Relaxed: see the header.
            self.spare.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: it was in `spare`, and only the holder of this lock takes it out (Invariant
            // 5).
            let next = unsafe { &(*segment).next };
            // SAFETY: as above.
            next.with_mut(|next| unsafe { *next = ptr::null_mut() });
        }
        // SAFETY: by the caller's promise.
        let link = unsafe { self.link(place) };
        // SAFETY: no pop reads it before the next value has passed the tail.
        link.with_mut(|link| unsafe { *link = segment });
        // SAFETY: it is in the list now, and the head cannot leave it before the tail does.
        *place = unsafe { Place::of(segment) };
    }

    /// Moves the head to the next segment.
    ///
    /// # Safety
    ///
    /// The caller holds the head's lock, or is alone. `place` is the head's, and at the end of its
    /// segment. The push of the first value of the next segment happens before.
    #[cold]
    unsafe fn leave(&self, place: &mut Place<T>) {
        // SAFETY: by the caller's promise.
        let link = unsafe { self.link(place) };
        // SAFETY: it was written before that value was pushed, and not since.
        let segment = link.with(|link| unsafe { *link });
        // SAFETY: the head has not been there yet.
        let left = mem::replace(place, unsafe { Place::of(segment) }).segment;
        if left.is_null() {
            return;
        }
        // SAFETY: the first push, which wrote it, happens before. Then only the holder of this lock
        // does (Invariant 4).
        self.oldest.with_mut(|oldest| unsafe { *oldest = segment });
        // Relaxed: see the header.
        if self.spare.load(Ordering::Relaxed).is_null() {
            // Release: no pop uses it any more. The partner is the Acquire of `append`.
            self.spare.store(left, Ordering::Release);
        } else {
            // SAFETY: both ends have left it (Invariant 3), and nothing names it.
            drop(unsafe { Box::from_raw(left) });
        }
    }
}

// SAFETY: both ends go through the same list, and through each segment in order. A segment is used
// again only after the head has left it, and freed only then (Invariants 3 and 5).
unsafe impl<T> Slots for Segments<T> {
    type Value = T;
    type Place = Place<T>;

    const START: Place<T> = Place::BEFORE;

    #[inline]
    fn capacity(&self) -> Option<usize> {
        None
    }

    #[inline]
    unsafe fn at_tail(&self, place: &mut Place<T>) -> &Slot<T> {
        if place.is_at_end() {
            // SAFETY: by the caller's promise.
            unsafe { self.append(place) };
        }
        // SAFETY: as above; and it is not at the end.
        unsafe { self.slot(place) }
    }

    #[inline]
    unsafe fn at_head(&self, place: &mut Place<T>) -> &Slot<T> {
        if place.is_at_end() {
            // SAFETY: by the caller's promise; the value is in the next segment.
            unsafe { self.leave(place) };
        }
        // SAFETY: as above; and it is not at the end.
        unsafe { self.slot(place) }
    }

    #[inline]
    unsafe fn advance(&self, place: &mut Place<T>) {
        place.slot += 1;
    }
}

impl<T> Drop for Segments<T> {
    fn drop(&mut self) {
        let mut next = *self.oldest.get_mut();
        while !next.is_null() {
            // SAFETY: it is in the list once (Invariant 1), and no other thread has the queue.
            let mut segment = unsafe { Box::from_raw(next) };
            next = *segment.next.get_mut();
        }
        // Relaxed: the thread that drops the queue comes after all pops.
        let spare = self.spare.load(Ordering::Relaxed);
        if !spare.is_null() {
            // SAFETY: nothing else names it.
            drop(unsafe { Box::from_raw(spare) });
        }
    }
}

impl<T> SegmentedQueue<T> {
    /// Returns an empty queue, which has not allocated, under [`BargingAtEnd`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_locks(RawMutex::INIT, RawMutex::INIT)
    }
}

impl<T, L: RawMutex> SegmentedQueue<T, L> {
    /// Returns an empty queue, which has not allocated, with a lock for each end. Both must be
    /// free.
    #[must_use]
    pub const fn with_locks(head: L, tail: L) -> Self {
        let oldest = UnsafeCell::new(ptr::null_mut());
        let segments = Segments { oldest, spare: AtomicPtr::new(ptr::null_mut()) };
        Self { ends: TwoEnds::new(segments, head, tail) }
    }

    /// Puts `value` at the end.
    #[inline]
    pub fn push(&self, value: T) {
        let Some((_tail, turn)) = self.ends.tail() else {
            unreachable!("a queue without a bound has room")
        };
        // SAFETY: the lock is held, and the turn is the tail's.
        unsafe { self.ends.put(turn, value) };
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let (_head, turn) = self.ends.head()?;
        // SAFETY: the lock is held, and the turn is the head's.
        Some(unsafe { self.ends.take(turn) })
    }

    /// Calls `look` with the oldest value, under the lock of the head. A `look` may push; one that
    /// calls any other method of the queue waits for itself.
    ///
    /// ```
    /// use stanchion_lockfree::queue::SegmentedQueue;
    ///
    /// let queue = SegmentedQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.peek(|oldest| *oldest), Some(5));
    /// ```
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.ends.peek(look)
    }

    /// Takes the oldest value, if `predicate` is true of it. Calls `predicate` under the lock of
    /// the head: one that calls a method of the queue, but for `push`, waits for itself. One that
    /// panics takes nothing.
    ///
    /// ```
    /// use stanchion_lockfree::queue::SegmentedQueue;
    ///
    /// let queue = SegmentedQueue::new();
    /// queue.push(5);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 0), None);
    /// assert_eq!(queue.pop_if(|oldest| oldest % 2 == 1), Some(5));
    /// ```
    pub fn pop_if(&self, predicate: impl FnOnce(&T) -> bool) -> Option<T> {
        self.ends.pop_if(predicate)
    }

    /// Returns how many values there are. Takes both locks, as [`LockedRing::len`] does.
    ///
    /// [`LockedRing::len`]: super::LockedRing::len
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no value. Takes the head's lock, and the tail's if it finds none.
    ///
    /// The answer is in one order with all pushes and pops: see [`LockedRing::is_empty`].
    ///
    /// [`LockedRing::is_empty`]: super::LockedRing::is_empty
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

forward! {
    impl[T, L: RawMutex] ConcurrentQueue for SegmentedQueue<T, L>;
    item: T;
    progress: Progress::Blocking;
}

conveniences! {
    impl[T, L: RawMutex] SegmentedQueue<T, L>;
    value: T;
    new: SegmentedQueue::with_locks(L::INIT, L::INIT);
    debug: |queue| len = queue.ends.try_len();
}

exclusive! {
    impl[T, L: RawMutex] SegmentedQueue<T, L>;
    value: T;
    push_mut: |queue, value| {
        let Ok(()) = queue.ends.push_exclusive(value) else {
            unreachable!("a queue without a bound has room")
        };
    };
    pop_mut: |queue| queue.ends.pop_exclusive();
    peek_mut: |queue| queue.ends.first_mut();
    cost: "Takes no lock.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use static_assertions::{assert_impl_all, assert_not_impl_any};

    assert_impl_all!(SegmentedQueue<u32>: Send, Sync);
    assert_impl_all!(SegmentedQueue<std::cell::Cell<u32>>: Send, Sync);
    // A value that must stay with its thread must not be pushed here and popped there.
    assert_not_impl_any!(SegmentedQueue<std::rc::Rc<u32>>: Send, Sync);

    /// Returns the segments of the list, and those to spare.
    fn segments<T>(queue: &mut SegmentedQueue<T>) -> [usize; 2] {
        let segments = queue.ends.slots_mut();
        let mut next = *segments.oldest.get_mut();
        let mut count = 0;
        while !next.is_null() {
            count += 1;
            // SAFETY: no other thread has the queue.
            next = unsafe { *(*next).next.get_mut() };
        }
        [count, usize::from(!segments.spare.load(Ordering::Relaxed).is_null())]
    }

    #[test]
    fn one_segment_is_used_again_and_further_ones_are_freed() {
        let mut queue = SegmentedQueue::new();
        assert_eq!((queue.pop(), segments(&mut queue)), (None, [0, 0]));
        // 64, 128, 256 and 512 slots.
        (0..960).for_each(|number| queue.push(number));
        assert_eq!(segments(&mut queue), [4, 0]);
        assert!((0..960).all(|number| queue.pop() == Some(number)));
        assert_eq!((queue.pop(), segments(&mut queue)), (None, [1, 1]));
        for number in 0..10_000 {
            queue.push(number);
            assert_eq!(queue.pop(), Some(number));
            assert_eq!(segments(&mut queue), [1, 1]);
        }
    }

    #[test]
    fn a_segment_of_large_values_has_fewer() {
        assert_eq!([FIRST, MOST].map(Segment::<()>::slots_of), [64, 512]);
        assert_eq!([FIRST, MOST].map(Segment::<u64>::slots_of), [64, 512]);
        assert_eq!([FIRST, MOST].map(Segment::<[u8; 1000]>::slots_of), [2, 4]);
        assert_eq!([FIRST, MOST].map(Segment::<[u8; 1_000_000]>::slots_of), [2, 2]);
    }
}
