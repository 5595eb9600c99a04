//! Entries: the numbers of locks, in memory that is never freed.
//!
//! A thread that has noted a lock asks its entry later whether the lock is still the same one. A
//! lock that has ended gives its entry to a later lock, under another number.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of one lock at a time.
pub(crate) struct LockEntry {
    /// The number of the lock, or 0 if no lock has the entry. Written under the recorder's lock.
    number: AtomicU64,
    /// True if a release of the lock was not seen. Written under the recorder's lock.
    lost: AtomicBool,
    /// The place of creation, as [`crate::current`] labels it. Written under the recorder's lock.
    creation: AtomicU64,
}

impl LockEntry {
    /// Makes an entry of no lock.
    pub(crate) const fn new() -> Self {
        let (number, creation) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { number, lost: AtomicBool::new(false), creation }
    }

    // Relaxed: a lock's own number was published with the pointer to its entry. The number of a
    // lock that has ended is read again under the recorder's lock before anything depends on it.

    /// Returns the number of the lock.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Returns the label of the place of creation.
    #[inline]
    pub(crate) fn creation(&self) -> u64 {
        self.creation.load(Ordering::Relaxed)
    }

    /// Gives the entry to a lock, or to none.
    pub(crate) fn give(&self, number: u64, creation: u64) {
        self.creation.store(creation, Ordering::Relaxed);
        self.lost.store(false, Ordering::Relaxed);
        self.number.store(number, Ordering::Relaxed);
    }

    /// Returns true if the lock is recorded no more.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Records the lock no more. Returns false if that was so before.
    pub(crate) fn lose(&self) -> bool {
        !self.lost.swap(true, Ordering::Relaxed)
    }

    /// Returns true if the lock `number` has the entry and is recorded.
    pub(crate) fn is_of(&self, number: u64) -> bool {
        self.number() == number && !self.is_lost()
    }
}
