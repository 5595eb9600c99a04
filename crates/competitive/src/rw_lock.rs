//! The reader-writer lock: a mutex as gate, and a word that counts readers.
//!
//! Why not one word and a queue of readers and writers: it has to hand the lock over to sleepers, which lets it stand still for the length of a
//! wake-up each time, or to let others overtake and bound that. A mutex that does so there is already, with a policy that says how long to spin for
//! it. So writers pass a gate one at a time, and readers that find a writer there queue up at the same gate.
//!
//! | `word` | gate held by | |
//! | --- | --- | --- |
//! | n readers | nobody, an upgradable reader, or a reader on its way in | free for readers |
//! | n readers + writer | the writer | it waits for them to leave; nobody else gets in |
//! | n readers + writer + asleep | the writer | the same; the last to leave wakes it |
//! | writer, perhaps + asleep | the writer | it has the lock |
//!
//! ```text
//! read:   word += reader, unless a writer is there; then spin for C, then pass the gate: word += reader, leave the gate
//! write:  take the gate; word += writer; wait until no reader is left (spin for C, then sleep)
//! ```
//!
//! # Invariants
//!
//! 1. `writer` and `asleep` are set and cleared by the holder of the gate only, and are clear when it leaves the gate. So a reader that holds the
//!    gate finds no writer.
//! 2. While `writer` is set no reader is added. So readers that a writer waits for only become fewer, and once there are none the word is its own.
//! 3. Readers are counted in 30 bits, and one more is refused.
//!
//! Not an invariant, unlike the mutex's: a writer's release touches the gate after readers may have the lock, so it must not be freed before that
//! release has returned. Safe code cannot.
//!
//! # No wake-up is lost
//!
//! The writer sleeps only while the word is what it saw, with `asleep` in it. Readers that leave change the word; the last one finds
//! `asleep` in what it changed, or the writer's setting it came later and found no reader.
//!
//! # Orderings
//!
//! A reader is added with Acquire, pairs with the Release store of the writer before, or of its downgrade. It leaves with Release, pairs with the
//! Acquire of the writer's looks at the word, since every change in between is a read-modify-write. Writers among themselves have the gate.
//!
//! Source: Courtois, Heymans and Parnas, "Concurrent control with readers and writers", CACM 1971, for the problem; the gate is their second
//! solution's.

use core::fmt;
use core::time::Duration;

use lock_api::{
    GuardSend, RawMutex, RawMutexFair, RawMutexTimed, RawRwLockDowngrade, RawRwLockFair,
    RawRwLockTimed, RawRwLockUpgrade, RawRwLockUpgradeDowngrade, RawRwLockUpgradeFair,
    RawRwLockUpgradeTimed,
};
use machine::atomic::{AtomicU32, Ordering};
use machine::clock::{Deadline, Instant, moment_after};
use machine::park;
use machine::wait::spin_for;

use crate::cost;
use crate::mutex::RawPolicyMutex;

/// A writer holds the gate, and has the lock or waits for readers to leave.
const WRITER: u32 = 1;
/// It sleeps.
const ASLEEP: u32 = 2;
/// One reader.
const READER: u32 = 4;
/// Readers, all there can be.
const READERS: u32 = !(WRITER | ASLEEP);

/// A lock that many may hold to read, or one to write.
///
/// | | |
/// | --- | --- |
/// | uncontended | reading: one compare-exchange, and one locked instruction to release; writing: a mutex and one locked instruction and a store more |
/// | writers | never starve: from the moment one has passed the gate no new reader gets in, and it waits for those inside only |
/// | readers | never starve: one that has waited for C queues up at the gate, among the writers |
/// | the gate | has the order and the bound of its mutex: with [`RawPolicyMutex`] one that has slept for 10 ms is next, at most every 5 ms; none for a policy that never sleeps |
/// | size | the mutex's and 4 bytes: 12 to 20 |
/// | deadlines, downgrade, upgrade | yes |
///
/// No poison. Read guards may go to other threads if what they guard may; write guards and upgradable guards are the mutex's, and stay.
///
/// A thread must not read again while it reads: if a writer has come in between, each waits for the other. Nor may it write while it reads, or
/// the other way round; [`upgrade`](lock_api::RwLockUpgradableReadGuard::upgrade) and
/// [`downgrade`](lock_api::RwLockWriteGuard::downgrade) are for that.
///
/// # Panics
///
/// Locking panics if the thread holds the gate already, as a writer or upgradable reader does, and if there are 2^30 readers, which only forgetting
/// guards can do; a try is refused then.
pub struct RawRwLock<G = RawPolicyMutex> {
    gate: G,
    word: AtomicU32,
}

/// A lock that many may hold to read, or one to write, see [`RawRwLock`].
///
/// ```
/// use stanchion_competitive::{RwLock, RwLockUpgradableReadGuard, RwLockWriteGuard};
///
/// static PRICES: RwLock<Vec<u32>> = RwLock::new(Vec::new());
/// PRICES.write().push(3);
/// {
///     let (one, other) = (PRICES.read(), PRICES.try_read().unwrap());
///     assert_eq!(one.len(), other.len());
///     assert!(PRICES.try_write().is_none());
/// }
/// // Reads beside other readers, and writes if it must.
/// let prices = PRICES.upgradable_read();
/// if !prices.contains(&4) {
///     let mut prices = RwLockUpgradableReadGuard::upgrade(prices);
///     prices.push(4);
///     let prices = RwLockWriteGuard::downgrade(prices);
///     assert_eq!(*prices, [3, 4]);
/// }
/// ```
pub type RwLock<T> = lock_api::RwLock<RawRwLock, T>;

/// The guard of a [`RwLock`] that is read.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, RawRwLock, T>;

/// The guard of a [`RwLock`] that is written.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, RawRwLock, T>;

/// The guard of a [`RwLock`] that is read, and may come to be written.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, RawRwLock, T>;

/// A guard of a part of what a [`RwLock`] protects, to read.
pub type MappedRwLockReadGuard<'a, T> = lock_api::MappedRwLockReadGuard<'a, RawRwLock, T>;

/// A guard of a part of what a [`RwLock`] protects, to write.
pub type MappedRwLockWriteGuard<'a, T> = lock_api::MappedRwLockWriteGuard<'a, RawRwLock, T>;

/// A reader-writer lock whose gate waits as `P` says.
///
/// ```
/// use stanchion_competitive::{PolicyRwLock, policy::AlwaysBlock};
/// let lock = PolicyRwLock::<_, AlwaysBlock>::new(1);
/// *lock.write() += 1;
/// assert_eq!(*lock.read(), 2);
/// ```
pub type PolicyRwLock<T, P> = lock_api::RwLock<RawRwLock<RawPolicyMutex<P>>, T>;

impl<G> RawRwLock<G> {
    /// A free lock behind that gate, which must be free.
    #[must_use]
    pub const fn with_gate(gate: G) -> Self {
        Self { gate, word: AtomicU32::new(0) }
    }

    /// How many readers there are. A hint.
    #[must_use]
    pub fn readers(&self) -> usize {
        // Relaxed: out of date when it is returned.
        (self.word.load(Ordering::Relaxed) / READER) as usize
    }

    /// Whether there is no writer, and room for a reader more; then it is added.
    #[inline]
    fn add_reader(&self) -> bool {
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & WRITER != 0 {
                return false;
            }
            // Invariant 3.
            let Some(more) = word.checked_add(READER) else { return false };
            // Acquire: pairs with the Release store of the last writer. Relaxed: it is tried again.
            match self.word.compare_exchange_weak(word, more, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn too_many(&self) -> ! {
        panic!(
            "the lock at {self:p} has {} readers, all it can count: guards were forgotten with `mem::forget`; drop them",
            READERS / READER
        )
    }

    /// Becomes the writer and waits until no reader is left; `false`, and no writer any more, if the deadline comes first.
    ///
    /// The caller holds the gate.
    #[inline]
    fn exclude(&self, deadline: Deadline) -> bool {
        // Acquire: pairs with the Release of readers that have left.
        self.word.fetch_or(WRITER, Ordering::Acquire) & READERS == 0 || self.drain(deadline)
    }

    #[cold]
    fn drain(&self, deadline: Deadline) -> bool {
        let is_empty = |word: u32| word & READERS == 0;
        // Acquire: here and below, pairs with the Release of readers that leave.
        if spin_for(&self.word, Ordering::Acquire, is_empty, cost::current()).is_some() {
            return true;
        }
        loop {
            let word = self.word.fetch_or(ASLEEP, Ordering::Acquire) | ASLEEP;
            if is_empty(word) {
                return true;
            }
            if park::wait(&self.word, word, deadline) == park::Woken::TimedOut {
                // Relaxed: nothing was written; Invariant 1.
                self.word.fetch_and(READERS, Ordering::Relaxed);
                return false;
            }
        }
    }
}

impl<G: RawMutex> RawRwLock<G> {
    /// The gate holder becomes a reader, if there is room for one, and leaves the gate. By Invariant 1 no writer is there.
    fn read_and_leave(&self, gate: G::Guard) -> Option<GuardSend> {
        let added = self.add_reader();
        // SAFETY: the gate is held, with this guard.
        unsafe { self.gate.unlock(gate) };
        added.then(GuardSend::new)
    }

    /// A writer is there: wait for a while, and perhaps it goes.
    #[cold]
    fn spin_to_read(&self) -> bool {
        let is_free = |word: u32| word & WRITER == 0;
        // Relaxed: adding the reader acquires.
        spin_for(&self.word, Ordering::Relaxed, is_free, cost::current()).is_some()
            && self.add_reader()
    }

    /// Takes what the gate holder was kept from, or gives the gate back.
    fn exclude_or_leave(&self, gate: G::Guard, deadline: Deadline) -> Option<G::Guard> {
        if self.exclude(deadline) {
            return Some(gate);
        }
        // SAFETY: the gate is held, with this guard.
        unsafe { self.gate.unlock(gate) };
        None
    }

    /// Whether there was neither reader nor writer; then there is a writer now. The caller holds the gate.
    fn try_exclude(&self) -> bool {
        // Acquire: pairs with the Release of readers that have left. Relaxed: nothing is done then.
        self.word.compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

// SAFETY: a writer holds the gate and has seen that there is no reader, and none is added before it goes (Invariant 2).
unsafe impl<G: RawMutex> lock_api::RawRwLock for RawRwLock<G> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_gate(G::INIT);

    /// `Send`: readers are counted, not named.
    type SharedGuard = GuardSend;
    /// The gate's.
    type ExclusiveGuard = G::Guard;

    #[inline]
    fn lock_shared(&self) -> GuardSend {
        if self.add_reader() || self.spin_to_read() {
            return GuardSend::new();
        }
        self.read_and_leave(self.gate.lock()).unwrap_or_else(|| self.too_many())
    }

    #[inline]
    fn try_lock_shared(&self) -> Option<GuardSend> {
        self.add_reader().then(GuardSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardSend) {
        let address: *const AtomicU32 = &self.word;
        // Release: pairs with the Acquire of the writer.
        let word = self.word.fetch_sub(READER, Ordering::Release);
        if word == READER | WRITER | ASLEEP {
            // By address: the writer may have the lock already, and the memory be gone.
            park::wake_at(address, 1);
        }
    }

    #[inline]
    fn lock_exclusive(&self) -> G::Guard {
        let gate = self.gate.lock();
        // Without a deadline it comes back only with the lock.
        self.exclude(Deadline::NEVER);
        gate
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
        // Release: pairs with the Acquire of readers. By Invariant 2 the word is this thread's.
        self.word.store(0, Ordering::Release);
        // SAFETY: the writer holds the gate, with this guard.
        unsafe { self.gate.unlock(guard) };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        // Relaxed: a hint, out of date when it is returned.
        self.word.load(Ordering::Relaxed) != 0 || self.gate.is_locked()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        // Relaxed: as above.
        matches!(self.word.load(Ordering::Relaxed), 1..READER)
    }
}

// SAFETY: what is released is released as above; a waiter of the gate may be handed it.
unsafe impl<G: RawMutexFair> RawRwLockFair for RawRwLock<G> {
    /// Nobody waits for readers but a writer at the gate, who is next in any case.
    #[inline]
    unsafe fn unlock_shared_fair(&self, guard: GuardSend) {
        // SAFETY: the caller's promise.
        unsafe { lock_api::RawRwLock::unlock_shared(self, guard) };
    }

    #[inline]
    unsafe fn unlock_exclusive_fair(&self, guard: G::Guard) {
        // Release: as in `unlock_exclusive`.
        self.word.store(0, Ordering::Release);
        // SAFETY: the writer holds the gate, with this guard.
        unsafe { self.gate.unlock_fair(guard) };
    }
}

// SAFETY: the word goes from writer to one reader in one step.
unsafe impl<G: RawMutex> RawRwLockDowngrade for RawRwLock<G> {
    #[inline]
    unsafe fn downgrade(&self, guard: G::Guard) -> GuardSend {
        // Release: pairs with the Acquire of readers. By Invariant 2 the word is this thread's.
        self.word.store(READER, Ordering::Release);
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
        self.gate.lock()
    }

    #[inline]
    fn try_lock_upgradable(&self) -> Option<G::Guard> {
        self.gate.try_lock()
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

// SAFETY: the gate is held until the reader is counted, and kept by who stays upgradable.
unsafe impl<G: RawMutex> RawRwLockUpgradeDowngrade for RawRwLock<G> {
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: G::Guard) -> GuardSend {
        self.read_and_leave(guard).unwrap_or_else(|| self.too_many())
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: G::Guard) -> G::Guard {
        // Release: pairs with the Acquire of readers. By Invariant 2 the word is this thread's.
        self.word.store(0, Ordering::Release);
        guard
    }
}

/// When a try gives up; `None` for a moment that lies beyond the clock's end.
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
        self.read_and_leave(self.take_gate(until)?)
    }

    fn write_until(&self, until: Until) -> Option<G::Guard> {
        self.exclude_or_leave(self.take_gate(until)?, deadline(until))
    }

    fn upgrade_until(&self, guard: G::Guard, until: Until) -> Result<G::Guard, G::Guard> {
        if self.exclude(deadline(until)) { Ok(guard) } else { Err(guard) }
    }
}

fn deadline(until: Until) -> Deadline {
    until.map_or(Deadline::NEVER, Deadline::at)
}

// SAFETY: a guard is yielded for an acquired lock only; a writer that gives up is no writer any more and leaves the gate.
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
        self.take_gate(moment_after(timeout))
    }

    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<G::Guard> {
        self.gate.try_lock_until(timeout)
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

impl RawRwLock {
    /// Returns a free lock behind the default mutex.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_gate(RawPolicyMutex::new())
    }
}

impl<G: RawMutex> Default for RawRwLock<G> {
    fn default() -> Self {
        <Self as lock_api::RawRwLock>::INIT
    }
}

impl<G> fmt::Debug for RawRwLock<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawRwLock").field("readers", &self.readers()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lock_api::RawRwLock as _;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn one_reader_too_many_is_refused() {
        let lock = RawRwLock::<RawPolicyMutex>::INIT;
        lock.word.store(READERS - READER, Ordering::Relaxed);
        let last = lock.try_lock_shared().expect("room for one");
        assert!(lock.try_lock_shared().is_none());
        assert!(lock.try_lock_shared_for(Duration::ZERO).is_none());
        // SAFETY: acquired above.
        unsafe { lock.unlock_shared(last) };
        assert!(lock.try_lock_shared().is_some());
        let locks = AssertUnwindSafe(|| _ = lock.lock_shared());
        let refused = catch_unwind(locks).unwrap_err();
        let message = refused.downcast_ref::<String>().expect("a formatted message");
        assert!(message.contains("guards were forgotten"), "{message}");
        // It has left the gate behind it open, and the word as it was.
        assert!(!lock.gate.is_locked());
        assert_eq!(lock.word.load(Ordering::Relaxed), READERS);
    }
}
