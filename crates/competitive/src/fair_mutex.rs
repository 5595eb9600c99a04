//! A mutex with releases that are all fair.
//!
//! Why not a flag of [`RawPolicyMutex`]: a release would have to look at it, and generic code would
//! not see from the type which kind it has.

use core::fmt;

use lock_api::{GuardNoSend, RawMutex, RawMutexFair, RawMutexTimed};

use crate::mutex::RawPolicyMutex;
use crate::policy::{Adaptive, Policy};

/// A mutex that hands itself over at every release.
///
/// A release gives the lock to the thread that has slept longest for it. If no thread sleeps, the
/// lock becomes free, and any thread may take it. So a thread that releases the lock and asks for
/// it again does not overtake a sleeper.
///
/// | | |
/// | --- | --- |
/// | uncontended | one compare-exchange to lock; a spin lock and a store to unlock |
/// | contended | a switch to the sleeper for each release: a scheduler's throughput |
/// | order | that of falling asleep; a spinning waiter may take a free lock |
/// | size | that of [`RawPolicyMutex`] |
///
/// A thread without a [number](stanchion_machine::thread::index), as one that is ending, is woken,
/// and not handed the lock.
///
/// # Panics
///
/// As [`RawPolicyMutex`].
pub struct RawFairMutex<P = Adaptive>(RawPolicyMutex<P>);

/// A mutex that hands itself over at every release, see [`RawFairMutex`].
///
/// ```
/// use stanchion_competitive::FairMutex;
///
/// static TURNS: FairMutex<Vec<u32>> = FairMutex::new(Vec::new());
/// std::thread::scope(|scope| {
///     for thread in 0..3 {
///         scope.spawn(move || (0..10).for_each(|_| TURNS.lock().push(thread)));
///     }
/// });
/// assert_eq!(TURNS.lock().len(), 30);
/// ```
pub type FairMutex<T> = lock_api::Mutex<RawFairMutex, T>;

/// The guard of a [`FairMutex`].
pub type FairMutexGuard<'a, T> = lock_api::MutexGuard<'a, RawFairMutex, T>;

/// A guard of a part of what a [`FairMutex`] protects.
pub type MappedFairMutexGuard<'a, T> = lock_api::MappedMutexGuard<'a, RawFairMutex, T>;

/// A [`FairMutex`] with a policy of your choice, see [`policy`](crate::policy).
///
/// ```
/// use stanchion_competitive::{PolicyFairMutex, policy::AlwaysBlock};
///
/// let mutex = PolicyFairMutex::<_, AlwaysBlock>::new(5);
/// assert_eq!(*mutex.lock(), 5);
/// ```
pub type PolicyFairMutex<T, P> = lock_api::Mutex<RawFairMutex<P>, T>;

/// The guard of a [`PolicyFairMutex`].
pub type PolicyFairMutexGuard<'a, T, P> = lock_api::MutexGuard<'a, RawFairMutex<P>, T>;

/// Creates a free [`FairMutex`].
///
/// It is [`FairMutex::new`], under the name that `parking_lot` has for it.
#[must_use]
pub const fn const_fair_mutex<T>(value: T) -> FairMutex<T> {
    FairMutex::new(value)
}

impl RawFairMutex {
    /// Creates a free lock with the default policy, [`Adaptive`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_policy(Adaptive::new())
    }
}

impl<P> RawFairMutex<P> {
    /// Creates a free lock with that policy.
    ///
    /// ```
    /// use stanchion_competitive::{PolicyFairMutex, RawFairMutex, policy::AlwaysBlock};
    /// let raw = RawFairMutex::with_policy(AlwaysBlock);
    /// let mutex = PolicyFairMutex::from_raw(raw, 5);
    /// assert_eq!(*mutex.lock(), 5);
    /// ```
    #[must_use]
    pub const fn with_policy(policy: P) -> Self {
        Self(RawPolicyMutex::with_policy(policy))
    }

    /// Returns the policy, with the state that it has learnt.
    #[must_use]
    pub const fn policy(&self) -> &P {
        self.0.policy()
    }
}

// SAFETY: it is the inner lock.
unsafe impl<P: Policy> RawMutex for RawFairMutex<P> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(RawPolicyMutex::INIT);

    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        self.0.lock()
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.0.try_lock()
    }

    #[inline]
    unsafe fn unlock(&self, guard: GuardNoSend) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_fair(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_locked()
    }
}

// SAFETY: it is the inner lock.
unsafe impl<P: Policy> RawMutexFair for RawFairMutex<P> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: GuardNoSend) {
        // SAFETY: the caller's promise.
        unsafe { self.0.unlock_fair(guard) };
    }

    #[inline]
    unsafe fn bump(&self, guard: &mut GuardNoSend) {
        // SAFETY: the caller's promise.
        unsafe { self.0.bump(guard) };
    }
}

// SAFETY: it is the inner lock.
unsafe impl<P: Policy> RawMutexTimed for RawFairMutex<P> {
    type Duration = <RawPolicyMutex<P> as RawMutexTimed>::Duration;
    type Instant = <RawPolicyMutex<P> as RawMutexTimed>::Instant;

    #[inline]
    fn try_lock_for(&self, timeout: Self::Duration) -> Option<GuardNoSend> {
        self.0.try_lock_for(timeout)
    }

    #[inline]
    fn try_lock_until(&self, instant: Self::Instant) -> Option<GuardNoSend> {
        self.0.try_lock_until(instant)
    }
}

impl<P: Policy> Default for RawFairMutex<P> {
    fn default() -> Self {
        Self::INIT
    }
}

impl<P: Policy> fmt::Debug for RawFairMutex<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawFairMutex").field("holder", &self.0.holder()).finish_non_exhaustive()
    }
}
