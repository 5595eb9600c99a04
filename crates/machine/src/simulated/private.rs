//! What the macros expand to under simulation: statics that belong to a run, or to one virtual thread of it.
//!
//! Why a run's copy of a static is copied from a prototype, and not computed: some are tables of a megabyte, and a constant that is computed into a
//! box goes through the stack in a debug build, which is a virtual thread's and small.
//!
//! # Invariants
//!
//! 1. A prototype is the value of a constant, and nobody ever uses it except to copy its bytes. Copying them makes a value as good as the
//!    constant's, as each mention of a constant does.
//! 2. A `Global` is in a static, where `global!` puts it, and what a run reads from it, it does not keep beyond its end.

use core::mem::MaybeUninit;
use std::boxed::Box;

use stanchion_simulator::inside;

#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $(#[$attr])* $vis static $name: $crate::__private::Local<$type> =
            $crate::__private::Local::new(|| const { $init });
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __global {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $(#[$attr])* $vis static $name: $crate::__private::Global<$type> = {
            static PROTOTYPE: $crate::__private::Prototype<$type> = $crate::__private::Prototype::new($init);
            $crate::__private::Global::new(|| PROTOTYPE.copied())
        };
    };
}

/// A thread-local static, one value per virtual thread.
pub struct Local<T: 'static>(inside::Local<T>);

/// The thread's value is gone, or being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl<T> Local<T> {
    /// Made by `thread_local!` only.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self(inside::Local::new(init))
    }

    /// Calls `body` with the calling thread's value, making it first if need be.
    ///
    /// # Panics
    ///
    /// Outside a run, and when the value is gone.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        self.0.with(body)
    }

    /// The same, for code that may run while the thread ends.
    ///
    /// # Errors
    ///
    /// If the value is gone.
    ///
    /// # Panics
    ///
    /// Outside a run.
    pub fn try_with<R>(&'static self, body: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.0.try_with(body).ok_or(AccessError(()))
    }
}

impl<T> core::fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Local")
    }
}

/// A constant, in memory.
#[doc(hidden)]
pub struct Prototype<T>(MaybeUninit<T>);

// SAFETY: Invariant 1: its bytes are read, and never written.
unsafe impl<T> Sync for Prototype<T> {}

impl<T> Prototype<T> {
    /// Made by `global!` only, of a constant.
    pub const fn new(constant: T) -> Self {
        Self(MaybeUninit::new(constant))
    }

    /// Another one, on the heap.
    pub fn copied(&self) -> Box<T> {
        let mut copy = Box::<T>::new_uninit();
        // SAFETY: both are of that type, and the new one is no part of the old.
        unsafe { core::ptr::copy_nonoverlapping(self.0.as_ptr(), copy.as_mut_ptr(), 1) };
        // SAFETY: Invariant 1.
        unsafe { copy.assume_init() }
    }
}

/// A static of which every run has its own, made at its first touch.
pub struct Global<T: 'static>(inside::Global<Box<T>>);

impl<T> Global<T> {
    /// Made by `global!` only, and so always in a static.
    #[doc(hidden)]
    pub const fn new(init: fn() -> Box<T>) -> Self {
        // SAFETY: Invariant 2.
        Self(unsafe { inside::Global::new(init) })
    }
}

impl<T> core::ops::Deref for Global<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> core::fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Global")
    }
}

/// A text of a `global!`, for the rest of the process: a copy, as the run's statics end with the run.
#[doc(hidden)]
#[must_use]
pub fn kept(text: &str) -> &'static str {
    inside::keep(text)
}
