//! Stanchion's addition to `lock_api`: a raw lock that tells of its acquisitions.
//!
//! Every call of `lock_api` into a raw lock goes through it. `raw()` gives the lock alone, so that
//! acquisitions through that are not seen.

use crate::identity::Identity;
use crate::identity::Mode::{self, Exclusive, Shared, SharedRecursive, Upgradable};
use crate::mutex::{RawMutex, RawMutexFair, RawMutexTimed};
use crate::rwlock::{
    RawRwLock, RawRwLockDowngrade, RawRwLockFair, RawRwLockRecursive, RawRwLockRecursiveTimed,
    RawRwLockTimed, RawRwLockUpgrade,
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

    /// Takes the lock by an act that blocks, after an attempt if that is recorded.
    #[inline]
    #[track_caller]
    fn take(
        &self,
        mode: Mode,
        attempt: impl FnOnce(&L) -> bool,
        act: impl FnOnce(&L),
    ) {
        let attempt = || attempt(&self.raw).then_some(());
        self.identity.acquire(mode, attempt, || act(&self.raw));
    }

    /// Notes an attempt that does not block.
    #[inline]
    #[track_caller]
    fn attempt(&self, mode: Mode, taken: bool) -> bool {
        if taken {
            self.identity.acquired(mode);
        }
        taken
    }

    /// Takes the lock by an act that blocks, and not forever.
    #[inline]
    #[track_caller]
    fn try_take(&self, mode: Mode, act: impl FnOnce(&L) -> bool) -> bool {
        self.identity.trying(mode);
        let taken = act(&self.raw);
        if !taken {
            self.identity.gave_up();
        }
        self.attempt(mode, taken)
    }

    /// Returns the lock for a release.
    #[inline]
    fn releasing(&self, mode: Mode) -> &L {
        self.identity.released(mode);
        &self.raw
    }

    /// Notes an upgrade if it has succeeded.
    #[inline]
    fn upgraded(&self, upgraded: bool) -> bool {
        if upgraded {
            self.identity.changed(Upgradable, Exclusive);
        }
        upgraded
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawMutex> RawMutex for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::constant(R::INIT);

    type GuardMarker = R::GuardMarker;

    #[inline]
    #[track_caller]
    fn lock(&self) {
        self.take(Exclusive, R::try_lock, R::lock);
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> bool {
        self.attempt(Exclusive, self.raw.try_lock())
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Exclusive).unlock() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.raw.is_locked()
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawMutexFair> RawMutexFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_fair(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Exclusive).unlock_fair() };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump(&self) {
        // SAFETY: the caller holds the lock in this mode.
        self.identity.reacquiring(Exclusive, || unsafe { self.raw.bump() });
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawMutexTimed> RawMutexTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    #[track_caller]
    fn try_lock_for(&self, timeout: Self::Duration) -> bool {
        self.try_take(Exclusive, |raw| raw.try_lock_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_until(&self, timeout: Self::Instant) -> bool {
        self.try_take(Exclusive, |raw| raw.try_lock_until(timeout))
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLock> RawRwLock for Recorded<R> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::constant(R::INIT);

    type GuardMarker = R::GuardMarker;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) {
        self.take(Shared, R::try_lock_shared, R::lock_shared);
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> bool {
        self.attempt(Shared, self.raw.try_lock_shared())
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Shared).unlock_shared() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) {
        self.take(Exclusive, R::try_lock_exclusive, R::lock_exclusive);
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> bool {
        self.attempt(Exclusive, self.raw.try_lock_exclusive())
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Exclusive).unlock_exclusive() };
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

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockFair> RawRwLockFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Shared).unlock_shared_fair() };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Exclusive).unlock_exclusive_fair() };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_shared(&self) {
        // SAFETY: the caller holds the lock in this mode.
        self.identity.reacquiring(Shared, || unsafe { self.raw.bump_shared() });
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_exclusive(&self) {
        // SAFETY: the caller holds the lock in this mode.
        self.identity.reacquiring(Exclusive, || unsafe { self.raw.bump_exclusive() });
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockDowngrade> RawRwLockDowngrade for Recorded<R> {
    #[inline]
    unsafe fn downgrade(&self) {
        self.identity.changed(Exclusive, Shared);
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.raw.downgrade() };
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockTimed> RawRwLockTimed for Recorded<R> {
    type Duration = R::Duration;
    type Instant = R::Instant;

    #[inline]
    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Self::Duration) -> bool {
        self.try_take(Shared, |raw| raw.try_lock_shared_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Self::Instant) -> bool {
        self.try_take(Shared, |raw| raw.try_lock_shared_until(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Self::Duration) -> bool {
        self.try_take(Exclusive, |raw| raw.try_lock_exclusive_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Self::Instant) -> bool {
        self.try_take(Exclusive, |raw| raw.try_lock_exclusive_until(timeout))
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockRecursive> RawRwLockRecursive for Recorded<R> {
    #[inline]
    #[track_caller]
    fn lock_shared_recursive(&self) {
        self.take(SharedRecursive, R::try_lock_shared_recursive, R::lock_shared_recursive);
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive(&self) -> bool {
        self.attempt(SharedRecursive, self.raw.try_lock_shared_recursive())
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockRecursiveTimed> RawRwLockRecursiveTimed for Recorded<R> {
    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive_for(&self, timeout: Self::Duration) -> bool {
        self.try_take(SharedRecursive, |raw| raw.try_lock_shared_recursive_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared_recursive_until(&self, timeout: Self::Instant) -> bool {
        self.try_take(SharedRecursive, |raw| raw.try_lock_shared_recursive_until(timeout))
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockUpgrade> RawRwLockUpgrade for Recorded<R> {
    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) {
        self.take(Upgradable, R::try_lock_upgradable, R::lock_upgradable);
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> bool {
        self.attempt(Upgradable, self.raw.try_lock_upgradable())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Upgradable).unlock_upgradable() };
    }

    #[inline]
    #[track_caller]
    unsafe fn upgrade(&self) {
        self.identity.upgrading();
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.raw.upgrade() };
        self.identity.changed(Upgradable, Exclusive);
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller holds the lock in this mode.
        self.upgraded(unsafe { self.raw.try_upgrade() })
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockUpgradeFair> RawRwLockUpgradeFair for Recorded<R> {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.releasing(Upgradable).unlock_upgradable_fair() };
    }

    #[inline]
    #[track_caller]
    unsafe fn bump_upgradable(&self) {
        // SAFETY: the caller holds the lock in this mode.
        self.identity.reacquiring(Upgradable, || unsafe { self.raw.bump_upgradable() });
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockUpgradeDowngrade> RawRwLockUpgradeDowngrade for Recorded<R> {
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        self.identity.changed(Upgradable, Shared);
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.raw.downgrade_upgradable() };
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        self.identity.changed(Exclusive, Upgradable);
        // SAFETY: the caller holds the lock in this mode.
        unsafe { self.raw.downgrade_to_upgradable() };
    }
}

// SAFETY: each call is one of the wrapped lock.
unsafe impl<R: RawRwLockUpgradeTimed> RawRwLockUpgradeTimed for Recorded<R> {
    #[inline]
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Self::Duration) -> bool {
        self.try_take(Upgradable, |raw| raw.try_lock_upgradable_for(timeout))
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: Self::Instant) -> bool {
        self.try_take(Upgradable, |raw| raw.try_lock_upgradable_until(timeout))
    }

    #[inline]
    unsafe fn try_upgrade_for(&self, timeout: Self::Duration) -> bool {
        // SAFETY: the caller holds the lock in this mode.
        self.upgraded(unsafe { self.raw.try_upgrade_for(timeout) })
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, timeout: Self::Instant) -> bool {
        // SAFETY: the caller holds the lock in this mode.
        self.upgraded(unsafe { self.raw.try_upgrade_until(timeout) })
    }
}
