//! The words behind loom's atomics.

use crate::atomic::Ordering;

/// A word of loom's, with a second object that makes the explorer see every load of it.
///
/// Loom 0.7.2 and 0.7.3 remember one last access of an object. A thread that loads a word and then
/// writes it finds its own load there. So a load by another thread before that is never tried after
/// the write: `load; store` beside a `load` is explored once, with the load first (with a bare
/// store it is explored six times). So every load first stores to the second object. That store
/// reads nothing and orders nothing, but makes two loads of one word depend on each other.
pub(super) struct Watched<T> {
    /// The word itself.
    pub(super) word: T,
    /// The second object, to which every load of the word stores first.
    looks: loom::sync::atomic::AtomicU8,
}

impl<T> Watched<T> {
    #[track_caller]
    pub(super) fn new(word: T) -> Self {
        Self { word, looks: loom::sync::atomic::AtomicU8::new(0) }
    }

    #[track_caller]
    pub(super) fn look(&self) {
        // Relaxed: no thread loads it; the store is for the explorer.
        self.looks.store(0, Ordering::Relaxed);
    }
}
