//! Loom's atomics with `const fn new`; see [`world`](super::world) for how.

use core::fmt;
use core::marker::PhantomData;

use super::world::{Claim, World};
use crate::atomic::{Fresh, Ordering};
pub use loom::sync::atomic::fence;

/// A word of loom's, and what makes its explorer see every look at it.
///
/// Loom 0.7.2 remembers one last access of an object. A thread that loads a word and then writes it finds its own load there, so a load by
/// another thread before that is never tried after the write: `load; store` beside a `load` is explored once, with the load first
/// (with a bare store it is explored six times). So every look first stores to an object of its own, which reads nothing and
/// orders nothing, but makes two looks at one word depend on each other.
pub(super) struct Watched<T> {
    word: T,
    looks: loom::sync::atomic::AtomicU8,
}

impl<T> Watched<T> {
    pub(super) fn new(word: T) -> Self {
        Self { word, looks: loom::sync::atomic::AtomicU8::new(0) }
    }

    fn look(&self) {
        // Relaxed: nobody loads it; the store is for the explorer.
        self.looks.store(0, Ordering::Relaxed);
    }
}

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $int:ty, $pool:ident) => {
        $(#[$doc])*
        pub struct $name {
            initial: $int,
            claim: Claim,
            own: Option<Watched<loom::sync::atomic::$name>>,
        }

        impl $name {
            /// An atomic that holds `value`.
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self { initial: value, claim: Claim::new(), own: None }
            }

            fn with<R>(&self, operation: impl FnOnce(&loom::sync::atomic::$name) -> R) -> R {
                self.watched(|object| operation(&object.word))
            }

            fn watched<R>(
                &self,
                operation: impl FnOnce(&Watched<loom::sync::atomic::$name>) -> R,
            ) -> R {
                match &self.own {
                    Some(object) => operation(object),
                    None => {
                        let world = World::current();
                        operation(world.$pool.claimed(&self.claim, &world))
                    }
                }
            }

            /// What is added to the stored number to get the value.
            fn bias(&self) -> $int {
                if self.own.is_some() { 0 } else { self.initial }
            }

            fn encode(&self, value: $int) -> $int {
                value.wrapping_sub(self.bias())
            }

            fn decode(&self, stored: $int) -> $int {
                stored.wrapping_add(self.bias())
            }

            /// Loads the value.
            #[must_use]
            pub fn load(&self, order: Ordering) -> $int {
                self.decode(self.watched(|object| {
                    object.look();
                    object.word.load(order)
                }))
            }

            /// Stores `value`.
            pub fn store(&self, value: $int, order: Ordering) {
                self.with(|object| object.store(self.encode(value), order));
            }

            /// Stores `value`, returns the one before.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                self.decode(self.with(|object| object.swap(self.encode(value), order)))
            }

            /// Stores `new` if the value is `current`.
            ///
            /// # Errors
            ///
            /// The value it is instead.
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                let (current, new) = (self.encode(current), self.encode(new));
                self.with(|object| object.compare_exchange(current, new, success, failure))
                    .map(|stored| self.decode(stored))
                    .map_err(|stored| self.decode(stored))
            }

            /// [`compare_exchange`](Self::compare_exchange) that may fail for no reason.
            ///
            /// # Errors
            ///
            /// The value it is instead, which may be `current`.
            pub fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                if World::current().weak_failure() {
                    return Err(self.load(failure));
                }
                self.compare_exchange(current, new, success, failure)
            }

            /// Adds, wrapping; returns the value before.
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.decode(self.with(|object| object.fetch_add(value, order)))
            }

            /// Subtracts, wrapping; returns the value before.
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.decode(self.with(|object| object.fetch_sub(value, order)))
            }

            /// Sets bits; returns the value before.
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.bitwise(order, |object| object.fetch_or(value, order), |old| old | value)
            }

            /// Keeps bits; returns the value before.
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.bitwise(order, |object| object.fetch_and(value, order), |old| old & value)
            }

            /// Flips bits; returns the value before.
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                self.bitwise(order, |object| object.fetch_xor(value, order), |old| old ^ value)
            }

            /// Bits survive the bias only when it is 0; otherwise the operation becomes an exchange loop.
            fn bitwise(
                &self,
                order: Ordering,
                direct: impl FnOnce(&loom::sync::atomic::$name) -> $int,
                update: impl Fn($int) -> $int,
            ) -> $int {
                if self.bias() == 0 {
                    return self.with(direct);
                }
                let mut old = self.load(Ordering::Relaxed);
                loop {
                    match self.compare_exchange(old, update(old), order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }

            /// The larger of the value and `value` is stored; returns the value before.
            pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                let mut old = self.load(Ordering::Relaxed);
                loop {
                    match self.compare_exchange(old, old.max(value), order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }

            /// The smaller of the value and `value` is stored; returns the value before.
            pub fn fetch_min(&self, value: $int, order: Ordering) -> $int {
                let mut old = self.load(Ordering::Relaxed);
                loop {
                    match self.compare_exchange(old, old.min(value), order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
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
                mut update: impl FnMut($int) -> Option<$int>,
            ) -> Result<$int, $int> {
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

        impl Fresh for $name {
            type Value = $int;

            fn fresh(value: $int) -> Self {
                let own = Some(Watched::new(loom::sync::atomic::$name::new(value)));
                Self { initial: value, claim: Claim::new(), own }
            }
        }

        impl Drop for $name {
            /// The end of an atomic that was made while the program runs is checked like a write: whoever touched it must have done so
            /// before. A node that leaves a queue while another thread may still reach it is found here.
            fn drop(&mut self) {
                // A failing execution unwinds through here; its first report is the one that counts.
                if let Some(own) = &mut self.own
                    && !std::thread::panicking()
                {
                    own.word.with_mut(|_| ());
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new(0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

integer!(
    /// An atomic byte.
    AtomicU8, u8, bytes
);
integer!(
    /// An atomic 32-bit word.
    AtomicU32, u32, words
);
integer!(
    /// An atomic 64-bit word.
    AtomicU64, u64, longs
);

/// A type over one of the integers, by a pair of conversions.
macro_rules! over {
    (
        $(#[$doc:meta])* $name:ident $(<$param:ident>)?, $value:ty, $raw:ident,
        |$from:ident| $to_raw:expr, |$stored:ident| $to_value:expr
    ) => {
        $(#[$doc])*
        pub struct $name $(<$param>)? {
            raw: $raw,
            _value: PhantomData<fn() -> $value>,
        }

        impl $(<$param>)? $name $(<$param>)? {
            fn encode($from: $value) -> <$raw as Fresh>::Value {
                $to_raw
            }

            fn decode($stored: <$raw as Fresh>::Value) -> $value {
                $to_value
            }

            /// Loads the value.
            #[must_use]
            pub fn load(&self, order: Ordering) -> $value {
                Self::decode(self.raw.load(order))
            }

            /// Stores `value`.
            pub fn store(&self, value: $value, order: Ordering) {
                self.raw.store(Self::encode(value), order);
            }

            /// Stores `value`, returns the one before.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                Self::decode(self.raw.swap(Self::encode(value), order))
            }

            /// Stores `new` if the value is `current`.
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
                self.raw
                    .compare_exchange(Self::encode(current), Self::encode(new), success, failure)
                    .map(Self::decode)
                    .map_err(Self::decode)
            }

            /// [`compare_exchange`](Self::compare_exchange) that may fail for no reason.
            ///
            /// # Errors
            ///
            /// The value it is instead, which may be `current`.
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.raw
                    .compare_exchange_weak(Self::encode(current), Self::encode(new), success, failure)
                    .map(Self::decode)
                    .map_err(Self::decode)
            }
        }

        impl $(<$param>)? Fresh for $name $(<$param>)? {
            type Value = $value;

            fn fresh(value: $value) -> Self {
                Self { raw: $raw::fresh(Self::encode(value)), _value: PhantomData }
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

over!(
    /// An atomic `bool`.
    AtomicBool, bool, AtomicU8, |value| u8::from(value), |stored| stored != 0
);
over!(
    /// An atomic pointer-sized word.
    AtomicUsize, usize, AtomicU64, |value| value as u64, |stored| stored as usize
);
over!(
    /// An atomic pointer.
    AtomicPtr<T>, *mut T, AtomicU64,
    |value| value.expose_provenance() as u64,
    |stored| core::ptr::with_exposed_provenance_mut(stored as usize)
);

impl AtomicBool {
    /// An atomic that holds `value`.
    #[must_use]
    pub const fn new(value: bool) -> Self {
        Self { raw: AtomicU8::new(value as u8), _value: PhantomData }
    }
}

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl AtomicUsize {
    /// An atomic that holds `value`.
    #[must_use]
    pub const fn new(value: usize) -> Self {
        Self { raw: AtomicU64::new(value as u64), _value: PhantomData }
    }

    /// Adds, wrapping; returns the value before.
    pub fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_add(value as u64, order) as usize
    }

    /// Subtracts, wrapping; returns the value before.
    pub fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_sub(value as u64, order) as usize
    }

    /// Sets bits; returns the value before.
    pub fn fetch_or(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_or(value as u64, order) as usize
    }

    /// Keeps bits; returns the value before.
    pub fn fetch_and(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_and(value as u64, order) as usize
    }

    /// Raises the value to at least this one; returns the value before.
    pub fn fetch_max(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_max(value as u64, order) as usize
    }

    /// Replaces the value by what `update` makes of it, unless that is `None`; returns the value before.
    ///
    /// # Errors
    ///
    /// The value of which `update` made nothing.
    pub fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        mut update: impl FnMut(usize) -> Option<usize>,
    ) -> Result<usize, usize> {
        self.raw
            .fetch_update(success, failure, |value| update(value as usize).map(|new| new as u64))
            .map(|before| before as usize)
            .map_err(|before| before as usize)
    }
}

impl Default for AtomicUsize {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<T> AtomicPtr<T> {
    /// An atomic that holds `value`, which must be null here: a constant has no other pointer that loom could tell apart.
    #[must_use]
    pub const fn new(value: *mut T) -> Self {
        // Only null can be turned into a number in a constant. A pointer known at run time wants `Fresh::fresh`.
        assert!(value.is_null(), "const-built pointers start null under loom; use `Fresh::fresh`");
        Self { raw: AtomicU64::new(0), _value: PhantomData }
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}
