//! [`core::cell::UnsafeCell`] in loom's shape.

use core::mem::MaybeUninit;

use crate::atomic::Fresh;

/// A cell that hands out raw pointers for the extent of a closure.
///
/// `Sync` is the business of the type that holds it, as with [`core::cell::UnsafeCell`].
///
/// ```
/// let cell = stanchion_machine::cell::UnsafeCell::new(1);
/// // SAFETY: no other thread has the cell.
/// cell.with_mut(|value| unsafe { *value += 1 });
/// assert_eq!(cell.into_inner(), 2);
/// ```
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Makes a cell with `value`. For a cell that is made while threads run, see
    /// [`Fresh::fresh`](crate::atomic::Fresh::fresh).
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Takes the value out. Under loom that is checked like a write.
    #[inline]
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> Fresh for UnsafeCell<T> {
    type Value = T;

    #[inline]
    fn fresh(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> UnsafeCell<MaybeUninit<T>> {
    /// Makes a cell with nothing in it at `place`. It makes no copy on the stack, where a large
    /// cell would not fit.
    ///
    /// # Safety
    ///
    /// There is room for a cell at `place`, and only the caller knows of it.
    #[inline]
    pub const unsafe fn write_uninit(_place: *mut Self) {
        // Whatever is there will do: the cell is its value, and that need not be anything.
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads through a pointer that is good until `read` returns.
    #[inline]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }

    /// Writes through a pointer that is good until `write` returns.
    #[inline]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }

    /// The value itself, for the sole owner. Under loom it is checked like a write.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}
