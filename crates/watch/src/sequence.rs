//! A sequence lock: words that one thread writes and others read.
//!
//! # Invariants
//!
//! 1. Only one thread writes.
//! 2. `version` is odd while the words are written. A reader that sees the same even version before
//!    and after it has read the words has read those of one moment.

use std::ops::Range;

use stanchion_machine::atomic::{AtomicU64, Ordering, fence};
use stanchion_machine::wait::retry_for;

/// The most times that a reader tries. A writer that lost its processor while it wrote would keep
/// the reader for as long.
const TRIES: u32 = 8;

/// The shortest and the longest pause between two tries, in nanoseconds.
const PAUSES_NS: Range<u64> = 20..200;

/// Words of one moment.
#[derive(Debug)]
pub(crate) struct Sequence<const WORDS: usize> {
    /// Odd while the words are written (Invariant 2). Written by the writer.
    version: AtomicU64,
    /// The words. Written by the writer.
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> Sequence<WORDS> {
    /// Begins with these words.
    pub(crate) fn new(words: [u64; WORDS]) -> Self {
        Self { version: AtomicU64::new(0), words: words.map(AtomicU64::new) }
    }

    /// Changes the words. Called by one thread alone (Invariant 1).
    pub(crate) fn change(&self, change: impl FnOnce(&mut [u64; WORDS])) {
        // Relaxed: this thread wrote them.
        let version = self.version.load(Ordering::Relaxed);
        let mut words = self.load();
        change(&mut words);
        self.version.store(version + 1, Ordering::Relaxed);
        // Release: pairs with the Acquire fence in `try_read`. A reader that sees a word from below
        // sees the odd version in its second load.
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire load in `try_read`. A reader of this version sees the
        // words.
        self.version.store(version + 2, Ordering::Release);
    }

    /// Reads the words. Returns `None` if the writer was writing each time.
    pub(crate) fn read(&self) -> Option<[u64; WORDS]> {
        let mut tries = 0;
        let again = || {
            tries += 1;
            tries < TRIES
        };
        retry_for(|| self.try_read(), PAUSES_NS, again)
    }

    /// Reads the words once. Returns `None` if the writer was writing.
    fn try_read(&self) -> Option<[u64; WORDS]> {
        // Acquire: pairs with the last store of `change`.
        let before = self.version.load(Ordering::Acquire);
        let words = self.load();
        // Acquire: pairs with the Release fence in `change`.
        fence(Ordering::Acquire);
        // Relaxed: after the fence.
        let is_same = self.version.load(Ordering::Relaxed) == before;
        (is_same && before.is_multiple_of(2)).then_some(words)
    }

    /// Loads the words one by one.
    fn load(&self) -> [u64; WORDS] {
        // Relaxed: the fences of `change` and `try_read` order them.
        std::array::from_fn(|index| self.words[index].load(Ordering::Relaxed))
    }
}
