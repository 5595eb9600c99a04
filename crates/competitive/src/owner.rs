//! The holder of a lock: a thread's number, in a word.

/// A thread as the word of a lock names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// The word of a free lock.
    pub(crate) const NOBODY: u32 = 0;

    /// A thread that has no number: there are too many, or it is in its last destructors. There may
    /// be several.
    const ANONYMOUS: u32 = u32::MAX;

    /// The calling thread.
    #[inline]
    pub(crate) fn me() -> Self {
        // Below `INDICES`, so it fits, and never the anonymous one.
        Self(stanchion_machine::thread::index().map_or(Self::ANONYMOUS, |index| index as u32 + 1))
    }

    #[inline]
    pub(crate) const fn to_bits(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) const fn is_anonymous(self) -> bool {
        self.0 == Self::ANONYMOUS
    }

    /// Returns whether the word of a lock names this thread for certain.
    #[inline]
    pub(crate) const fn is(self, word: u32) -> bool {
        self.0 == word && !self.is_anonymous()
    }

    /// The number of the thread that the word of a lock names.
    #[inline]
    pub(crate) const fn index_in(word: u32) -> Option<usize> {
        match word {
            Self::NOBODY | Self::ANONYMOUS => None,
            number => Some(number as usize - 1),
        }
    }
}
