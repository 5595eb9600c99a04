//! Panics of values that belong to the user, in threads that have to go on.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

/// Runs `body`, and drops the panic if it panics: for destructors of the user's values.
pub(crate) fn ignoring_panics(body: impl FnOnce()) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body)) {
        drop_payload(payload);
    }
}

/// Drops the payload of a panic. If that panics, leaks the payload of the second panic.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(next) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        core::mem::forget(next);
    }
}
