//! The expansions of the macros on the real machine.

#[cfg(feature = "std")]
pub use std::thread_local as std_thread_local;

#[doc(hidden)]
#[cfg(feature = "std")]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $crate::__private::std_thread_local! { $(#[$attr])* $vis static $name: $type = const { $init }; }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __global {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $(#[$attr])* $vis static $name: $crate::__private::Global<$type> = $crate::__private::Global($init);
    };
}

/// A static that is read through `Deref`, as loom's are.
#[derive(Debug)]
pub struct Global<T>(pub T);

impl<T> core::ops::Deref for Global<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A text of a `global!`, for the rest of the process: that static lives as long.
#[doc(hidden)]
#[must_use]
pub fn kept(text: &'static str) -> &'static str {
    text
}
