//! The header that each rank sends to all others before each operation.
//!
//! ```text
//! byte  0        8        16       24                88
//!       operation  type   number   a small value
//! ```

use std::any::TypeId;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Values up to this many bytes travel with the header.
pub(super) const SMALL: usize = 64;

/// The bytes of a header.
pub(super) const BYTES: usize = 24 + SMALL;

/// The operation that a rank is about to do. All ranks name the same, except ranks that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Operation {
    Barrier = 1,
    Value = 2,
    Lists = 3,
    Scatter = 4,
    Neighbours = 5,
    /// The rank has returned.
    Left = 6,
    Panicked = 7,
}

impl Operation {
    fn of(word: u64) -> Option<Self> {
        let all = [
            Self::Barrier,
            Self::Value,
            Self::Lists,
            Self::Scatter,
            Self::Neighbours,
            Self::Left,
            Self::Panicked,
        ];
        all.into_iter().find(|&what| what as u64 == word)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    /// The operation that the rank is about to do.
    pub(super) what: Operation,
    /// A number for the type of the values, and for the member that they come from or go to.
    pub(super) of: u64,
    /// The number of values.
    pub(super) length: u64,
    /// The values, if they are small.
    pub(super) small: [u8; SMALL],
}

/// Returns a number for a type and a member: the same in all processes of the same program.
pub(super) fn number_of<T: 'static>(member: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (TypeId::of::<T>(), member).hash(&mut hasher);
    hasher.finish()
}

impl Header {
    /// Creates a header without values.
    pub(super) fn bare(what: Operation) -> Self {
        Self { what, of: 0, length: 0, small: [0; SMALL] }
    }

    /// Creates a header for so many values of a type. They travel with it if they are small.
    pub(super) fn new(what: Operation, of: u64, length: usize, bytes: &[u8]) -> Self {
        let mut small = [0; SMALL];
        if bytes.len() <= SMALL {
            small[..bytes.len()].copy_from_slice(bytes);
        }
        Self { what, of, length: length as u64, small }
    }

    /// Returns the number of values.
    pub(super) fn number(&self) -> usize {
        usize::try_from(self.length)
            .expect("another process of the same program has them in memory")
    }

    pub(super) fn bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let words = [self.what as u64, self.of, self.length];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes[24..].copy_from_slice(&self.small);
        bytes
    }

    /// Reads a header.
    ///
    /// # Panics
    ///
    /// If the bytes come from a program that does something else.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let word = bytes[8 * at..][..8].try_into().expect("8 of them");
            u64::from_ne_bytes(word)
        };
        let what = Operation::of(word(0)).expect("all ranks run the same program");
        let small = bytes[24..].try_into().expect("so many");
        Self { what, of: word(1), length: word(2), small }
    }
}
