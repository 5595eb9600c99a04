//! What ends the process if a thread unwinds where it must not: out of a queue, in which its place would vanish under its neighbours; out of a wait
//! for a lock, whose ticket would never be served, or which would be left held by nobody.
//!
//! Not part of the interface: it is here because the crates above this one need the same one.

/// Ends the process if it is dropped, which only unwinding does: the owner [defuses](Self::defuse) it.
#[derive(Debug)]
pub struct AbortOnUnwind(&'static str);

impl AbortOnUnwind {
    /// `why` is what it says when it goes off.
    #[inline]
    #[must_use = "it guards nothing once it is dropped, and it goes off"]
    pub const fn armed(why: &'static str) -> Self {
        Self(why)
    }

    /// The danger is over.
    #[inline]
    pub const fn defuse(self) {
        core::mem::forget(self);
    }
}

impl Drop for AbortOnUnwind {
    #[cold]
    fn drop(&mut self) {
        // A panic while unwinding aborts, with or without `std`.
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
