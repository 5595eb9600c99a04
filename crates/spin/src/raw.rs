//! Macros for the parts that the locks of this crate have in common: aliases, fairness, deadlines,
//! and the trait of `lock_api` 0.4.

/// Defines the mutexes and guards of a raw lock: the types of `lock_api` with the lock filled in.
///
/// The first line names the types with the default parameters. Their only parameter is the payload,
/// so a constructor can infer it. The second line names the types with all parameters.
macro_rules! mutex_aliases {
    (
        $plain:ty: $mutex:ident, $guard:ident;
        $raw:ty: $policy_mutex:ident, $policy_guard:ident, [$($params:tt)*];
    ) => {
        #[doc = concat!("A mutex over [`", stringify!($plain), "`] with its default parameters.")]
        pub type $mutex<T> = lock_api::Mutex<$plain, T>;

        #[doc = concat!("The guard of a [`", stringify!($mutex), "`].")]
        pub type $guard<'a, T> = lock_api::MutexGuard<'a, $plain, T>;

        #[doc = concat!("A mutex over `", stringify!($raw), "`: a [`", stringify!($mutex),
            "`] with parameters of the caller's choice.")]
        pub type $policy_mutex<T, $($params)*> = lock_api::Mutex<$raw, T>;

        #[doc = concat!("The guard of a [`", stringify!($policy_mutex), "`].")]
        pub type $policy_guard<'a, T, $($params)*> = lock_api::MutexGuard<'a, $raw, T>;
    };
}

/// Implements `RawMutexFair` for a lock that serves its waiters in order anyway.
macro_rules! always_fair {
    ($raw:ty, [$($params:tt)*]) => {
        // SAFETY: the contract is that of `RawMutex`, and this is its release.
        unsafe impl<$($params)*> lock_api::RawMutexFair for $raw {
            #[inline]
            unsafe fn unlock_fair(&self, guard: Self::Guard) {
                // SAFETY: the caller holds the lock and hands in the guard of that acquisition.
                unsafe { lock_api::RawMutex::unlock(self, guard) };
            }
        }
    };
}

/// Implements the trait of `lock_api` 0.4 for a lock with the guard `$marker`, which carries
/// nothing.
macro_rules! stateless_04 {
    ($raw:ty, $marker:ident, [$($params:tt)*]) => {
        // SAFETY: the same lock, and its guard carries nothing that 0.4 could lose.
        #[cfg(feature = "lock_api_04")]
        unsafe impl<$($params)*> lock_api_04::RawMutex for $raw {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = <Self as lock_api::RawMutex>::INIT;

            type GuardMarker = lock_api_04::$marker;

            #[inline]
            fn lock(&self) {
                let _ = lock_api::RawMutex::lock(self);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                lock_api::RawMutex::try_lock(self).is_some()
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { lock_api::RawMutex::unlock(self, lock_api::$marker::new()) };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                lock_api::RawMutex::is_locked(self)
            }
        }
    };
}

/// Implements `RawMutexTimed` with the types of `std`, for a lock that has
/// `lock_until(&self, Deadline) -> Option<Guard>`.
macro_rules! timed {
    ($raw:ty, [$($params:tt)*]) => {
        // SAFETY: `lock_until` yields a guard only for an acquired lock.
        #[cfg(feature = "std")]
        unsafe impl<$($params)*> lock_api::RawMutexTimed for $raw {
            type Duration = core::time::Duration;
            type Instant = stanchion_machine::clock::Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Self::Duration) -> Option<Self::Guard> {
                // The clock is read only by a thread that has to wait.
                lock_api::RawMutex::try_lock(self)
                    .or_else(|| self.lock_until(stanchion_machine::clock::Deadline::after(timeout)))
            }

            #[inline]
            fn try_lock_until(&self, instant: Self::Instant) -> Option<Self::Guard> {
                lock_api::RawMutex::try_lock(self)
                    .or_else(|| self.lock_until(stanchion_machine::clock::Deadline::at(instant)))
            }
        }
    };
}
