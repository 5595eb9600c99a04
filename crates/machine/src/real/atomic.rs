//! The core atomics themselves.

use crate::atomic::Fresh;
#[cfg(target_has_atomic = "64")]
pub use core::sync::atomic::AtomicU64;
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, fence};

macro_rules! fresh {
    ($($atomic:ident => $value:ty),+) => {$(
        impl Fresh for $atomic {
            type Value = $value;

            #[inline]
            fn fresh(value: $value) -> Self {
                Self::new(value)
            }
        }
    )+};
}

fresh!(AtomicBool => bool, AtomicU8 => u8, AtomicU32 => u32, AtomicUsize => usize);
#[cfg(target_has_atomic = "64")]
fresh!(AtomicU64 => u64);

impl<T> Fresh for AtomicPtr<T> {
    type Value = *mut T;

    #[inline]
    fn fresh(value: *mut T) -> Self {
        Self::new(value)
    }
}
