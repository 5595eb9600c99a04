//! Elements that are numbered as they are needed, and stay where they are.
//!
//! Why numbers and not pointers: two of them, or one and a tag, fit into a word that can be
//! exchanged.
//!
//! # Invariants
//!
//! 1. A number is given once, when its element is there.

use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::segments::Segments;

/// Segments for 2^32 - 3 elements and more. A model is content with 30.
const SEGMENTS: usize = stanchion_machine::sized(31, 4);

/// The most numbers that are given.
const MOST: u32 = u32::MAX - 2;

/// Elements of type `T`, numbered from 0.
pub(crate) struct Numbered<T> {
    /// The elements, by their numbers.
    elements: Segments<T, SEGMENTS>,
    /// The number of numbers that have been asked for. Once there are no more, it exceeds that of
    /// the numbers given, so it is wider than they are. Counted up by the threads that ask.
    given: AtomicU64,
}

impl<T> Numbered<T> {
    /// Returns a set with no elements.
    pub(crate) const fn new() -> Self {
        Self { elements: Segments::new(), given: AtomicU64::new(0) }
    }

    /// Returns a set with memory for `count` elements.
    pub(crate) fn with_capacity(count: usize, make: impl FnMut() -> T) -> Self {
        let numbered = Self::new();
        numbered.elements.reserve(count, make);
        numbered
    }

    #[cfg(test)]
    /// Returns the number of numbers that have been given or are about to be: a hint.
    #[inline]
    pub(crate) fn given(&self) -> u64 {
        // Relaxed: a hint.
        self.given.load(Ordering::Relaxed)
    }

    /// Gives the next number. If its element is not there, `make` makes it, with others.
    ///
    /// # Panics
    ///
    /// If 2^32 - 3 have been given.
    pub(crate) fn add(&self, make: impl FnMut() -> T) -> u32 {
        // Relaxed: the number is all there is to see. The elements have their own orderings.
        let number = self.given.fetch_add(1, Ordering::Relaxed);
        if number >= u64::from(MOST) {
            full();
        }
        self.elements.get_or_make(number as usize, make);
        number as u32
    }

    /// Returns the element of any number, if it is there.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.elements.get(number as usize)
    }

    /// Returns the element of a number that was given to this thread, or to a thread that passed it
    /// on to this one.
    ///
    /// # Panics
    ///
    /// If it has not.
    #[inline]
    pub(crate) fn at(&self, number: u32) -> &T {
        self.get(number).expect("it has been given")
    }
}

#[cold]
fn full() -> ! {
    panic!("{MOST} elements are in use, and they are numbered in 32 bits");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_stay_where_they_are() {
        let numbered = Numbered::new();
        let mut next = 0;
        let first = numbered.add(|| {
            next += 1;
            next
        });
        let address = core::ptr::from_ref(numbered.at(first));
        for number in 1..100 {
            assert_eq!(numbered.add(|| 0), number);
        }
        assert_eq!((numbered.given(), *numbered.at(first)), (100, 1));
        assert!(core::ptr::eq(address, numbered.at(first)));
    }

    #[test]
    fn room_is_made_at_once() {
        let numbered: Numbered<Box<u8>> = Numbered::with_capacity(13, Box::default);
        let never = || unreachable!("there is room for 13");
        assert_eq!((0..13).map(|_| numbered.add(never)).max(), Some(12));
    }

    #[test]
    #[should_panic(expected = "it has been given")]
    fn what_was_not_given_is_refused() {
        let _: &u8 = Numbered::new().at(40);
    }
}
