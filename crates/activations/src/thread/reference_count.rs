//! The number of handles of a thread.
//!
//! Why not the standard library's `Arc`: the header is found through a pointer of one word,
//! whatever type the thread's cell has, and is constructed in place. There is no count of weak
//! handles to look at when the last handle goes, and the last handle costs no locked instruction.
//!
//! # Invariants
//!
//! 1. A thread that takes a reference has one already. So a holder that reads a count of one is the
//!    only holder, and stays the only one until it clones its handle.
//!
//! # Orderings
//!
//! - `increment`. Ordering: Relaxed. Partner: none: the new handle is handed on with a Release.
//! - `decrement`, and others are left. Ordering: Release. Partner: the Acquire of the last one:
//!   all uses of this handle come before the free.
//! - `decrement`, and it was the last. Ordering: Acquire. Partner: that Release. The exchanges in
//!   between are of the same release sequence.

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

/// A larger count means that handles are leaked in a loop, as with `Arc`.
const MOST: usize = isize::MAX as usize;

/// A number of handles.
pub struct ReferenceCount(AtomicUsize);

impl ReferenceCount {
    /// Returns a count of one.
    pub fn one() -> Self {
        Self(AtomicUsize::fresh(1))
    }

    /// Counts one more handle.
    #[inline]
    pub fn increment(&self) {
        // Relaxed: see the header.
        if stanchion_machine::apart(|| self.0.fetch_add(1, Ordering::Relaxed)) > MOST {
            std::process::abort();
        }
    }

    /// Counts one handle less. Returns whether it was the last.
    #[inline]
    pub fn decrement(&self) -> bool {
        // Acquire and AcqRel: see the header. The load comes first: the only holder exchanges
        // nothing (Invariant 1).
        stanchion_machine::apart(|| {
            self.0.load(Ordering::Acquire) == 1 || self.0.fetch_sub(1, Ordering::AcqRel) == 1
        })
    }
}
