//! A race-checked cell with `const fn new`. The value is stored here, and a cell of loom's does the
//! checks.

use core::fmt;
use core::mem::MaybeUninit;

use super::world::{Claim, Object, World};
use crate::atomic::Fresh;

/// A cell that hands out raw pointers for the extent of a closure, and reports conflicting accesses
/// that nothing orders.
pub struct UnsafeCell<T: ?Sized> {
    /// The claim on the checking cell, for a cell made by `new`.
    claim: Claim,
    /// The checking cell, for a cell made by `fresh`.
    own: Option<loom::cell::UnsafeCell<()>>,
    /// The value, accessed only by the closures of `with` and `with_mut` and by its only owner.
    value: core::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// Returns a cell that holds `value`: a static, or an object made before the threads. See
    /// [`Fresh::fresh`] for others.
    #[track_caller]
    pub const fn new(value: T) -> Self {
        Self { claim: Claim::new(), own: None, value: core::cell::UnsafeCell::new(value) }
    }

    /// Takes the value out.
    #[track_caller]
    pub fn into_inner(self) -> T {
        self.check_exclusive();
        self.value.into_inner()
    }
}

impl<T> UnsafeCell<MaybeUninit<T>> {
    /// Makes a cell with nothing in it at `place`, which no other thread knows.
    ///
    /// # Safety
    ///
    /// There is room for a cell at `place`.
    #[track_caller]
    pub const unsafe fn write_uninit(place: *mut Self) {
        // SAFETY: by the caller's promise there is room for it, this field included.
        let claim = unsafe { &raw mut (*place).claim };
        // SAFETY: as above. The value may be any bytes.
        unsafe { claim.write(Claim::new()) };
        // SAFETY: as above.
        let own = unsafe { &raw mut (*place).own };
        // SAFETY: as above.
        unsafe { own.write(None) };
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    #[track_caller]
    fn object(&self) -> Object<'_, loom::cell::UnsafeCell<()>> {
        match &self.own {
            Some(own) => Object::Own(own),
            None => {
                let world = World::current();
                Object::Claimed(world.cells.claimed(&self.claim, &world))
            }
        }
    }

    /// Checks an access by the only owner like a write, if there is anything to check it against.
    #[track_caller]
    fn check_exclusive(&self) {
        // A failing execution unwinds through here, and its first report counts.
        if std::thread::panicking() {
            return;
        }
        // Outside of a model there is one thread.
        let Some(world) = World::try_current() else { return };
        if self.own.is_some() || self.claim.is_of(&world) {
            self.object().with_mut(|_| ());
        } else {
            self.claim.check_unclaimed(&world);
        }
    }

    /// Reads through a pointer that is good until `read` returns.
    #[track_caller]
    pub fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.object().with(|_| read(self.value.get()))
    }

    /// Writes through a pointer that is good until `write` returns.
    #[track_caller]
    pub fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.object().with_mut(|_| write(self.value.get()))
    }

    /// Returns the value itself, for its only owner. Checked like a write.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut T {
        self.check_exclusive();
        self.value.get_mut()
    }
}

impl<T> Fresh for UnsafeCell<T> {
    type Value = T;

    #[track_caller]
    fn fresh(value: T) -> Self {
        let own = Some(loom::cell::UnsafeCell::new(()));
        Self { claim: Claim::new(), own, value: core::cell::UnsafeCell::new(value) }
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnsafeCell")
    }
}
