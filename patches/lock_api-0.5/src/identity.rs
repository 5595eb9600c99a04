//! Stanchion's addition to `lock_api`: the identity of a lock, or nothing where `std` is missing.

#[cfg(all(not(target_os = "none"), target_has_atomic = "64"))]
pub(crate) use stanchion_order::{Identity, Mode};

#[cfg(not(all(not(target_os = "none"), target_has_atomic = "64")))]
pub(crate) use nothing::{Identity, Mode};

#[cfg(not(all(not(target_os = "none"), target_has_atomic = "64")))]
mod nothing {
    /// Nothing, with the functions of an identity.
    pub struct Identity;

    /// The modes of locks.
    #[derive(Clone, Copy)]
    pub enum Mode {
        Exclusive,
        Shared,
        #[allow(dead_code)]
        SharedRecursive,
        Upgradable,
    }

    impl Identity {
        pub(crate) const fn new() -> Self {
            Self
        }

        pub(crate) const fn unplaced() -> Self {
            Self
        }

        #[inline]
        pub(crate) fn acquire<G>(
            &self,
            _: Mode,
            _: impl FnOnce() -> Option<G>,
            block: impl FnOnce() -> G,
        ) -> G {
            block()
        }

        #[inline]
        pub(crate) fn trying(&self, _: Mode) {}

        #[inline]
        pub(crate) fn gave_up(&self) {}

        #[inline]
        pub(crate) fn acquired(&self, _: Mode) {}

        #[inline]
        pub(crate) fn released(&self, _: Mode) {}

        #[inline]
        pub(crate) fn changed(&self, _: Mode, _: Mode) {}

        #[inline]
        pub(crate) fn upgrading(&self) {}

        #[inline]
        pub(crate) fn reacquiring<R>(&self, _: Mode, act: impl FnOnce() -> R) -> R {
            act()
        }
    }
}
