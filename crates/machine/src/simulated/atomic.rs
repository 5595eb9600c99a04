//! Wrappers of core's atomics that charge every access before it is done.
//!
//! # Invariants
//!
//! 1. The plain operation follows its charge at once. No other virtual thread runs between the two,
//!    so the run's order of charges is the order of the operations.
//! 2. An atomic has exactly the layout of core's: two words share a line here if they would share
//!    it there.

use core::fmt;
use core::panic::Location;
use core::sync::atomic as core_atomic;

use super::instructions::before;
use crate::atomic::{Fresh, Ordering};
use stanchion_simulator::inside::{self, Kind};

/// Executes a fence. Nothing is reordered here; the machine's description says what the fence
/// costs.
///
/// # Panics
///
/// Panics for `Relaxed`, as core's does.
pub fn fence(order: Ordering) {
    core_atomic::fence(order);
    if inside::is_running() {
        inside::fence();
    }
}

/// Returns how a store is charged. A releasing store is an exchange on a machine that has no other
/// way.
#[inline]
fn kind_of_store(order: Ordering) -> Kind {
    let releases = matches!(order, Ordering::Release | Ordering::SeqCst);
    if releases && inside::releases_by_exchange() { Kind::Exchange } else { Kind::Write }
}

/// Defines the operations that all atomics have.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $(<$param:ident>)?, $value:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name $(<$param>)? (core_atomic::$name $(<$param>)?);

        impl $(<$param>)? $name $(<$param>)? {
            /// Returns an atomic that holds `value`.
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(core_atomic::$name::new(value))
            }

            #[inline]
            #[track_caller]
            fn charge(&self, kind: Kind) {
                inside::access_after(before(Location::caller()), core::ptr::from_ref(self).cast(), kind);
            }

            /// Returns the value, for its only owner. Not charged.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// Takes the value out. Not charged.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// Loads the value.
            #[must_use]
            #[track_caller]
            #[inline(never)]
            pub fn load(&self, order: Ordering) -> $value {
                self.charge(Kind::Read);
                self.0.load(order)
            }

            /// Stores `value`.
            #[track_caller]
            #[inline(never)]
            pub fn store(&self, value: $value, order: Ordering) {
                self.charge(kind_of_store(order));
                self.0.store(value, order);
            }

            /// Stores `value` and returns the value before.
            #[track_caller]
            #[inline(never)]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.charge(Kind::Exchange);
                self.0.swap(value, order)
            }

            /// Stores `new` if the value is `current`. Charged as an exchange, or, where the
            /// machine says so and the value is another one, as a read.
            ///
            /// # Errors
            ///
            /// The value, if it is not `current`.
            #[track_caller]
            #[inline(never)]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                // Relaxed: nothing else runs.
                let fails = || self.0.load(Ordering::Relaxed) != current;
                inside::compare_after(
                    before(Location::caller()),
                    core::ptr::from_ref(self).cast(),
                    fails,
                );
                self.0.compare_exchange(current, new, success, failure)
            }

            /// Stores `new` as [`compare_exchange`](Self::compare_exchange) does. It never fails
            /// spuriously here.
            ///
            /// # Errors
            ///
            /// The value, if it is not `current`.
            #[track_caller]
            #[inline(never)]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Stores the result of `update` for the value, and repeats that until it succeeds.
            ///
            /// # Errors
            ///
            /// The value for which `update` returned `None`.
            #[track_caller]
            #[inline(never)]
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
            /// Does not charge: printing is not part of the program.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

/// Defines the read-modify-writes that return the value before.
macro_rules! fetches {
    ($name:ident, $value:ty, $($(#[$doc:meta])* $fetch:ident),+) => {
        impl $name {
            $(
                $(#[$doc])*
                #[track_caller]
                #[inline(never)]
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
            /// Stores the larger of the value and `value`; returns the value before.
            fetch_max,
            /// Stores the smaller of the value and `value`; returns the value before.
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
    /// Sets it to true if `value` is; returns the value before.
    fetch_or,
    /// Sets it to false if `value` is; returns the value before.
    fetch_and,
    /// Inverts it if `value` is true; returns the value before.
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
    /// Returns the value for the scheduler, without a charge.
    pub(crate) fn peek(&self) -> u32 {
        // Relaxed: one thread of the operating system runs all virtual threads.
        self.0.load(Ordering::Relaxed)
    }
}
