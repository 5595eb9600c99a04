//! Numbered places that stay where they are while their number grows.
//!
//! Why not a `Vec` behind a pointer: growing one moves what others look at. Here growth adds a segment as large as all before it, and a number says by its
//! highest bit which segment it is in.
//!
//! ```text
//! number   0 1 2 3 | 4 .. 11 | 12 .. 27 | 28 .. 59 | ...
//! segment     0    |    1    |     2    |     3    | ...
//! ```
//!
//! # Invariants
//!
//! 1. A segment that is not null has `FIRST << its number` places, and stays until the whole is dropped.
//! 2. A number is given to its receiver when its segment is there, and once only.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | publish a segment | Release | the Acquire look of another thread that is given a place in it, or tries any number |
//! | find a segment by number | Relaxed | nobody: the number came from a thread that was given it, and that has seen the segment |

use core::ptr;

use machine::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Places of the first segment.
const FIRST: u32 = 4;

/// So many segments hold 2^32 - 4 places.
const SEGMENTS: usize = 30;

/// Places for `T`, from 0.
pub(crate) struct Segments<T> {
    segments: [AtomicPtr<T>; SEGMENTS],
    /// How many numbers have been given, or are about to be.
    given: AtomicU32,
    /// How many segments were made at the start.
    made: usize,
}

// SAFETY: it owns its places, as a `Vec` would.
unsafe impl<T: Send> Send for Segments<T> {}
// SAFETY: it hands out shared references only.
unsafe impl<T: Send + Sync> Sync for Segments<T> {}

/// Segment, and place in it.
#[inline]
fn split(number: u32) -> (usize, usize) {
    let from_one = number + FIRST;
    let segment = from_one.ilog2() - FIRST.ilog2();
    (segment as usize, (from_one - (FIRST << segment)) as usize)
}

/// Places of this segment.
fn places(segment: usize) -> usize {
    (FIRST as usize) << segment
}

impl<T> Segments<T> {
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            given: AtomicU32::new(0),
            made: 0,
        }
    }

    /// How many numbers have been given or are about to be: a hint.
    #[inline]
    pub(crate) fn given(&self) -> u32 {
        // Relaxed: a hint.
        self.given.load(Ordering::Relaxed)
    }

    /// The next number, whose place is made by `make` with all others of its segment if it is the first of it.
    ///
    /// # Panics
    ///
    /// If 2^32 - 4 have been given.
    pub(crate) fn add(&self, make: impl FnMut() -> T) -> u32 {
        // Relaxed: the number is all there is to see; the segment has its own orderings.
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        if number > u32::MAX - FIRST {
            self.full();
        }
        self.ensure(split(number).0, make);
        number
    }

    /// With places for `count` numbers.
    pub(crate) fn with_places(count: usize, mut make: impl FnMut() -> T) -> Self {
        let count = u32::try_from(count).unwrap_or(u32::MAX).min(u32::MAX - FIRST);
        let made = if count > 0 { split(count - 1).0 + 1 } else { 0 };
        let mut segments = Self::new();
        segments.made = made;
        (0..made).for_each(|segment| segments.ensure(segment, &mut make));
        segments
    }

    #[cold]
    fn full(&self) -> ! {
        // Relaxed: as in `add`.
        self.given.fetch_sub(1, Ordering::Relaxed);
        panic!("2^32 - {FIRST} places are in use, and they are numbered in 32 bits");
    }

    /// Makes the segment, unless it is there.
    fn ensure(&self, segment: usize, make: impl FnMut() -> T) {
        let link = &self.segments[segment];
        // Acquire: pairs with the Release of whoever made it.
        if !link.load(Ordering::Acquire).is_null() {
            return;
        }
        let made: Box<[T]> = core::iter::repeat_with(make).take(places(segment)).collect();
        let made = Box::into_raw(made).cast::<T>();
        // Release: publishes the places. Acquire: pairs with it, if another thread was first.
        let published =
            link.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Acquire);
        if published.is_err() {
            // SAFETY: made above with so many places, and nobody else has seen it.
            drop(unsafe { Self::whole(made, segment) });
        }
    }

    /// The segment as what it was made of.
    ///
    /// # Safety
    ///
    /// The caller owns the segment, whose number this is.
    unsafe fn whole(start: *mut T, segment: usize) -> Box<[T]> {
        let slice = ptr::slice_from_raw_parts_mut(start, places(segment));
        // SAFETY: `ensure` took it out of a box of this length, and the caller owns it.
        unsafe { Box::from_raw(slice) }
    }

    /// The place of any number, if its segment is there.
    #[inline]
    pub(crate) fn try_at(&self, number: u32) -> Option<&T> {
        let (segment, place) = split(number);
        // Acquire: pairs with the Release of whoever made it.
        let start = self.segments[segment].load(Ordering::Acquire);
        if start.is_null() {
            return None;
        }
        // SAFETY: `split` yields a place below the segment's length (Invariant 1).
        let place = unsafe { start.add(place) };
        // SAFETY: it stays until `self` is dropped, and only shared references are handed out (Invariant 1).
        Some(unsafe { &*place })
    }

    /// The place of a number that has been given, to this thread or to one that has told this thread.
    ///
    /// # Panics
    ///
    /// If it has not.
    #[inline]
    pub(crate) fn at(&self, number: u32) -> &T {
        let (segment, place) = split(number);
        // Relaxed: the segment's publication happened before the number came to this thread (Invariant 2).
        let start = self.segments[segment].load(Ordering::Relaxed);
        assert!(!start.is_null(), "place {number} has not been given");
        // SAFETY: `split` yields a place below the segment's length (Invariant 1).
        let place = unsafe { start.add(place) };
        // SAFETY: it stays until `self` is dropped, and only shared references are handed out (Invariant 1).
        unsafe { &*place }
    }
}

impl<T> Drop for Segments<T> {
    fn drop(&mut self) {
        let used = match self.given() {
            0 => 0,
            given => split(given - 1).0 + 1,
        };
        for (segment, link) in self.segments[..used.max(self.made)].iter().enumerate() {
            // Relaxed: the sole owner looks. Whoever panicked while making a segment has left it null.
            let start = link.load(Ordering::Relaxed);
            if !start.is_null() {
                // SAFETY: nobody else has `self` any more.
                drop(unsafe { Self::whole(start, segment) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        assert_eq!([0, 3, 4, 11, 12].map(split), [(0, 0), (0, 3), (1, 0), (1, 7), (2, 0)]);
        assert_eq!(split(u32::MAX - FIRST), (SEGMENTS - 1, places(SEGMENTS - 1) - 1));
        for number in 0..1_000 {
            let (segment, place) = split(number);
            let before: usize = (0..segment).map(places).sum();
            assert_eq!(before + place, number as usize);
        }
    }

    #[test]
    fn places_stay_where_they_are() {
        let segments = Segments::new();
        let mut next = 0;
        let first = segments.add(|| {
            next += 1;
            next
        });
        let place = ptr::from_ref(segments.at(first));
        for _ in 0..100 {
            segments.add(|| 0);
        }
        assert_eq!((segments.given(), *segments.at(first)), (101, 1));
        assert!(ptr::eq(place, segments.at(first)));
    }

    #[test]
    fn room_is_made_at_once() {
        let segments: Segments<Box<u8>> = Segments::with_places(13, Box::default);
        let never = || unreachable!("there is room for 13");
        assert_eq!((0..13).map(|_| segments.add(never)).max(), Some(12));
    }

    #[test]
    #[should_panic(expected = "has not been given")]
    fn what_was_not_given_is_refused() {
        let _: &u8 = Segments::new().at(40);
    }
}
