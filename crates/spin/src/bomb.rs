//! A guard against unwinding: a thread that waits for a lock must not unwind out of the wait.
//!
//! Its node would vanish while its neighbours use it, its ticket would never be served, or the lock
//! would stay held without a holder.

use stanchion_machine::bomb::AbortOnUnwind;

/// Returns a bomb for the length of a wait. A user's [`WaitPolicy`](crate::WaitPolicy) is safe to
/// write and may panic. The bomb then ends the process, so no dangling node remains.
#[inline]
pub(crate) const fn armed() -> AbortOnUnwind {
    AbortOnUnwind::armed("a wait policy panicked while its thread waited for a spin lock")
}
