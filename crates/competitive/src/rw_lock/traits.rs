//! The traits of `lock_api`.

use core::time::Duration;

use lock_api::{
    GuardSend, RawMutex, RawMutexFair, RawMutexTimed, RawRwLockDowngrade, RawRwLockFair,
    RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair,
    RawRwLockUpgradeTimed,
};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::{Deadline, Instant, moment_after};
use stanchion_machine::park;

use super::{ASLEEP, READER, READERS, RawRwLock, WANTED, WRITER};
use crate::readers::Look;

// SAFETY: a writer holds the gate and has seen that there is no reader, and none is added before it
// leaves (Invariant 2).
unsafe impl<G: RawMutex> lock_api::RawRwLock for RawRwLock<G> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_gate(G::INIT);

    /// `Send`: readers are counted, not named.
    type SharedGuard = GuardSend;
    /// The gate's.
    type ExclusiveGuard = G::Guard;

    #[inline]
    fn lock_shared(&self) -> GuardSend {
        if self.try_read() != Look::Entered {
            // Without a deadline it returns only as a reader.
            self.read_slow(Deadline::NEVER);
        }
        GuardSend::new()
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardSend> {
        (self.try_read() == Look::Entered).then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardSend) {
        let address: *const AtomicU32 = &self.word;
        // Release: pairs with the Acquire of the writer.
        let word = self.word.fetch_sub(READER, Ordering::Release);
        if word & READERS == READER && word & (ASLEEP | WANTED) != 0 {
            // By address: a writer may have the lock already, and the memory be gone.
            park::wake_at(address, usize::MAX);
        }
    }

    #[inline]
    fn lock_exclusive(&self) -> G::Guard {
        let gate = self.write(|| Some(self.gate.lock()), Deadline::NEVER);
        gate.expect("without a deadline it returns only with the lock")
    }

    #[inline]
    fn try_lock_exclusive(&self) -> Option<G::Guard> {
        let gate = self.gate.try_lock()?;
        if self.try_exclude() {
            return Some(gate);
        }
        // SAFETY: the gate is held, with this guard.
        unsafe { self.gate.unlock(gate) };
        None
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, guard: G::Guard) {
        self.end_writing(0);
        // SAFETY: the writer holds the gate, with this guard.
        unsafe { self.gate.unlock(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.word.load(Ordering::Relaxed) & !WANTED != 0 || self.gate.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        // Relaxed: as above.
        self.word.load(Ordering::Relaxed) & (WRITER | READERS) == WRITER
    }
}

// SAFETY: the lock is released as above. A waiter of the gate may be handed it.
unsafe impl<G: RawMutexFair> RawRwLockFair for RawRwLock<G> {
    /// The same as the unfair release: a writer that waits for readers keeps the gate, or begins
    /// anew.
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: GuardSend) {
        // SAFETY: the caller's promise.
        unsafe { lock_api::RawRwLock::unlock_shared(self, guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: G::Guard) {
        self.end_writing(0);
        // SAFETY: the writer holds the gate, with this guard.
        unsafe { self.gate.unlock_fair(guard) };
    }
}

// SAFETY: the word goes from writer to one reader in one step.
unsafe impl<G: RawMutex> RawRwLockDowngrade for RawRwLock<G> {
    #[inline]
    unsafe fn downgrade(&self, guard: G::Guard) -> GuardSend {
        self.end_writing(READER);
        // SAFETY: the writer holds the gate, with this guard.
        unsafe { self.gate.unlock(guard) };
        GuardSend::new()
    }
}

// SAFETY: an upgradable reader holds the gate, so there is no writer. It becomes one as others do.
unsafe impl<G: RawMutex> RawRwLockUpgrade for RawRwLock<G> {
    /// The gate's.
    type UpgradableGuard = G::Guard;

    #[inline]
    fn lock_upgradable(&self) -> G::Guard {
        let gate = self.gate.lock();
        self.open();
        gate
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<G::Guard> {
        self.gate.try_lock().inspect(|_| self.open())
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, guard: G::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.unlock(guard) };
    }

    #[inline]
    unsafe fn upgrade(&self, guard: G::Guard) -> G::Guard {
        self.exclude(Deadline::NEVER);
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: G::Guard) -> Result<G::Guard, G::Guard> {
        if self.try_exclude() { Ok(guard) } else { Err(guard) }
    }
}

// SAFETY: as for `RawRwLockFair`.
unsafe impl<G: RawMutexFair> RawRwLockUpgradeFair for RawRwLock<G> {
    #[inline]
    unsafe fn unlock_upgradable_fair(&self, guard: G::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.gate.unlock_fair(guard) };
    }
}

// SAFETY: the gate is held until the reader is counted, and kept by a thread that stays upgradable.
unsafe impl<G: RawMutex> RawRwLockUpgradeDowngrade for RawRwLock<G> {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: G::Guard) -> GuardSend {
        // By Invariant 1 there is no writer. Those that wait for the readers wait for one more.
        if self.enter(|_| true) != Look::Entered {
            // The caller's guard still holds the gate when this unwinds.
            self.too_many();
        }
        // SAFETY: the gate is held, with this guard.
        unsafe { self.gate.unlock(guard) };
        GuardSend::new()
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: G::Guard) -> G::Guard {
        self.end_writing(0);
        guard
    }
}

/// The time at which a try gives up; `None` for a moment that lies beyond the clock's end.
type Until = Option<Instant>;

impl<G: RawMutexTimed<Duration = Duration, Instant = Instant>> RawRwLock<G> {
    fn take_gate(&self, until: Until) -> Option<G::Guard> {
        match until {
            Some(instant) => self.gate.try_lock_until(instant),
            None => Some(self.gate.lock()),
        }
    }

    #[cold]
    fn read_until(&self, until: Until) -> Option<GuardSend> {
        self.read_slow(deadline(until)).then(GuardSend::new)
    }

    fn write_until(&self, until: Until) -> Option<G::Guard> {
        self.write(|| self.take_gate(until), deadline(until))
    }

    fn upgrade_until(&self, guard: G::Guard, until: Until) -> Result<G::Guard, G::Guard> {
        if self.exclude(deadline(until)) { Ok(guard) } else { Err(guard) }
    }
}

fn deadline(until: Until) -> Deadline {
    until.map_or(Deadline::NEVER, Deadline::at)
}

// SAFETY: a guard is returned for an acquired lock only; a writer that gives up is no writer any
// more and leaves the gate.
unsafe impl<G> RawRwLockTimed for RawRwLock<G>
where
    G: RawMutexTimed<Duration = Duration, Instant = Instant>,
{
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardSend> {
        // The clock is read only by a thread that has to wait.
        lock_api::RawRwLock::try_lock_shared(self)
            .or_else(|| self.read_until(moment_after(timeout)))
    }

    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardSend> {
        lock_api::RawRwLock::try_lock_shared(self).or_else(|| self.read_until(Some(timeout)))
    }

    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<G::Guard> {
        lock_api::RawRwLock::try_lock_exclusive(self)
            .or_else(|| self.write_until(moment_after(timeout)))
    }

    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<G::Guard> {
        lock_api::RawRwLock::try_lock_exclusive(self).or_else(|| self.write_until(Some(timeout)))
    }
}

// SAFETY: as above; an upgrade that gives up keeps the gate.
unsafe impl<G> RawRwLockUpgradeTimed for RawRwLock<G>
where
    G: RawMutexTimed<Duration = Duration, Instant = Instant>,
{
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<G::Guard> {
        self.take_gate(moment_after(timeout)).inspect(|_| self.open())
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<G::Guard> {
        self.gate.try_lock_until(timeout).inspect(|_| self.open())
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: G::Guard,
        timeout: Duration,
    ) -> Result<G::Guard, G::Guard> {
        self.upgrade_until(guard, moment_after(timeout))
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: G::Guard,
        timeout: Instant,
    ) -> Result<G::Guard, G::Guard> {
        self.upgrade_until(guard, Some(timeout))
    }
}
