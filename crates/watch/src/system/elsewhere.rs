//! Systems that tell nothing of a thread.

use super::{BlockedIn, Reading};

/// Returns the kernel's number of the calling thread: there is none here.
pub(crate) fn this_thread() -> Option<u32> {
    None
}

/// Reads the counts of a thread: there are none here.
pub(crate) fn read(_thread: u32) -> Option<Reading> {
    None
}

/// Returns where a thread is blocked: unknown.
pub(crate) fn blocked_in(_thread: u32) -> BlockedIn {
    BlockedIn::Unknown
}
