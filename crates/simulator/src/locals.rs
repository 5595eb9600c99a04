//! The values of statics that every run has anew: one value a thread, or one for all.
//!
//! The code under simulation runs on one thread of the operating system, so its `thread_local!`
//! would be one for all virtual threads, and its statics would carry state from one run into the
//! next. A backend gives it [`Local`](crate::inside::Local) and
//! [`Global`](crate::inside::Global) instead, and their values are here.
//!
//! # Invariants
//!
//! 1. A value is boxed and stays where it is until its thread (its run) ends: references to it are
//!    handed out only to that thread (run).
//! 2. The key is the address of the static and the type of its value, so nothing else than such a
//!    value is ever found under it. The address alone would not do: it need not be a static's, and
//!    of two constants that are alike the compiler may make one.

use core::any::{Any, TypeId};
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The values of one thread, or of one run, in the order in which they were made.
#[derive(Default)]
pub(crate) struct Locals {
    /// The values, in that order.
    values: Vec<(Key, Value)>,
}

/// Invariant 2.
pub(crate) type Key = (usize, TypeId);

/// Returns the key of the value of type `T` that belongs to `holder`.
pub(crate) fn key<T: 'static, Static>(holder: &'_ Static) -> Key {
    (core::ptr::from_ref(holder).addr(), TypeId::of::<T>())
}

enum Value {
    /// Being made.
    Pending,
    Made(NonNull<dyn Any>),
    Dropped,
}

impl Locals {
    fn find(&self, key: Key) -> Option<&Value> {
        self.values.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    fn set(&mut self, key: Key, value: Value) {
        match self.values.iter_mut().find(|(other, _)| *other == key) {
            Some(entry) => entry.1 = value,
            None => self.values.push((key, value)),
        }
    }

    /// Drops all values, the first made first, outside the run: their destructors find no other
    /// statics. The first panic of those, if any.
    pub(crate) fn drop_all(&mut self) -> Result<(), Box<dyn Any + Send>> {
        let mut outcome = Ok(());
        while let Some(value) = self.retire() {
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(value)));
            match (dropped, &outcome) {
                (Err(payload), Ok(())) => outcome = Err(payload),
                // A payload's destructor is user code, and may panic again.
                (Err(payload), Err(_)) => core::mem::forget(payload),
                (Ok(()), _) => {}
            }
        }
        outcome
    }

    /// Takes out the next value to be dropped, the first made first. A value that is asked for
    /// afterwards is gone.
    fn retire(&mut self) -> Option<Box<dyn Any>> {
        self.values.iter_mut().find_map(|(_, value)| match value {
            Value::Made(_) => match core::mem::replace(value, Value::Dropped) {
                // SAFETY: it came from `Box::leak` in `made`, and is taken out once: its entry says
                // `Dropped` now.
                Value::Made(made) => Some(unsafe { Box::from_raw(made.as_ptr()) }),
                _ => None,
            },
            _ => None,
        })
    }
}

/// Finds the value of `key`, or makes it by `init`. `None` if it is being made, or was dropped.
pub(crate) fn made<T: 'static>(
    key: Key,
    init: fn() -> T,
    access: impl Fn(&mut dyn FnMut(&mut Locals)),
) -> Option<NonNull<T>> {
    let mut found = None;
    let mut missing = false;
    access(&mut |locals| match locals.find(key) {
        Some(Value::Made(value)) => found = Some(value.cast::<T>()),
        Some(Value::Pending | Value::Dropped) => {}
        None => {
            locals.set(key, Value::Pending);
            missing = true;
        }
    });
    if missing {
        let value = catch_unwind(init).unwrap_or_else(|payload| {
            // As the standard library's: the next one tries again.
            access(&mut |locals| locals.values.retain(|(other, _)| *other != key));
            resume_unwind(payload)
        });
        let value: Box<T> = Box::new(value);
        let value = NonNull::from(Box::leak(value));
        found = Some(value);
        access(&mut |locals| locals.set(key, Value::Made(value)));
    }
    found
}

/// Drops all values, and also those that the dropping makes. Runs on the thread that they belong
/// to.
#[inline]
pub(crate) fn drop_all(access: impl Fn(&mut dyn FnMut(&mut Locals))) {
    loop {
        let mut next = None;
        access(&mut |locals| next = locals.retire());
        if next.is_none() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_at_one_address_is_told_apart_by_type() {
        let holder = 0_u64;
        let (number, letter) = (key::<u32, _>(&holder), key::<char, _>(&holder));
        let mut locals = Locals::default();
        locals.set(number, Value::Made(NonNull::from(Box::leak(Box::new(u32::MAX)))));
        assert!(locals.find(number).is_some() && locals.find(letter).is_none());
        locals.drop_all().unwrap();
    }
}
