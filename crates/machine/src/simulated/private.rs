//! The expansion of the macros under simulation: statics that belong to a run, or to one virtual
//! thread of it.
//!
//! Why a run's copy of a static is copied from a prototype, and not computed: some statics are
//! tables of a megabyte. In a debug build, a constant that is computed into a box goes through the
//! stack. The stack is a virtual thread's here, and small.
//!
//! # Invariants
//!
//! 1. A prototype is the value of a constant, and its bytes are only ever copied. Copying them
//!    makes a value as good as the constant's, as each mention of a constant does.
//! 2. A `Global` is in a static, where `global!` puts it. A run keeps nothing that it reads from a
//!    `Global` beyond the run's end.

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

/// The error of an access to a thread's value that is gone, or is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl<T> Local<T> {
    /// Returns a static for `thread_local!`, its only caller.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self(inside::Local::new(init))
    }

    /// Calls `body` with the calling thread's value, and makes the value first if necessary.
    ///
    /// # Panics
    ///
    /// Outside a run, and when the value is gone.
    pub fn with<R>(&'static self, body: impl FnOnce(&T) -> R) -> R {
        self.0.with(body)
    }

    /// Calls `body` as [`with`](Self::with) does, for code that may run while the thread ends.
    ///
    /// # Errors
    ///
    /// [`AccessError`], if the value is gone.
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

/// A constant in memory, from which copies are made.
#[doc(hidden)]
pub struct Prototype<T>(MaybeUninit<T>);

// SAFETY: Invariant 1: its bytes are read, and never written.
unsafe impl<T> Sync for Prototype<T> {}

impl<T> Prototype<T> {
    /// Returns a prototype of `constant`. Only `global!` calls this.
    pub const fn new(constant: T) -> Self {
        Self(MaybeUninit::new(constant))
    }

    /// Returns a copy on the heap.
    pub fn copied(&self) -> Box<T> {
        let mut copy = Box::<T>::new_uninit();
        // SAFETY: both are of that type, and the new value does not overlap the old one.
        unsafe { core::ptr::copy_nonoverlapping(self.0.as_ptr(), copy.as_mut_ptr(), 1) };
        // SAFETY: Invariant 1.
        unsafe { copy.assume_init() }
    }
}

/// A static of which every run has its own, made at its first use.
pub struct Global<T: 'static>(inside::Global<Box<T>>);

impl<T> Global<T> {
    /// Returns a static for `global!`, its only caller, which always puts it into a static.
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

/// Returns a copy of a text of a `global!` that lives for the rest of the process, because the
/// run's statics end with the run.
#[doc(hidden)]
#[must_use]
pub fn kept(text: &str) -> &'static str {
    inside::keep(text)
}
