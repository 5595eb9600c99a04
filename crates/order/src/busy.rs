//! The mark of a thread in which nothing is recorded now.

use std::cell::Cell;

thread_local! {
    /// True while the recorder runs in the thread, or the thread forks. It has no destructor, so
    /// that it can be used to the end of the thread.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Sets the mark of the calling thread, and returns what it was.
#[inline]
pub(crate) fn replace(busy: bool) -> bool {
    BUSY.replace(busy)
}
