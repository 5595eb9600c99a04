//! Statics that every run has anew.

use crate::locals::{key, made};
use crate::world;
use core::fmt;
use core::ops::Deref;

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
        // SAFETY: Invariant 1 of `locals.rs`: the box lives until the thread ends, and `body` runs
        // on that thread.
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
        // SAFETY: Invariants 1 and 2 of `locals.rs`: the box lives until the run ends, and no
        // reference is kept for longer (`new`'s contract).
        unsafe { found.as_ref() }
    }
}

impl<T> fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Global")
    }
}
