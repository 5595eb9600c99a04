//! Stanchion's addition to `parking_lot_core`: the record of waits, or nothing where it is missing.

#[cfg(all(not(target_os = "none"), target_has_atomic = "64"))]
pub(crate) use stanchion_order::Wait;
#[cfg(all(not(target_os = "none"), target_has_atomic = "64"))]
pub(crate) use stanchion_order::{mutex_acquired, mutex_released};

#[cfg(not(all(not(target_os = "none"), target_has_atomic = "64")))]
pub(crate) use nothing::*;

#[cfg(not(all(not(target_os = "none"), target_has_atomic = "64")))]
mod nothing {
    /// Nothing, with the functions of a recorded wait.
    pub(crate) struct Wait;

    impl Wait {
        #[inline]
        pub(crate) fn begin(_: usize) -> Self {
            Self
        }

        #[inline]
        pub(crate) fn sleeping<R>(&self, act: impl FnOnce() -> R) -> R {
            act()
        }

        #[inline]
        pub(crate) fn end(self, _: bool) {}
    }

    #[inline]
    pub(crate) fn mutex_released(_: usize) {}

    #[inline]
    pub(crate) fn mutex_acquired(_: usize) {}
}
