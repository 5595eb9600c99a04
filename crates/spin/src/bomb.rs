//! A thread that waits for a lock must not unwind out of the wait: its node would vanish under its neighbours, its ticket would never be
//! served, or the lock would be left held by nobody.

/// Ends the process if it is dropped, which only unwinding does: the owner [defuses](Self::defuse) it.
///
/// A user's [`WaitPolicy`](crate::WaitPolicy) is safe to write and may panic; this keeps that from becoming a dangling node.
pub(crate) struct AbortOnUnwind(());

impl AbortOnUnwind {
    #[inline]
    pub(crate) const fn armed() -> Self {
        Self(())
    }

    #[inline]
    pub(crate) const fn defuse(self) {
        core::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    #[cold]
    fn drop(&mut self) {
        // A panic while unwinding aborts, with or without `std`.
        panic!("a wait policy panicked while its thread waited for a spin lock");
    }
}
