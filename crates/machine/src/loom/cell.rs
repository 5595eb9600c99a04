//! A race-checked cell with `const fn new`: the value sits here, the checking is done by a cell of the pool.

use core::fmt;
use core::mem::MaybeUninit;

use super::world::{Claim, World};

/// A cell that hands out raw pointers for the extent of a closure, and reports conflicting accesses that nothing orders.
pub struct UnsafeCell<T: ?Sized> {
    claim: Claim,
    value: core::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// A cell holding `value`.
    pub const fn new(value: T) -> Self {
        Self { claim: Claim::new(), value: core::cell::UnsafeCell::new(value) }
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> UnsafeCell<MaybeUninit<T>> {
    /// Makes a cell with nothing in it at `place`, of which nobody else knows.
    ///
    /// # Safety
    ///
    /// There is room for a cell at `place`.
    pub const unsafe fn write_uninit(place: *mut Self) {
        // SAFETY: by the caller's promise there is room for it, this field included.
        let claim = unsafe { &raw mut (*place).claim };
        // SAFETY: as above. The value need not be anything.
        unsafe { claim.write(Claim::new()) };
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads through a pointer that is good until `read` returns.
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        let world = World::current();
        world.cells.claimed(&self.claim, &world).with(|_| read(self.value.get()))
    }

    /// Writes through a pointer that is good until `write` returns.
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        let world = World::current();
        world.cells.claimed(&self.claim, &world).with_mut(|_| write(self.value.get()))
    }

    /// The value itself, for the sole owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
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
