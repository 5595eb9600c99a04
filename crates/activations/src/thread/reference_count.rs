//! How many handles there are of one thing.
//!
//! Why not the standard library's `Arc`: what is counted is found through a pointer of one word, whatever it is, and is made where it will lie; no
//! count of weak handles is looked at when the last one goes; and the last one costs no locked instruction.
//!
//! # Invariants
//!
//! 1. Who takes a share has one. So whoever has a share and reads a count of one is alone, and stays alone until it shares.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | `more` | Relaxed | nobody: the new handle is handed on with more than that |
//! | `less`, and there are others | Release | the Acquire of the last: what was done through this handle is done before all is freed |
//! | `less`, and it was the last | Acquire | that Release. Exchanges in between are of the same release sequence |

use machine::atomic::{AtomicUsize, Fresh, Ordering};

/// More than that are handles that are leaked in a loop; as with `Arc`.
const MOST: usize = isize::MAX as usize;

/// A number of handles.
pub(crate) struct ReferenceCount(AtomicUsize);

impl ReferenceCount {
    pub(crate) fn one() -> Self {
        Self(AtomicUsize::fresh(1))
    }

    /// There is one more.
    #[inline]
    pub(crate) fn more(&self) {
        // Relaxed: see the header.
        if machine::apart(|| self.0.fetch_add(1, Ordering::Relaxed)) > MOST {
            std::process::abort();
        }
    }

    /// There is one less; whether that was the last.
    #[inline]
    pub(crate) fn less(&self) -> bool {
        // Acquire and Release: see the header. A load first: whose is the only one exchanges nothing (Invariant 1).
        machine::apart(|| {
            self.0.load(Ordering::Acquire) == 1 || self.0.fetch_sub(1, Ordering::AcqRel) == 1
        })
    }
}
