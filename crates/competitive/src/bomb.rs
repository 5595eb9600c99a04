//! A thread that is linked into a queue must not unwind: its place in the queue would vanish under its neighbours.

/// Ends the process if it is dropped, which only unwinding does: the owner [defuses](Self::defuse) it.
pub(crate) struct AbortOnUnwind(&'static str);

impl AbortOnUnwind {
    /// `why` is what it says when it goes off.
    pub(crate) const fn armed(why: &'static str) -> Self {
        Self(why)
    }

    pub(crate) const fn defuse(self) {
        core::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    #[cold]
    fn drop(&mut self) {
        // A panic while unwinding ends the process.
        panic!("{}", self.0);
    }
}
