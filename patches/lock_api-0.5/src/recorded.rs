//! Stanchion's addition to `lock_api`: a raw lock that tells of its acquisitions.
//!
//! Every call of `lock_api` into a raw lock goes through it. `raw()` gives the lock alone, so that
//! acquisitions through that are not seen.

use crate::identity::Identity;
use crate::identity::Mode::{self, Exclusive, Shared, Upgradable};
use crate::mutex::{RawMutex, RawMutexFair, RawMutexTimed};
use crate::rwlock::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};

/// A raw lock, with its identity. `repr(C)`: the recorder knows the lock by the address behind it.
#[repr(C)]
pub struct Recorded<L> {
    /// The lock's identity in the record.
    identity: Identity,
    /// The lock.
    pub(crate) raw: L,
}

impl<L> Recorded<L> {
    /// Wraps a lock that is created where the caller is called.
    #[track_caller]
    pub(crate) const fn new(raw: L) -> Self {
        Self { identity: Identity::new(), raw }
    }

    /// Wraps a constant, from which many locks are created.
    pub(crate) const fn constant(raw: L) -> Self {
        Self { identity: Identity::unplaced(), raw }
    }

    /// Runs the wait of a condition variable, which releases the mutex and takes it again.
    #[track_caller]
    pub(crate) fn waiting<T>(&self, wait: impl FnOnce(&L) -> T) -> T {
        self.identity.reacquiring(Exclusive, || wait(&self.raw))
    }

    /// Takes the lock by an act that blocks, after an attempt if that is recorded.
    #[inline]
    #[track_caller]
    pub(crate) fn take<G>(
        &self,
        mode: Mode,
        attempt: impl FnOnce(&L) -> Option<G>,
        act: impl FnOnce(&L) -> G,
    ) -> G {
        self.identity.acquire(mode, || attempt(&self.raw), || act(&self.raw))
    }

    /// Notes an attempt that does not block.
    #[inline]
    #[track_caller]
    pub(crate) fn attempt<G>(&self, mode: Mode, guard: Option<G>) -> Option<G> {
        if guard.is_some() {
            self.identity.acquired(mode);
        }
        guard
    }

    /// Takes the lock by an act that blocks, and not forever.
    #[inline]
    #[track_caller]
    fn try_take<G>(&self, mode: Mode, act: impl FnOnce(&L) -> Option<G>) -> Option<G> {
        self.identity.trying(mode);
        let guard = act(&self.raw);
        if guard.is_none() {
            self.identity.gave_up();
        }
        self.attempt(mode, guard)
    }

    /// Returns the lock for a release.
    #[inline]
    pub(crate) fn releasing(&self, mode: Mode) -> &L {
        self.identity.released(mode);
        &self.raw
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawMutex> RawMutex for Recorded<R> {
    const INIT: Self = Self::constant(R::INIT);

    type Guard = R::Guard;

    #[inline]
    #[track_caller]
    fn lock(&self) -> R::Guard {
        self.take(Exclusive, R::try_lock, R::lock)
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<R::Guard> {
        self.attempt(Exclusive, self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self, guard: R::Guard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Exclusive).unlock(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawMutexFair> RawMutexFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_fair(&self, guard: R::Guard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Exclusive).unlock_fair(guard) };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump(&self, guard: &mut R::Guard) {
        // SAFETY: as above.
        self.identity.reacquiring(Exclusive, || unsafe { self.raw.bump(guard) });
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: R::Duration) -> Option<R::Guard> {
        self.try_take(Exclusive, |raw| raw.try_lock_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: R::Instant) -> Option<R::Guard> {
        self.try_take(Exclusive, |raw| raw.try_lock_until(timeout))
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLock> RawRwLock for Recorded<R> {
    const INIT: Self = Self::constant(R::INIT);

    type SharedGuard = R::SharedGuard;
    type ExclusiveGuard = R::ExclusiveGuard;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> R::SharedGuard {
        self.take(Shared, R::try_lock_shared, R::lock_shared)
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<R::SharedGuard> {
        self.attempt(Shared, self.raw.try_lock_shared())
    }

    #[inline]
    unsafe fn unlock_shared(&self, guard: R::SharedGuard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Shared).unlock_shared(guard) };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> R::ExclusiveGuard {
        self.take(Exclusive, R::try_lock_exclusive, R::lock_exclusive)
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<R::ExclusiveGuard> {
        self.attempt(Exclusive, self.raw.try_lock_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: R::ExclusiveGuard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Exclusive).unlock_exclusive(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.raw.is_locked_exclusive()
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockFair> RawRwLockFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: R::SharedGuard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Shared).unlock_shared_fair(guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: R::ExclusiveGuard) {
        // SAFETY: as above.
        unsafe { self.releasing(Exclusive).unlock_exclusive_fair(guard) };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_shared(&self, guard: &mut R::SharedGuard) {
        // SAFETY: as above.
        self.identity.reacquiring(Shared, || unsafe { self.raw.bump_shared(guard) });
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_exclusive(&self, guard: &mut R::ExclusiveGuard) {
        // SAFETY: as above.
        self.identity.reacquiring(Exclusive, || unsafe { self.raw.bump_exclusive(guard) });
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for Recorded<R> {
    #[inline]
    unsafe fn downgrade(&self, guard: R::ExclusiveGuard) -> R::SharedGuard {
        self.identity.changed(Exclusive, Shared);
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.raw.downgrade(guard) }
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: R::Duration) -> Option<R::SharedGuard> {
        self.try_take(Shared, |raw| raw.try_lock_shared_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: R::Instant) -> Option<R::SharedGuard> {
        self.try_take(Shared, |raw| raw.try_lock_shared_until(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: R::Duration) -> Option<R::ExclusiveGuard> {
        self.try_take(Exclusive, |raw| raw.try_lock_exclusive_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: R::Instant) -> Option<R::ExclusiveGuard> {
        self.try_take(Exclusive, |raw| raw.try_lock_exclusive_until(timeout))
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for Recorded<R> {
    type UpgradableGuard = R::UpgradableGuard;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> R::UpgradableGuard {
        self.take(Upgradable, R::try_lock_upgradable, R::lock_upgradable)
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<R::UpgradableGuard> {
        self.attempt(Upgradable, self.raw.try_lock_upgradable())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, guard: R::UpgradableGuard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Upgradable).unlock_upgradable(guard) };
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self, guard: R::UpgradableGuard) -> R::ExclusiveGuard {
        self.identity.upgrading();
        // SAFETY: as above.
        let guard = unsafe { self.raw.upgrade(guard) };
        self.identity.changed(Upgradable, Exclusive);
        guard
    }

    #[inline]
    unsafe fn try_upgrade(
        &self,
        guard: R::UpgradableGuard,
    ) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        // SAFETY: as above.
        self.upgraded(unsafe { self.raw.try_upgrade(guard) })
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, guard: R::UpgradableGuard) {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.releasing(Upgradable).unlock_upgradable_fair(guard) };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_upgradable(&self, guard: &mut R::UpgradableGuard) {
        // SAFETY: as above.
        self.identity.reacquiring(Upgradable, || unsafe { self.raw.bump_upgradable(guard) });
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Recorded<R> {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: R::UpgradableGuard) -> R::SharedGuard {
        self.identity.changed(Upgradable, Shared);
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.raw.downgrade_upgradable(guard) }
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: R::ExclusiveGuard) -> R::UpgradableGuard {
        self.identity.changed(Exclusive, Upgradable);
        // SAFETY: as above.
        unsafe { self.raw.downgrade_to_upgradable(guard) }
    }
}

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Recorded<R> {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: R::Duration) -> Option<R::UpgradableGuard> {
        self.try_take(Upgradable, |raw| raw.try_lock_upgradable_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: R::Instant) -> Option<R::UpgradableGuard> {
        self.try_take(Upgradable, |raw| raw.try_lock_upgradable_until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_for(
        &self,
        guard: R::UpgradableGuard,
        timeout: R::Duration,
    ) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        self.upgraded(unsafe { self.raw.try_upgrade_for(guard, timeout) })
    }

    #[inline]
    unsafe fn try_upgrade_until(
        &self,
        guard: R::UpgradableGuard,
        timeout: R::Instant,
    ) -> Result<R::ExclusiveGuard, R::UpgradableGuard> {
        // SAFETY: as above.
        self.upgraded(unsafe { self.raw.try_upgrade_until(guard, timeout) })
    }
}

impl<R> Recorded<R> {
    /// Notes an upgrade if it has succeeded.
    #[inline]
    fn upgraded<E, U>(&self, guard: Result<E, U>) -> Result<E, U> {
        if guard.is_ok() {
            self.identity.changed(Upgradable, Exclusive);
        }
        guard
    }
}
