//! What is done with panics that nobody can be told of.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// What a panic carried.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Drops a value; what it panicked with, if it did.
pub(crate) fn dropping<T>(value: T) -> Option<Payload> {
    panic::catch_unwind(AssertUnwindSafe(|| drop(value))).err()
}

/// Drops what a panic carried; leaks what that leaves, if it panics itself.
pub(crate) fn discard(payload: Payload) {
    if let Some(next) = dropping(payload) {
        core::mem::forget(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic::panic_any(Bomb(self.0 + 1));
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_ends_nobody() {
        let payload = dropping(Bomb(0)).expect("it panics");
        assert_eq!(payload.downcast_ref::<Bomb>().map(|bomb| bomb.0), Some(1));
        discard(payload);
        discard(Box::new("an ordinary one"));
    }
}
