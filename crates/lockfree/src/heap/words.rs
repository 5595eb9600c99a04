//! Keys that are whole words, so that they can be read while another thread writes them.
//!
//! A structure that copies nodes reads keys that may be overwritten at the same moment. For a plain
//! value that is a data race, whatever the reader does with it afterwards. So a key is stored as
//! atomic words. They are read one by one, and used only once it is known that no thread wrote
//! meanwhile. A torn read is never made a key.
//!
//! Why a conversion and not a marker trait for "any bytes will do": it needs no `unsafe`, padding
//! does not matter, and a `bool` or a `NonZeroU32` is as good a key as a number.
//!
//! Source: Herlihy 1993, section 4.1, copies blocks that may be recycled meanwhile. Rust RFC 3301
//! describes the language support that it needs.

use core::cmp::{self, Reverse};
use core::num::{NonZeroU8, NonZeroU16, NonZeroU32, NonZeroU64, NonZeroUsize};
use core::time::Duration;

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

/// A value that is made of whole words: the key of a [`HerlihyHeap`](super::HerlihyHeap).
///
/// Implemented for integers, `bool`, `char`, `Duration`, `Reverse`, tuples of up to four, arrays of
/// words, and floats by way of [`Total`].
///
/// ```
/// use stanchion_lockfree::heap::Words;
///
/// /// The dearest first, then the oldest.
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
/// struct Urgency {
///     price: std::cmp::Reverse<u32>,
///     since: u64,
/// }
///
/// impl Words for Urgency {
///     type Block = (u64, u64);
///
///     fn to_words(self) -> (u64, u64) {
///         (self.price.to_words(), self.since)
///     }
///
///     fn from_words((price, since): (u64, u64)) -> Self {
///         Self { price: std::cmp::Reverse::from_words(price), since }
///     }
/// }
///
/// let heap = stanchion_lockfree::heap::HerlihyHeap::new();
/// heap.push(Urgency { price: std::cmp::Reverse(5), since: 0 }, "cheap");
/// heap.push(Urgency { price: std::cmp::Reverse(9), since: 1 }, "dear");
/// assert_eq!(heap.pop_min().unwrap().1, "dear");
/// ```
pub trait Words: Copy {
    /// The words: `u64`, an array of them, or a tuple of such.
    type Block: Block;

    /// Returns the words of this value.
    fn to_words(self) -> Self::Block;

    /// Returns the value with these words. They are always those that [`to_words`](Self::to_words)
    /// made of one value.
    fn from_words(words: Self::Block) -> Self;
}

/// Words that can be stored one by one. This crate implements it; see [`Words`].
pub trait Block: Copy + sealed::Sealed {
    /// The same words for threads to share.
    #[doc(hidden)]
    type Atoms: Send + Sync;

    #[doc(hidden)]
    fn fresh() -> Self::Atoms;

    /// Loads the words. Relaxed throughout: the reader checks afterwards that no thread wrote
    /// meanwhile.
    #[doc(hidden)]
    fn load(atoms: &Self::Atoms) -> Self;

    /// Stores the words. Relaxed throughout: the structure publishes them.
    #[doc(hidden)]
    fn store(self, atoms: &Self::Atoms);
}

mod sealed {
    pub trait Sealed {}
}

impl sealed::Sealed for u64 {}

impl Block for u64 {
    type Atoms = AtomicU64;

    fn fresh() -> AtomicU64 {
        AtomicU64::fresh(0)
    }

    #[inline]
    fn load(atoms: &AtomicU64) -> Self {
        // Relaxed: see the trait.
        atoms.load(Ordering::Relaxed)
    }

    #[inline]
    fn store(self, atoms: &AtomicU64) {
        // Relaxed: see the trait.
        atoms.store(self, Ordering::Relaxed);
    }
}

impl<const N: usize> sealed::Sealed for [u64; N] {}

impl<const N: usize> Block for [u64; N] {
    type Atoms = [AtomicU64; N];

    fn fresh() -> [AtomicU64; N] {
        core::array::from_fn(|_| u64::fresh())
    }

    #[inline]
    fn load(atoms: &[AtomicU64; N]) -> Self {
        core::array::from_fn(|word| u64::load(&atoms[word]))
    }

    #[inline]
    fn store(self, atoms: &[AtomicU64; N]) {
        self.into_iter().zip(atoms).for_each(|(word, atom)| word.store(atom));
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),*);)+) => {$(
        impl<$($part: Block),*> sealed::Sealed for ($($part,)*) {}

        #[allow(clippy::unused_unit)]
        impl<$($part: Block),*> Block for ($($part,)*) {
            type Atoms = ($($part::Atoms,)*);

            fn fresh() -> Self::Atoms {
                ($($part::fresh(),)*)
            }

            #[inline]
            fn load(_atoms: &Self::Atoms) -> Self {
                ($($part::load(&_atoms.$at),)*)
            }

            #[inline]
            fn store(self, _atoms: &Self::Atoms) {
                $(self.$at.store(&_atoms.$at);)*
            }
        }

        #[allow(clippy::unused_unit)]
        impl<$($part: Words),*> Words for ($($part,)*) {
            type Block = ($($part::Block,)*);

            #[inline]
            fn to_words(self) -> Self::Block {
                ($(self.$at.to_words(),)*)
            }

            #[inline]
            fn from_words(_words: Self::Block) -> Self {
                ($($part::from_words(_words.$at),)*)
            }
        }
    )+};
}

tuples! {
    ();
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
}

/// Implements `Words` by `$value: $from to u64, from u64`. The `unwrap`s cannot fail, because the
/// words are those that the first expression made.
macro_rules! one_word {
    ($($kind:ty: |$value:ident| $to:expr, |$word:ident| $from:expr;)+) => {$(
        impl Words for $kind {
            type Block = u64;

            #[inline]
            fn to_words(self) -> u64 {
                let $value = self;
                $to
            }

            #[inline]
            fn from_words($word: u64) -> Self {
                $from
            }
        }
    )+};
}

/// The panic message of a conversion from words that no `to_words` made.
const FOREIGN: &str = "these words were not made by `to_words` of this type";

one_word! {
    u8: |value| u64::from(value), |word| word as u8;
    u16: |value| u64::from(value), |word| word as u16;
    u32: |value| u64::from(value), |word| word as u32;
    u64: |value| value, |word| word;
    usize: |value| value as u64, |word| word as usize;
    i8: |value| value as u64, |word| word as i8;
    i16: |value| value as u64, |word| word as i16;
    i32: |value| value as u64, |word| word as i32;
    i64: |value| value as u64, |word| word as i64;
    isize: |value| value as u64, |word| word as isize;
    bool: |value| u64::from(value), |word| word != 0;
    char: |value| u64::from(value), |word| char::from_u32(word as u32).expect(FOREIGN);
    NonZeroU8: |value| u64::from(value.get()), |word| Self::new(word as u8).expect(FOREIGN);
    NonZeroU16: |value| u64::from(value.get()), |word| Self::new(word as u16).expect(FOREIGN);
    NonZeroU32: |value| u64::from(value.get()), |word| Self::new(word as u32).expect(FOREIGN);
    NonZeroU64: |value| value.get(), |word| Self::new(word).expect(FOREIGN);
    NonZeroUsize: |value| value.get() as u64, |word| Self::new(word as usize).expect(FOREIGN);
    Total<f32>: |value| u64::from(value.0.to_bits()), |word| Self(f32::from_bits(word as u32));
    Total<f64>: |value| value.0.to_bits(), |word| Self(f64::from_bits(word));
}

macro_rules! two_words {
    ($($kind:ty),+) => {$(
        impl Words for $kind {
            type Block = [u64; 2];

            #[inline]
            fn to_words(self) -> [u64; 2] {
                [(self >> 64) as u64, self as u64]
            }

            #[inline]
            fn from_words([high, low]: [u64; 2]) -> Self {
                (Self::from(high) << 64) | Self::from(low)
            }
        }
    )+};
}

two_words!(u128, i128);

impl<const N: usize> Words for [u64; N] {
    type Block = Self;

    #[inline]
    fn to_words(self) -> Self {
        self
    }

    #[inline]
    fn from_words(words: Self) -> Self {
        words
    }
}

impl Words for Duration {
    type Block = (u64, u64);

    #[inline]
    fn to_words(self) -> (u64, u64) {
        (self.as_secs(), self.subsec_nanos().into())
    }

    #[inline]
    fn from_words((seconds, nanos): (u64, u64)) -> Self {
        Self::new(seconds, nanos as u32)
    }
}

impl<W: Words> Words for Reverse<W> {
    type Block = W::Block;

    #[inline]
    fn to_words(self) -> W::Block {
        self.0.to_words()
    }

    #[inline]
    fn from_words(words: W::Block) -> Self {
        Self(W::from_words(words))
    }
}

/// A float in IEEE 754's total order, in which -0 comes before 0. A NaN comes last, or first if its
/// sign is set.
///
/// ```
/// use stanchion_lockfree::heap::{HerlihyHeap, Total};
///
/// let heap = HerlihyHeap::new();
/// heap.push(Total(0.5), "half");
/// heap.push(Total(-1.0), "less");
/// assert_eq!(heap.pop_min(), Some((Total(-1.0), "less")));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Total<F>(
    /// The float.
    pub F,
);

macro_rules! total {
    ($($float:ty),+) => {$(
        impl PartialEq for Total<$float> {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for Total<$float> {}

        impl PartialOrd for Total<$float> {
            fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for Total<$float> {
            fn cmp(&self, other: &Self) -> cmp::Ordering {
                self.0.total_cmp(&other.0)
            }
        }
    )+};
}

total!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back<W: Words + PartialEq + core::fmt::Debug>(values: &[W]) {
        let atoms = W::Block::fresh();
        for value in values {
            value.to_words().store(&atoms);
            assert_eq!(W::from_words(W::Block::load(&atoms)), *value);
        }
    }

    #[test]
    fn what_goes_in_comes_out() {
        comes_back(&[i8::MIN, -1, 0, i8::MAX]);
        comes_back(&[u16::MAX, 0]);
        comes_back(&[i32::MIN, -1, i32::MAX]);
        comes_back(&[i64::MIN, -1, i64::MAX]);
        comes_back(&[u64::MAX, 1 << 63]);
        comes_back(&[u128::MAX, 1 << 64, 1]);
        comes_back(&[i128::MIN, -1, i128::MAX]);
        comes_back(&[true, false]);
        comes_back(&['a', char::MAX]);
        comes_back(&[NonZeroU32::MAX, NonZeroU32::MIN]);
        comes_back(&[Duration::MAX, Duration::from_nanos(1)]);
        comes_back(&[Reverse((1_u8, -1_i16, 'x', usize::MAX))]);
        comes_back(&[Total(f64::NEG_INFINITY), Total(-0.0), Total(f64::NAN)]);
        comes_back(&[Total(f32::MIN)]);
        comes_back(&[[1, 2, 3]]);
        comes_back(&[()]);
    }

    #[test]
    fn the_total_order_has_a_place_for_each() {
        let mut floats = [f64::NAN, 1.0, -0.0, 0.0, f64::NEG_INFINITY, -f64::NAN].map(Total);
        floats.sort();
        let bits = floats.map(|float| float.0.to_bits());
        let expected = [-f64::NAN, f64::NEG_INFINITY, -0.0, 0.0, 1.0, f64::NAN];
        assert_eq!(bits, expected.map(f64::to_bits));
    }
}
