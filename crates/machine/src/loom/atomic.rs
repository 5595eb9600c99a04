//! Loom's atomics with `const fn new`; [`world`](super::world) explains how.

use core::fmt;

use super::watched::Watched;
use super::world::{Claim, Object, World, published};
use crate::atomic::{Fresh, Ordering};

/// Executes a fence of the given ordering.
#[track_caller]
pub fn fence(order: Ordering) {
    loom::sync::atomic::fence(order);
    published();
}

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $int:ty, $pool:ident) => {
        $(#[$doc])*
        pub struct $name {
            /// The value given to `new` or `fresh`.
            initial: $int,
            /// The claim on the object in use, if `new` made this.
            claim: Claim,
            /// The object in use, if `fresh` made this.
            own: Option<Watched<loom::sync::atomic::$name>>,
        }

        impl $name {
            /// Makes an atomic that holds `value`: a static, or one made before the threads that
            /// use it. See [`Fresh::fresh`] for others.
            #[must_use]
            #[track_caller]
            pub const fn new(value: $int) -> Self {
                Self { initial: value, claim: Claim::new(), own: None }
            }

            #[track_caller]
            fn object(&self) -> Object<'_, Watched<loom::sync::atomic::$name>> {
                match &self.own {
                    Some(own) => Object::Own(own),
                    None => {
                        let world = World::current();
                        Object::Claimed(world.$pool.claimed(&self.claim, &world))
                    }
                }
            }

            /// Returns what is added to the stored number to get the value.
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
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $int {
                let object = self.object();
                object.look();
                self.decode(object.word.load(order))
            }

            /// Stores `value`.
            #[track_caller]
            pub fn store(&self, value: $int, order: Ordering) {
                self.object().word.store(self.encode(value), order);
                published();
            }

            /// Stores `value` and returns the value before.
            #[track_caller]
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                let old = self.object().word.swap(self.encode(value), order);
                published();
                self.decode(old)
            }

            /// Stores `new` if the value is `current`.
            ///
            /// # Errors
            ///
            /// The value, if it is not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                let (current, new) = (self.encode(current), self.encode(new));
                match self.object().word.compare_exchange(current, new, success, failure) {
                    Ok(old) => {
                        published();
                        Ok(self.decode(old))
                    }
                    Err(now) => Err(self.decode(now)),
                }
            }

            /// Stores `new` as [`compare_exchange`](Self::compare_exchange) does, but may fail
            /// spuriously.
            ///
            /// # Errors
            ///
            /// The value, which may be `current`.
            #[track_caller]
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
            #[track_caller]
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                let old = self.object().word.fetch_add(value, order);
                published();
                self.decode(old)
            }

            /// Subtracts, wrapping; returns the value before.
            #[track_caller]
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                let old = self.object().word.fetch_sub(value, order);
                published();
                self.decode(old)
            }

            /// Sets bits; returns the value before.
            #[track_caller]
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                if self.bias() != 0 {
                    return self.update(order, |old| old | value);
                }
                let old = self.object().word.fetch_or(value, order);
                published();
                old
            }

            /// Keeps bits; returns the value before.
            #[track_caller]
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                if self.bias() != 0 {
                    return self.update(order, |old| old & value);
                }
                let old = self.object().word.fetch_and(value, order);
                published();
                old
            }

            /// Flips bits; returns the value before.
            #[track_caller]
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                if self.bias() != 0 {
                    return self.update(order, |old| old ^ value);
                }
                let old = self.object().word.fetch_xor(value, order);
                published();
                old
            }

            /// Updates by an exchange loop, for operations that do not commute with the bias.
            #[track_caller]
            fn update(&self, order: Ordering, update: impl Fn($int) -> $int) -> $int {
                let mut old = self.load(Ordering::Relaxed);
                loop {
                    match self.compare_exchange(old, update(old), order, Ordering::Relaxed) {
                        Ok(old) => return old,
                        Err(now) => old = now,
                    }
                }
            }

            /// Stores the larger of the value and `value`; returns the value before.
            #[track_caller]
            pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                self.update(order, |old| old.max(value))
            }

            /// Stores the smaller of the value and `value`; returns the value before.
            #[track_caller]
            pub fn fetch_min(&self, value: $int, order: Ordering) -> $int {
                self.update(order, |old| old.min(value))
            }

            /// Stores the result of `update` for the value, and repeats that until it succeeds.
            ///
            /// # Errors
            ///
            /// The value for which `update` returned `None`.
            #[track_caller]
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

            #[track_caller]
            fn fresh(value: $int) -> Self {
                let own = Some(Watched::new(loom::sync::atomic::$name::new(value)));
                Self { initial: value, claim: Claim::new(), own }
            }
        }

        impl Drop for $name {
            /// Checks the end of an atomic made by `fresh` like a write: every use must happen
            /// before it. A node that is freed while another thread may still reach it is found
            /// here.
            fn drop(&mut self) {
                // A failing execution unwinds through here, and its first report counts.
                if let Some(own) = &mut self.own
                    && !std::thread::panicking()
                {
                    own.word.with_mut(|_| ());
                }
            }
        }

        impl Default for $name {
            #[track_caller]
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

/// Defines the operations of a type that wraps one of the integers, by a pair of conversions.
macro_rules! over {
    (
        $name:ident $(<$param:ident>)?, $value:ty, $raw:ident,
        |$this:ident, $from:ident| $to_raw:expr, |$that:ident, $stored:ident| $to_value:expr
    ) => {
        impl $(<$param>)? $name $(<$param>)? {
            fn encode(&self, $from: $value) -> <$raw as Fresh>::Value {
                let $this = self;
                $to_raw
            }

            fn decode(&self, $stored: <$raw as Fresh>::Value) -> $value {
                let $that = self;
                $to_value
            }

            /// Loads the value.
            #[must_use]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                self.decode(self.raw.load(order))
            }

            /// Stores `value`.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                self.raw.store(self.encode(value), order);
            }

            /// Stores `value` and returns the value before.
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.decode(self.raw.swap(self.encode(value), order))
            }

            /// Stores `new` if the value is `current`.
            ///
            /// # Errors
            ///
            /// The value, if it is not `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (current, new) = (self.encode(current), self.encode(new));
                self.raw
                    .compare_exchange(current, new, success, failure)
                    .map(|old| self.decode(old))
                    .map_err(|now| self.decode(now))
            }

            /// Stores `new` as [`compare_exchange`](Self::compare_exchange) does, but may fail
            /// spuriously.
            ///
            /// # Errors
            ///
            /// The value, which may be `current`.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let (current, new) = (self.encode(current), self.encode(new));
                self.raw
                    .compare_exchange_weak(current, new, success, failure)
                    .map(|old| self.decode(old))
                    .map_err(|now| self.decode(now))
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

/// An atomic `bool`.
pub struct AtomicBool {
    /// 0 or 1.
    raw: AtomicU8,
}

/// An atomic pointer-sized word.
pub struct AtomicUsize {
    /// The value.
    raw: AtomicU64,
}

/// An atomic pointer.
pub struct AtomicPtr<T> {
    /// The address, minus that of `initial`.
    raw: AtomicU64,
    /// The pointer given to `new`, or null. A constant cannot contain its address.
    initial: *mut T,
}

// SAFETY: any thread may have the pointer as a value; using it is unsafe.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: `initial` never changes, and `raw` is an atomic.
unsafe impl<T> Sync for AtomicPtr<T> {}

over!(AtomicBool, bool, AtomicU8, |_this, value| u8::from(value), |_this, stored| stored != 0);
over!(AtomicUsize, usize, AtomicU64, |_this, value| value as u64, |_this, stored| stored as usize);
over!(
    AtomicPtr<T>,
    *mut T,
    AtomicU64,
    |this, value| (value.expose_provenance() as u64).wrapping_sub(this.base()),
    |this, stored| core::ptr::with_exposed_provenance_mut(stored.wrapping_add(this.base()) as usize)
);

impl AtomicBool {
    /// Makes an atomic that holds `value`, as [`AtomicU8::new`] does.
    #[must_use]
    #[track_caller]
    pub const fn new(value: bool) -> Self {
        Self { raw: AtomicU8::new(value as u8) }
    }
}

impl Fresh for AtomicBool {
    type Value = bool;

    #[track_caller]
    fn fresh(value: bool) -> Self {
        Self { raw: AtomicU8::fresh(u8::from(value)) }
    }
}

impl Default for AtomicBool {
    #[track_caller]
    fn default() -> Self {
        Self::new(false)
    }
}

impl AtomicUsize {
    /// Makes an atomic that holds `value`, as [`AtomicU64::new`] does.
    #[must_use]
    #[track_caller]
    pub const fn new(value: usize) -> Self {
        Self { raw: AtomicU64::new(value as u64) }
    }

    /// Adds, wrapping; returns the value before.
    #[track_caller]
    pub fn fetch_add(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_add(value as u64, order) as usize
    }

    /// Subtracts, wrapping; returns the value before.
    #[track_caller]
    pub fn fetch_sub(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_sub(value as u64, order) as usize
    }

    /// Sets bits; returns the value before.
    #[track_caller]
    pub fn fetch_or(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_or(value as u64, order) as usize
    }

    /// Keeps bits; returns the value before.
    #[track_caller]
    pub fn fetch_and(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_and(value as u64, order) as usize
    }

    /// Raises the value to at least this one; returns the value before.
    #[track_caller]
    pub fn fetch_max(&self, value: usize, order: Ordering) -> usize {
        self.raw.fetch_max(value as u64, order) as usize
    }

    /// Stores the result of `update` for the value, unless that is `None`. Returns the value
    /// before.
    ///
    /// # Errors
    ///
    /// The value for which `update` returned `None`.
    #[track_caller]
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
    #[track_caller]
    fn default() -> Self {
        Self::new(0)
    }
}

impl Fresh for AtomicUsize {
    type Value = usize;

    #[track_caller]
    fn fresh(value: usize) -> Self {
        Self { raw: AtomicU64::fresh(value as u64) }
    }
}

impl<T> AtomicPtr<T> {
    /// Makes an atomic that holds `value`, as [`AtomicU64::new`] does.
    #[must_use]
    #[track_caller]
    pub const fn new(value: *mut T) -> Self {
        Self { raw: AtomicU64::new(0), initial: value }
    }

    /// Returns what is added to the stored number to get an address.
    fn base(&self) -> u64 {
        self.initial.expose_provenance() as u64
    }
}

impl<T> Fresh for AtomicPtr<T> {
    type Value = *mut T;

    #[track_caller]
    fn fresh(value: *mut T) -> Self {
        let raw = AtomicU64::fresh(value.expose_provenance() as u64);
        Self { raw, initial: core::ptr::null_mut() }
    }
}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(core::ptr::null_mut())
    }
}
