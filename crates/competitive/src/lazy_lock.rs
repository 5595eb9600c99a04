//! A value that is made when it is first asked for.
//!
//! # Invariants
//!
//! 1. A thread touches `init` only while it makes the value of `cell`, or with the whole to itself.

use core::fmt;
use core::ops::Deref;
use core::panic::{RefUnwindSafe, UnwindSafe};

use stanchion_machine::cell::UnsafeCell;

use crate::once_lock::OnceLock;

/// A value that is made when it is first asked for, by the thread that asks. The other threads wait
/// for it.
///
/// | | |
/// | --- | --- |
/// | reading the value | one load |
/// | size | that of an [`OnceLock`] and of an `Option` of the function that makes the value |
///
/// ```
/// use stanchion_competitive::LazyLock;
///
/// static SQUARES: LazyLock<Vec<u32>> = LazyLock::new(|| (0..5).map(|n| n * n).collect());
/// assert_eq!(SQUARES[3], 9);
/// ```
///
/// # Panics
///
/// Asking for the value panics if the function does. It also panics if the function asks for the
/// same value, which would wait for itself. The function is used up then: asking again panics each
/// time.
pub struct LazyLock<T, F = fn() -> T> {
    /// The value, once it is made.
    cell: OnceLock<T>,
    /// The function, until it is called.
    init: UnsafeCell<Option<F>>,
}

// SAFETY: threads share the cell, and one of them takes the function out to call it (Invariant 1).
unsafe impl<T, F: Send> Sync for LazyLock<T, F> where OnceLock<T>: Sync {}

impl<T, F> LazyLock<T, F> {
    /// Returns the value, if it has been made. Does not wait.
    ///
    /// ```
    /// use stanchion_competitive::LazyLock;
    /// let lazy = LazyLock::new(|| 1);
    /// assert_eq!(LazyLock::get(&lazy), None);
    /// assert_eq!(*lazy, 1);
    /// assert_eq!(LazyLock::get(&lazy), Some(&1));
    /// ```
    #[inline]
    #[must_use]
    pub fn get(this: &Self) -> Option<&T> {
        this.cell.get()
    }

    /// Returns the value for the sole owner, if it has been made.
    #[must_use]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        this.cell.get_mut()
    }

    /// Returns the value, or the function if it has not been called.
    ///
    /// # Errors
    ///
    /// The function.
    ///
    /// # Panics
    ///
    /// If the function has panicked.
    pub fn into_inner(this: Self) -> Result<T, F> {
        match this.cell.into_inner() {
            Some(value) => Ok(value),
            None => Err(unused(this.init.into_inner())),
        }
    }
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates one. `init` will make its value.
    #[must_use]
    pub const fn new(init: F) -> Self {
        Self { cell: OnceLock::new(), init: UnsafeCell::new(Some(init)) }
    }

    /// Returns the value; makes it first, or waits for the thread that does, if need be.
    ///
    /// # Panics
    ///
    /// See [`LazyLock`].
    #[inline]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_init(|| {
            // SAFETY: Invariant 1: this thread makes the value.
            let init = this.init.with_mut(|init| unsafe { (*init).take() });
            unused(init)()
        })
    }

    /// Returns the value for the sole owner; makes it first if need be.
    ///
    /// # Panics
    ///
    /// See [`LazyLock`].
    ///
    /// ```
    /// use stanchion_competitive::LazyLock;
    /// let mut lazy = LazyLock::new(|| 1);
    /// *LazyLock::force_mut(&mut lazy) += 1;
    /// assert_eq!(*lazy, 2);
    /// ```
    pub fn force_mut(this: &mut Self) -> &mut T {
        let init = &mut this.init;
        this.cell.get_mut_or_init(|| unused(init.get_mut().take())())
    }
}

/// Returns the function, which only a thread that panicked in it has taken out before.
fn unused<F>(init: Option<F>) -> F {
    init.expect(
        "LazyLock instance has previously been poisoned: the function that makes it has panicked",
    )
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    /// Creates one. Its value will be the default one.
    fn default() -> Self {
        Self::new(T::default)
    }
}

// The value is there or not, and the function unused or gone, whatever panics.
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyLock").field(&self.cell.get()).finish()
    }
}
