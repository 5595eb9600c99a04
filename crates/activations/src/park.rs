//! Parking: how a thread waits for another to say that it may go on.

use core::time::Duration;

use machine::clock::Deadline;

use crate::local;
use crate::thread;

/// Waits until the calling thread is [unparked](crate::Thread::unpark), if that has not happened since the last park. A user-level thread leaves its
/// processor to others meanwhile; a kernel thread sleeps.
///
/// As with the standard library's, it may return for nothing, because whatever the thread waited for before may unpark it late: look again.
pub fn park() {
    park_until(Deadline::NEVER);
}

/// [`park`], for so long at most; whether it was unparked.
pub fn park_timeout(timeout: Duration) -> bool {
    park_until(Deadline::after(timeout))
}

/// [`park`] until a deadline; whether the thread was unparked.
pub(crate) fn park_until(deadline: Deadline) -> bool {
    local::park_thread(deadline).unwrap_or_else(|| thread::sleep_in_kernel(deadline))
}
