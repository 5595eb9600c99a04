//! A thread that waits for a lock must not unwind out of the wait: its node would vanish under its neighbours, its ticket would never be
//! served, or the lock would be left held by nobody.

use machine::bomb::AbortOnUnwind;

/// For the length of a wait. A user's [`WaitPolicy`](crate::WaitPolicy) is safe to write and may panic; this keeps that from becoming a dangling
/// node.
#[inline]
pub(crate) const fn armed() -> AbortOnUnwind {
    AbortOnUnwind::armed("a wait policy panicked while its thread waited for a spin lock")
}
