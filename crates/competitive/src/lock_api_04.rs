//! The locks under the traits of `lock_api` 0.4, which most crates that are generic over locks use.
//!
//! A guard of `lock_api` 0.4 carries nothing. So only a lock with guards that carry nothing can
//! have these traits: a release makes the guard of `lock_api` 0.5 anew. Version 0.4 has one marker
//! for all guards of a lock. So read guards are not `Send` here, although they are in version 0.5.
//!
//! A panic of version 0.5 ends the process here, see [`acquired`].

use core::time::Duration;

use lock_api::{GuardNoSend, GuardSend};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::Instant;

use crate::fair_mutex::RawFairMutex;
use crate::mutex::RawPolicyMutex;
use crate::policy::Policy;
use crate::rw_lock::RawRwLock;

/// Acquires a lock, and ends the process if that panics.
///
/// `unlocked` and `bump` of a guard of version 0.4 release the lock and acquire it again. If that
/// panics, the guard lives on without the lock, and its owner can still reach the data. Version 0.5
/// ends the process there by itself.
#[inline]
fn acquired<R>(acquire: impl FnOnce() -> R) -> R {
    let bomb =
        AbortOnUnwind::armed("a lock panicked, and its guard of lock_api 0.4 may still be used");
    let guard = acquire();
    bomb.defuse();
    guard
}

macro_rules! mutex_04 {
    ($raw:ty) => {
        // SAFETY: it is the same lock, and its guard carries nothing.
        unsafe impl<P: Policy> lock_api_04::RawMutex for $raw {
            #[allow(clippy::declare_interior_mutable_const)]
            const INIT: Self = <Self as lock_api::RawMutex>::INIT;

            /// Not `Send`: the lock knows its holder.
            type GuardMarker = lock_api_04::GuardNoSend;

            #[inline]
            fn lock(&self) {
                let _: GuardNoSend = acquired(|| lock_api::RawMutex::lock(self));
            }

            #[inline]
            fn try_lock(&self) -> bool {
                lock_api::RawMutex::try_lock(self).is_some()
            }

            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { lock_api::RawMutex::unlock(self, GuardNoSend::new()) };
            }

            #[inline]
            fn is_locked(&self) -> bool {
                lock_api::RawMutex::is_locked(self)
            }
        }

        // SAFETY: as above.
        unsafe impl<P: Policy> lock_api_04::RawMutexFair for $raw {
            #[inline]
            unsafe fn unlock_fair(&self) {
                // SAFETY: the caller holds the lock.
                unsafe { lock_api::RawMutexFair::unlock_fair(self, GuardNoSend::new()) };
            }
        }

        // SAFETY: as above.
        unsafe impl<P: Policy> lock_api_04::RawMutexTimed for $raw {
            type Duration = Duration;
            type Instant = Instant;

            #[inline]
            fn try_lock_for(&self, timeout: Duration) -> bool {
                lock_api::RawMutexTimed::try_lock_for(self, timeout).is_some()
            }

            #[inline]
            fn try_lock_until(&self, timeout: Instant) -> bool {
                lock_api::RawMutexTimed::try_lock_until(self, timeout).is_some()
            }
        }
    };
}

mutex_04!(RawPolicyMutex<P>);
mutex_04!(RawFairMutex<P>);

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLock for RawRwLock<G>
where
    Self: lock_api::RawRwLock<SharedGuard = GuardSend, ExclusiveGuard = GuardNoSend>,
{
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = <Self as lock_api::RawRwLock>::INIT;

    /// Not `Send`: the lock knows its writer.
    type GuardMarker = lock_api_04::GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        let _: GuardSend = acquired(|| lock_api::RawRwLock::lock_shared(self));
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        lock_api::RawRwLock::try_lock_shared(self).is_some()
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLock::unlock_shared(self, GuardSend::new()) };
    }

    #[inline]
    fn lock_exclusive(&self) {
        let _: GuardNoSend = acquired(|| lock_api::RawRwLock::lock_exclusive(self));
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        lock_api::RawRwLock::try_lock_exclusive(self).is_some()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLock::unlock_exclusive(self, GuardNoSend::new()) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        lock_api::RawRwLock::is_locked(self)
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        lock_api::RawRwLock::is_locked_exclusive(self)
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockFair for RawRwLock<G>
where
    Self: lock_api::RawRwLockFair<SharedGuard = GuardSend, ExclusiveGuard = GuardNoSend>,
{
    #[inline]
    unsafe fn unlock_shared_fair(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLockFair::unlock_shared_fair(self, GuardSend::new()) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLockFair::unlock_exclusive_fair(self, GuardNoSend::new()) };
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockDowngrade for RawRwLock<G>
where
    Self: lock_api::RawRwLockDowngrade<SharedGuard = GuardSend, ExclusiveGuard = GuardNoSend>,
{
    #[inline]
    unsafe fn downgrade(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        let _: GuardSend =
            unsafe { lock_api::RawRwLockDowngrade::downgrade(self, GuardNoSend::new()) };
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockTimed for RawRwLock<G>
where
    Self: lock_api::RawRwLockTimed<
            SharedGuard = GuardSend,
            ExclusiveGuard = GuardNoSend,
            Duration = Duration,
            Instant = Instant,
        >,
{
    type Duration = Duration;
    type Instant = Instant;

    #[inline]
    fn try_lock_shared_for(&self, timeout: Duration) -> bool {
        lock_api::RawRwLockTimed::try_lock_shared_for(self, timeout).is_some()
    }

    #[inline]
    fn try_lock_shared_until(&self, timeout: Instant) -> bool {
        lock_api::RawRwLockTimed::try_lock_shared_until(self, timeout).is_some()
    }

    #[inline]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> bool {
        lock_api::RawRwLockTimed::try_lock_exclusive_for(self, timeout).is_some()
    }

    #[inline]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> bool {
        lock_api::RawRwLockTimed::try_lock_exclusive_until(self, timeout).is_some()
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockUpgrade for RawRwLock<G>
where
    Self: lock_api::RawRwLockUpgrade<
            SharedGuard = GuardSend,
            ExclusiveGuard = GuardNoSend,
            UpgradableGuard = GuardNoSend,
        >,
{
    #[inline]
    fn lock_upgradable(&self) {
        let _: GuardNoSend = acquired(|| lock_api::RawRwLockUpgrade::lock_upgradable(self));
    }

    #[inline]
    fn try_lock_upgradable(&self) -> bool {
        lock_api::RawRwLockUpgrade::try_lock_upgradable(self).is_some()
    }

    #[inline]
    unsafe fn unlock_upgradable(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLockUpgrade::unlock_upgradable(self, GuardNoSend::new()) };
    }

    #[inline]
    unsafe fn upgrade(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        let _: GuardNoSend =
            unsafe { lock_api::RawRwLockUpgrade::upgrade(self, GuardNoSend::new()) };
    }

    #[inline]
    unsafe fn try_upgrade(&self) -> bool {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLockUpgrade::try_upgrade(self, GuardNoSend::new()) }.is_ok()
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockUpgradeFair for RawRwLock<G>
where
    Self: lock_api::RawRwLockUpgradeFair
        + lock_api::RawRwLockUpgrade<
            SharedGuard = GuardSend,
            ExclusiveGuard = GuardNoSend,
            UpgradableGuard = GuardNoSend,
        >,
{
    #[inline]
    unsafe fn unlock_upgradable_fair(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe { lock_api::RawRwLockUpgradeFair::unlock_upgradable_fair(self, GuardNoSend::new()) };
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockUpgradeDowngrade for RawRwLock<G>
where
    Self: lock_api::RawRwLockUpgradeDowngrade
        + lock_api::RawRwLockUpgrade<
            SharedGuard = GuardSend,
            ExclusiveGuard = GuardNoSend,
            UpgradableGuard = GuardNoSend,
        >,
{
    #[inline]
    unsafe fn downgrade_upgradable(&self) {
        let _: GuardSend = acquired(|| {
            let held = GuardNoSend::new();
            // SAFETY: the caller holds the lock in the way that the method asks for.
            unsafe { lock_api::RawRwLockUpgradeDowngrade::downgrade_upgradable(self, held) }
        });
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self) {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        let _: GuardNoSend = unsafe {
            lock_api::RawRwLockUpgradeDowngrade::downgrade_to_upgradable(self, GuardNoSend::new())
        };
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockUpgradeTimed for RawRwLock<G>
where
    Self: lock_api::RawRwLockUpgradeTimed<
            SharedGuard = GuardSend,
            ExclusiveGuard = GuardNoSend,
            UpgradableGuard = GuardNoSend,
            Duration = Duration,
            Instant = Instant,
        >,
{
    #[inline]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> bool {
        lock_api::RawRwLockUpgradeTimed::try_lock_upgradable_for(self, timeout).is_some()
    }

    #[inline]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> bool {
        lock_api::RawRwLockUpgradeTimed::try_lock_upgradable_until(self, timeout).is_some()
    }

    #[inline]
    unsafe fn try_upgrade_for(&self, timeout: Duration) -> bool {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe {
            lock_api::RawRwLockUpgradeTimed::try_upgrade_for(self, GuardNoSend::new(), timeout)
        }
        .is_ok()
    }

    #[inline]
    unsafe fn try_upgrade_until(&self, timeout: Instant) -> bool {
        // SAFETY: the caller holds the lock in the way that the method asks for.
        unsafe {
            lock_api::RawRwLockUpgradeTimed::try_upgrade_until(self, GuardNoSend::new(), timeout)
        }
        .is_ok()
    }
}

// SAFETY: it is the same lock, and its guards carry nothing.
unsafe impl<G> lock_api_04::RawRwLockRecursive for RawRwLock<G>
where
    G: lock_api::RawMutex,
    Self: lock_api::RawRwLock<SharedGuard = GuardSend, ExclusiveGuard = GuardNoSend>,
{
    #[inline]
    fn lock_shared_recursive(&self) {
        let _: GuardSend = acquired(|| RawRwLock::lock_shared_recursive(self));
    }

    #[inline]
    fn try_lock_shared_recursive(&self) -> bool {
        RawRwLock::try_lock_shared_recursive(self).is_some()
    }
}
