//! An array that grows while threads use it and never moves: segments of doubling size, found by
//! arithmetic.
//!
//! Why not a `Vec` behind a lock: a thread that stops while it grows it would stop the others. Why
//! not a list: an element is found by its index, at once.
//!
//! | segment | elements | begins at |
//! | --- | --- | --- |
//! | 0 | 2 | 0 |
//! | 1 | 4 | 2 |
//! | *s* | 2 · 2^*s* | 2 · 2^*s* - 2 |
//!
//! A thread that needs a segment which is not there makes one and puts it in place with a
//! compare-exchange. If another thread was quicker, it frees its own.
//!
//! # Invariants
//!
//! 1. A pointer in `segments` leaves null once, for as many elements as its position says, all of
//!    them made. It stays until the array is dropped.
//!
//! # Orderings
//!
//! - **Put a segment in place**: Release. The partner is the Acquire load of
//!   [`get`](Segments::get), also in the thread that was slower.

use core::ptr;

use stanchion_machine::atomic::{AtomicPtr, Ordering};

/// The number of elements of segment 0.
const FIRST: usize = 2;

/// An array of at most `FIRST` · (2^`N` - 1) elements.
pub(crate) struct Segments<E, const N: usize> {
    /// The segments, or null. Each is written once, by the thread that makes the segment.
    segments: [AtomicPtr<E>; N],
    /// Tells the compiler that the array owns elements.
    owns: core::marker::PhantomData<E>,
}

impl<E, const N: usize> Segments<E, N> {
    /// The most elements that there can be.
    pub(crate) const CAPACITY: usize = FIRST * ((1 << N) - 1);

    /// Returns an array without elements.
    pub(crate) const fn new() -> Self {
        Self {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; N],
            owns: core::marker::PhantomData,
        }
    }

    /// Returns the segment of an index, and the offset in it.
    const fn locate(index: usize) -> (usize, usize) {
        let position = index + FIRST;
        let segment = (position.ilog2() - FIRST.ilog2()) as usize;
        (segment, position - Self::length(segment))
    }

    /// Returns the number of elements of a segment.
    const fn length(segment: usize) -> usize {
        FIRST << segment
    }

    /// Returns the element, if its segment has been made.
    ///
    /// # Panics
    ///
    /// If `index` is not below the capacity.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&E> {
        let (segment, offset) = Self::locate(index);
        // Acquire: pairs with the Release that put the segment in place.
        let elements = self.segments[segment].load(Ordering::Acquire);
        if elements.is_null() {
            return None;
        }
        // SAFETY: a segment that is there has all its elements (Invariant 1), and `offset` is below
        // their number.
        let element = unsafe { elements.add(offset) };
        // SAFETY: as above; elements are only lent shared until `self` is dropped.
        Some(unsafe { &*element })
    }

    /// Returns the element. If its segment is not there, `make` makes it.
    #[inline]
    pub(crate) fn get_or_make(&self, index: usize, make: impl FnMut() -> E) -> &E {
        if let Some(element) = self.get(index) {
            return element;
        }
        self.make(Self::locate(index).0, make);
        self.get(index).expect("a segment stays once it is made")
    }

    /// Makes the segments for the first `elements`, and returns the number of elements in them: the
    /// last segment is made whole.
    pub(crate) fn reserve(&self, elements: usize, mut make: impl FnMut() -> E) -> usize {
        let Some(last) = elements.min(Self::CAPACITY).checked_sub(1) else { return 0 };
        let segments = Self::locate(last).0 + 1;
        for segment in 0..segments {
            self.get_or_make(Self::length(segment) - FIRST, &mut make);
        }
        Self::length(segments) - FIRST
    }

    #[cold]
    fn make(&self, segment: usize, mut make: impl FnMut() -> E) {
        let length = Self::length(segment);
        let elements: Box<[E]> = core::iter::repeat_with(&mut make).take(length).collect();
        let elements = Box::into_raw(elements).cast::<E>();
        let placed = self.segments[segment].compare_exchange(
            ptr::null_mut(),
            elements,
            // Release: the elements are made before the others find them.
            Ordering::Release,
            // Relaxed: `get` loads it again.
            Ordering::Relaxed,
        );
        if placed.is_err() {
            // SAFETY: it comes from `into_raw` above, with this length, and no other thread has
            // seen it.
            unsafe { Self::free(elements, length) };
        }
    }

    /// Frees a segment.
    ///
    /// # Safety
    ///
    /// `make` made it with this length, and no thread uses it any more.
    unsafe fn free(elements: *mut E, length: usize) {
        let elements = ptr::slice_from_raw_parts_mut(elements, length);
        // SAFETY: by the caller's promise it is the box's own pointer.
        drop(unsafe { Box::from_raw(elements) });
    }

    /// Returns all elements of the segments that have been made.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        (0..N).flat_map(|segment| {
            // Acquire: pairs with the Release that put the segment in place.
            let elements = self.segments[segment].load(Ordering::Acquire);
            let length = if elements.is_null() { 0 } else { Self::length(segment) };
            (0..length).map(move |offset| {
                // SAFETY: a segment that is there has so many elements (Invariant 1).
                let element = unsafe { elements.add(offset) };
                // SAFETY: as above; elements are only lent shared until `self` is dropped.
                unsafe { &*element }
            })
        })
    }
}

impl<E, const N: usize> Drop for Segments<E, N> {
    fn drop(&mut self) {
        for (segment, elements) in self.segments.iter().enumerate() {
            // Relaxed: the owner is alone. Whatever made it so came before.
            let elements = elements.load(Ordering::Relaxed);
            if !elements.is_null() {
                // SAFETY: it was made with this length (Invariant 1), and nothing of it is lent any
                // more.
                unsafe { Self::free(elements, Self::length(segment)) };
            }
        }
    }
}

// SAFETY: it owns its elements, and gives out shared references only.
unsafe impl<E: Send + Sync, const N: usize> Send for Segments<E, N> {}
// SAFETY: as above; a thread may make elements that another drops, hence `Send` as well.
unsafe impl<E: Send + Sync, const N: usize> Sync for Segments<E, N> {}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn every_index_has_an_element_of_its_own() {
        let located: Vec<_> = (0..14).map(Segments::<u8, 3>::locate).collect();
        assert_eq!(located[..7], [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]);
        assert_eq!(located[13], (2, 7));
        assert_eq!(Segments::<u8, 3>::CAPACITY, 14);
    }

    #[test]
    fn elements_stay_where_they_are() {
        let made = Cell::new(0);
        let make = || {
            made.set(made.get() + 1);
            made.get()
        };
        let segments = Segments::<u32, 4>::new();
        assert!(segments.get(0).is_none());
        let first = segments.get_or_make(0, make);
        assert_eq!(*segments.get_or_make(5, make), 6);
        assert!(ptr::eq(first, segments.get(0).expect("it was made")));
        // A segment between may be missing.
        assert!(segments.get_or_make(29, make) > &6);
        assert!(segments.get(6).is_none());
        assert_eq!(segments.iter().count(), 2 + 4 + 16);
        assert_eq!(segments.reserve(0, make), 0);
        assert_eq!(segments.reserve(7, make), 14);
        assert_eq!(segments.iter().count(), 30);
    }

    #[test]
    fn elements_are_dropped_with_it() {
        let counted = std::sync::Arc::new(());
        let segments = Segments::<_, 3>::new();
        segments.get_or_make(2, || counted.clone());
        assert_eq!(std::sync::Arc::strong_count(&counted), 5);
        drop(segments);
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    }
}
