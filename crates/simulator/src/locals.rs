//! Statics that every run has anew: one value a thread, or one for all.
//!
//! The code under simulation runs on one thread of the operating system, so its `thread_local!`
//! would be one for all virtual threads, and its statics would carry state from one run into the
//! next. A backend gives it these instead.
//!
//! # Invariants
//!
//! 1. A value is boxed and stays where it is until its thread (its run) ends: references to it are
//!    handed out only to that thread (run).
//! 2. The key is the address of the static and the type of its value, so nothing else than such a
//!    value is ever found under it. The address alone would not do: it need not be a static's, and
//!    of two constants that are alike the compiler may make one.

use crate::world;
use core::any::{Any, TypeId};
use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The values of one thread, or of one run, in the order in which they were made.
#[derive(Default)]
pub(crate) struct Locals {
    /// The values, in that order.
    values: Vec<(Key, Value)>,
}

/// Invariant 2.
type Key = (usize, TypeId);

fn key<T: 'static, Static>(holder: &'_ Static) -> Key {
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

/// A static of which every virtual thread has its own, made at its first use and dropped when the
/// thread ends.
pub struct Local<T: 'static> {
    /// Makes the value.
    init: fn() -> T,
}

impl<T: 'static> Local<T> {
    /// Made by `init` in each thread that uses it.
    #[must_use]
    pub const fn new(init: fn() -> T) -> Self {
        Self { init }
    }

    /// Calls `body` with the running thread's value.
    ///
    /// # Panics
    ///
    /// Outside a run, when the thread has dropped its value already, and when `init` uses the value
    /// that it is to make.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        self.try_with(body).expect(
            "a thread-local value was used after it was dropped, or while it was being made",
        )
    }

    /// [`with`](Self::with), but `None` where that finds the value gone or not made yet.
    ///
    /// # Panics
    ///
    /// Outside a run.
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Option<R> {
        let found = made(key::<T, _>(self), self.init, |access| world::with_locals(access))?;
        // SAFETY: Invariant 1: the box lives until the thread ends, and `body` runs on that thread.
        Some(body(unsafe { found.as_ref() }))
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Local")
    }
}

/// A static that all threads of a run share, made at its first use and dropped when the run ends.
pub struct Global<T: 'static> {
    /// Makes the value.
    init: fn() -> T,
}

impl<T: 'static> Global<T> {
    /// Made by `init` in each run that uses it.
    ///
    /// # Safety
    ///
    /// It must be in a static, and no reader may keep a reference to the value beyond the end of
    /// the run.
    #[must_use]
    pub const unsafe fn new(init: fn() -> T) -> Self {
        Self { init }
    }
}

impl<T: 'static> Deref for Global<T> {
    type Target = T;

    /// # Panics
    ///
    /// Outside a run, and while `init` makes the value: when it uses that itself, or waits and
    /// another thread uses it.
    fn deref(&self) -> &T {
        let found = made(key::<T, _>(self), self.init, |access| world::with_globals(access))
            .expect("a static of the run was used while it was being made");
        // SAFETY: Invariants 1 and 2: the box lives until the run ends, and no reference is kept
        // for longer (`new`'s contract).
        unsafe { found.as_ref() }
    }
}

impl<T> fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}

/// Finds or makes the value of `key`.
fn made<T: 'static>(
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
