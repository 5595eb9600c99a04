//! Panics that no thread can be told of.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Drops a value. Returns the payload if the drop panics.
pub(crate) fn catch_drop<T>(value: T) -> Option<Payload> {
    panic::catch_unwind(AssertUnwindSafe(|| drop(value))).err()
}

/// Drops the payload of a panic. If that panics as well, leaks the second payload.
pub(crate) fn discard(payload: Payload) {
    if let Some(next) = catch_drop(payload) {
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
    fn payload_that_panics_on_drop_is_discarded() {
        let payload = catch_drop(Bomb(0)).expect("it panics");
        assert_eq!(payload.downcast_ref::<Bomb>().map(|bomb| bomb.0), Some(1));
        discard(payload);
        discard(Box::new("an ordinary one"));
    }
}
