//! A drop bomb: it ends the process if a thread unwinds where it must not. If the thread unwound
//! out of a queue, its node would disappear while its neighbours still point to it. If it unwound
//! out of a wait for a lock, its ticket would never be served, or the lock would stay held without
//! an owner.
//!
//! Not part of the interface: it is public because the crates above this one need it too.

/// Ends the process when it is dropped, which happens only during unwinding: otherwise the owner
/// [defuses](Self::defuse) it.
#[derive(Debug)]
pub struct AbortOnUnwind(&'static str);

impl AbortOnUnwind {
    /// Returns an armed bomb. `why` is the message with which it ends the process.
    #[inline]
    #[must_use = "it guards nothing once it is dropped, and it goes off"]
    pub const fn armed(why: &'static str) -> Self {
        Self(why)
    }

    /// Disarms it: the thread can no longer unwind out of the critical place.
    #[inline]
    pub const fn defuse(self) {
        core::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    #[cold]
    fn drop(&mut self) {
        // A second panic during unwinding aborts, with or without `std`.
        panic!("{}", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "left in the queue")]
    fn it_goes_off_when_dropped() {
        drop(AbortOnUnwind::armed("left in the queue"));
    }

    #[test]
    fn defused_it_does_not() {
        AbortOnUnwind::armed("left in the queue").defuse();
    }
}
