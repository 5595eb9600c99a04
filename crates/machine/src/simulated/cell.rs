//! A cell that charges its line, because data that a lock guards moves between caches too.
//!
//! Each [`with`](UnsafeCell::with) is charged as one read, and each
//! [`with_mut`](UnsafeCell::with_mut) as one write, of the line in which the value begins, before
//! the closure runs. A closure that goes through more of a large value declares that by
//! [`read`](crate::read) and [`write`](crate::write). Races are checked under loom: here only one
//! thread runs at a time.

use core::fmt;
use core::mem::MaybeUninit;
use core::panic::Location;

use stanchion_simulator::inside::{self, Kind};

use super::instructions::before;
use crate::atomic::Fresh;

/// A cell that hands out raw pointers for the extent of a closure.
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Returns a cell that holds `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> Fresh for UnsafeCell<T> {
    type Value = T;

    fn fresh(value: T) -> Self {
        Self::new(value)
    }
}

impl<T> UnsafeCell<MaybeUninit<T>> {
    /// Makes a cell with nothing in it at `place`, which no other thread knows. Not charged.
    ///
    /// # Safety
    ///
    /// There is room for a cell at `place`.
    pub const unsafe fn write_uninit(_place: *mut Self) {
        // As on the real machine: the memory may hold any bytes.
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    #[inline(never)]
    #[track_caller]
    fn charge(&self, kind: Kind) {
        if size_of_val(self) > 0 {
            inside::access_after(
                before(Location::caller()),
                self.0.get().cast_const().cast(),
                kind,
            );
        }
    }

    /// Reads through a pointer that is good until `read` returns.
    #[inline(always)]
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.charge(Kind::Read);
        read(self.0.get())
    }

    /// Writes through a pointer that is good until `write` returns.
    #[inline(always)]
    #[track_caller]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.charge(Kind::Write);
        write(self.0.get())
    }

    /// Returns the value itself, for its only owner. Not charged.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsafeCell")
    }
}
