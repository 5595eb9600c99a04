//! The traits of read-write locks.

use lock_api::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockTimed, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair, RawRwLockUpgradeTimed,
};
use stanchion_order::Mode::{Exclusive, Shared, Upgradable};

use crate::checked::Checked;

// SAFETY: each call is one of the wrapped lock, with its guard.
unsafe impl<R: RawRwLock> RawRwLock for Checked<R> {
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
unsafe impl<R: RawRwLockFair> RawRwLockFair for Checked<R> {
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
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for Checked<R> {
    #[inline]
    unsafe fn downgrade(&self, guard: R::ExclusiveGuard) -> R::SharedGuard {
        self.identity.changed(Exclusive, Shared);
        // SAFETY: the caller passes the guard of an acquisition of this lock.
        unsafe { self.raw.downgrade(guard) }
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for Checked<R> {
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
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for Checked<R> {
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
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for Checked<R> {
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
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Checked<R> {
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
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Checked<R> {
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

impl<R> Checked<R> {
    /// Notes an upgrade if it has succeeded.
    #[inline]
    fn upgraded<E, U>(&self, guard: Result<E, U>) -> Result<E, U> {
        if guard.is_ok() {
            self.identity.changed(Upgradable, Exclusive);
        }
        guard
    }
}
