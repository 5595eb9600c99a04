//! Core's atomics, whose every access is charged first.
//!
//! # Invariants
//!
//! 1. The plain operation follows its charge at once: between the two no other virtual thread runs, so the run's order of charges is
//!    the order of the operations.
//! 2. An atomic is exactly its core one: two words share a line here if they would share it there.

use core::fmt;
use core::sync::atomic as core_atomic;

use crate::atomic::{Fresh, Ordering};
use stanchion_simulator::inside::{self, Kind};

/// A fence: nothing is reordered here; the machine's description says what it costs.
///
/// # Panics
///
/// For `Relaxed`, as core's.
pub fn fence(order: Ordering) {
    core_atomic::fence(order);
    if inside::is_running() {
        inside::fence();
    }
}

/// A store that releases is an exchange where the machine has no other way.
#[inline]
fn kind_of_store(order: Ordering) -> Kind {
    let releases = matches!(order, Ordering::Release | Ordering::SeqCst);
    if releases && inside::releases_by_exchange() { Kind::Exchange } else { Kind::Write }
}

/// What all atomics have.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $(<$param:ident>)?, $value:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name $(<$param>)? (core_atomic::$name $(<$param>)?);

        impl $(<$param>)? $name $(<$param>)? {
            /// An atomic that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(core_atomic::$name::new(value))
            }

            #[inline]
            fn charge(&self, kind: Kind) {
                inside::access(core::ptr::from_ref(self).cast(), kind);
            }

            /// The value, for the sole owner; not charged.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// Takes the value out; not charged.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// Loads the value.
            #[must_use]
            pub fn load(&self, order: Ordering) -> $value {
                self.charge(Kind::Read);
                self.0.load(order)
            }

            /// Stores `value`.
            pub fn store(&self, value: $value, order: Ordering) {
                self.charge(kind_of_store(order));
                self.0.store(value, order);
            }

            /// Stores `value`, returns the one before.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.charge(Kind::Exchange);
                self.0.swap(value, order)
            }

            /// Stores `new` if the value is `current`. Charged as an exchange either way.
            ///
            /// # Errors
            ///
            /// The value it is instead.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.charge(Kind::Exchange);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// [`compare_exchange`](Self::compare_exchange), which does not fail for no reason here.
            ///
            /// # Errors
            ///
            /// The value it is instead.
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Stores what `update` makes of the value, until that succeeds.
            ///
            /// # Errors
            ///
            /// The value that `update` declined.
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(fetch_order);
                while let Some(new) = update(old) {
                    match self.compare_exchange_weak(old, new, set_order, fetch_order) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }
        }

        impl $(<$param>)? Fresh for $name $(<$param>)? {
            type Value = $value;

            fn fresh(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl $(<$param>)? From<$value> for $name $(<$param>)? {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            /// Not charged: printing is not part of the program.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

/// The read-modify-writes that return the value before.
macro_rules! fetches {
    ($name:ident, $value:ty, $($(#[$doc:meta])* $fetch:ident),+) => {
        impl $name {
            $(
                $(#[$doc])*
                pub fn $fetch(&self, value: $value, order: Ordering) -> $value {
                    self.charge(Kind::Exchange);
                    self.0.$fetch(value, order)
                }
            )+
        }
    };
}

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $value:ty) => {
        atomic!($(#[$doc])* $name, $value);

        fetches!(
            $name, $value,
            /// Adds, wrapping; returns the value before.
            fetch_add,
            /// Subtracts, wrapping; returns the value before.
            fetch_sub,
            /// Sets bits; returns the value before.
            fetch_or,
            /// Keeps bits; returns the value before.
            fetch_and,
            /// Flips bits; returns the value before.
            fetch_xor,
            /// The larger of the value and `value` is stored; returns the value before.
            fetch_max,
            /// The smaller of the value and `value` is stored; returns the value before.
            fetch_min
        );

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }
    };
}

integer!(
    /// An atomic byte.
    AtomicU8, u8
);
integer!(
    /// An atomic 32-bit word.
    AtomicU32, u32
);
integer!(
    /// An atomic 64-bit word.
    AtomicU64, u64
);
integer!(
    /// An atomic pointer-sized word.
    AtomicUsize, usize
);
atomic!(
    /// An atomic `bool`.
    AtomicBool, bool
);
fetches!(
    AtomicBool, bool,
    /// Sets it if `value`; returns the value before.
    fetch_or,
    /// Keeps it if `value`; returns the value before.
    fetch_and,
    /// Flips it if `value`; returns the value before.
    fetch_xor
);
atomic!(
    /// An atomic pointer.
    AtomicPtr<T>, *mut T
);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}

impl AtomicU32 {
    /// The value as the scheduler sees it: not charged.
    pub(super) fn peek(&self) -> u32 {
        // Relaxed: one thread of the operating system runs them all.
        self.0.load(Ordering::Relaxed)
    }
}
