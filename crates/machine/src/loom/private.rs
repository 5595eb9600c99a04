//! The expansion of the macros under loom.

use core::marker::PhantomData;

pub use loom;

#[doc(hidden)]
#[macro_export]
macro_rules! __thread_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $crate::__private::loom::thread_local! { $(#[$attr])* $vis static $name: $type = $init; }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __global {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $type:ty = $init:expr;) => {
        $(#[$attr])* $vis static $name: $crate::__private::Global<$type> =
            $crate::__private::Global::new(|| $init);
    };
}

/// A static of which every execution has its own.
pub struct Global<T: 'static>(loom::lazy_static::Lazy<T>);

impl<T> Global<T> {
    /// Returns a static for `global!`, its only caller, which always puts it into a static.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self(loom::lazy_static::Lazy { init, _p: PhantomData })
    }
}

impl<T> core::ops::Deref for Global<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let lazy: *const loom::lazy_static::Lazy<T> = &self.0;
        // SAFETY: `global!` puts every `Global` into a static, which lives for ever.
        let lazy: &'static loom::lazy_static::Lazy<T> = unsafe { &*lazy };
        lazy.get()
    }
}

impl<T> core::fmt::Debug for Global<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Global")
    }
}

/// Returns a text of a `global!` for the rest of the process, because that static lives as long.
#[doc(hidden)]
#[must_use]
pub fn kept(text: &'static str) -> &'static str {
    text
}
