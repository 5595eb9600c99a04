//! The counting semaphore: a mutex as gate, and a word that counts permits.
//!
//! Why not a queue of those who wait, each with what it wants: a release would have to hand permits to sleepers, and they would lie idle for the
//! length of a wake-up. Here whoever finds too few passes the gate, one at a time, and who is through takes permits as they come; those behind it
//! wait as the mutex waits.
//!
//! | `word` | gate held by | |
//! | --- | --- | --- |
//! | n permits | nobody | whoever comes takes them |
//! | n permits + claimed | the first in line | they are for it: whoever comes queues up |
//! | n permits + claimed + asleep | the first in line, who sleeps | the next release wakes it |
//!
//! # Invariants
//!
//! 1. `claimed` is set and cleared by the holder of the gate only, and is clear when it leaves the gate. `asleep` is set by it, and cleared by it or
//!    by the release that wakes it.
//! 2. While `claimed` is set, permits are taken by the holder of the gate only. So nobody overtakes the first in line, however many it wants.
//! 3. Permits are counted in 30 bits. More are refused.
//!
//! 4. In a forked child the gate is free, and `claimed` and `asleep` are clear, before any of its
//!    threads uses the gate or believes a claim: the threads that stood in line are not there.
//!
//! # No wake-up is lost
//!
//! The first in line sleeps only while the word is what it saw, with `asleep` in it. A release changes the word and finds `asleep` in what it
//! changed; or `asleep` was set later, and then the first in line has seen the new permits.
//!
//! # Orderings
//!
//! Permits are taken with Acquire, which pairs with the Release of a release: every change in between is a read-modify-write.
//!
//! Source: Dijkstra, "Cooperating sequential processes", 1965, section 4; taking several at once, with the others held back, is Vantilborgh and van
//! Lamsweerde's (1972).

use core::cell::UnsafeCell;
use core::fmt;
use core::panic::RefUnwindSafe;
use core::ptr;
use core::time::Duration;

use lock_api::{RawMutex, RawMutexTimed};
use machine::atomic::{AtomicU32, Ordering};
use machine::clock::{Deadline, Instant, moment_after};
use machine::wait::spin_for;
use machine::{fork, park};

use crate::cost;
use crate::fork_lock::ForkLock;
use crate::mutex::RawPolicyMutex;

/// The permits are for the holder of the gate.
const CLAIMED: u32 = 1;
/// It sleeps.
const ASLEEP: u32 = 2;
/// One permit.
const PERMIT: u32 = 4;

/// A number of permits, and threads that wait until there are as many as they want.
///
/// | | |
/// | --- | --- |
/// | uncontended | one compare-exchange to acquire, one to release |
/// | order | the first in line is overtaken by nobody, however many permits it wants; the line is a mutex, and has its order and its bound: with [`RawPolicyMutex`] one that has slept for 10 ms is next, at most every 5 ms |
/// | size | the mutex's and 8 bytes: 20 |
/// | waiting | the first in line spins for C, see [`cost`], then sleeps; the others wait for the mutex, as its policy says |
///
/// # Fork
///
/// In the child of a fork, permits that threads of the parent held are never given back. Threads of
/// the parent that waited for permits are not in the child, and stand in no line. If there were any,
/// the child's line is a new mutex, [`RawMutex::INIT`].
///
/// ```
/// use stanchion_competitive::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
/// let one = CONNECTIONS.acquire();
/// let other = CONNECTIONS.acquire();
/// assert!(CONNECTIONS.try_acquire().is_none());
/// drop(one);
/// assert!(CONNECTIONS.try_acquire().is_some());
/// # drop(other);
/// ```
pub struct Semaphore<G = RawPolicyMutex> {
    /// The place of the first in line. Written only before any thread of a forked child uses it.
    gate: UnsafeCell<G>,
    /// Tells a forked child that the gate is its parent's.
    home: ForkLock,
    /// The permits, and what the first in line does.
    word: AtomicU32,
}

// SAFETY: the gate is shared by reference; see `Semaphore::gate` for the one write.
unsafe impl<G: Send + Sync> Sync for Semaphore<G> {}

// A gate that is written is written whole.
impl<G: RefUnwindSafe> RefUnwindSafe for Semaphore<G> {}

/// Permits of a [`Semaphore`], given back when this is dropped. It may go to another thread.
#[must_use = "permits that are dropped are given back at once"]
pub struct Permits<'s, G: RawMutex = RawPolicyMutex> {
    semaphore: &'s Semaphore<G>,
    count: u32,
}

impl Semaphore {
    /// Returns a semaphore with so many permits, whose waiters queue up at the default mutex.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        Self::with_gate(RawMutex::INIT, permits)
    }
}

impl<G: RawMutex> Semaphore<G> {
    /// More permits than this cannot be counted.
    pub const MAX_PERMITS: u32 = u32::MAX / PERMIT;

    /// Returns a semaphore with so many permits, whose waiters queue up at `gate`. That mutex must be
    /// free.
    ///
    /// # Panics
    ///
    /// If the permits are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    ///
    /// ```
    /// use stanchion_competitive::{RawPolicyMutex, Semaphore, policy::AlwaysBlock};
    /// let gate = RawPolicyMutex::with_policy(AlwaysBlock);
    /// let semaphore = Semaphore::with_gate(gate, 3);
    /// assert_eq!(semaphore.acquire_many(3).count(), 3);
    /// ```
    #[must_use]
    pub const fn with_gate(gate: G, permits: u32) -> Self {
        assert!(permits <= Self::MAX_PERMITS, "a semaphore counts at most 2^30 - 1 permits");
        Self {
            gate: UnsafeCell::new(gate),
            home: ForkLock::new(),
            word: AtomicU32::new(permits * PERMIT),
        }
    }

    /// How many permits there are to be had. A hint.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        // Relaxed: out of date when it is returned.
        self.word.load(Ordering::Relaxed) / PERMIT
    }

    /// Takes a permit; waits for one if there is none.
    #[inline]
    pub fn acquire(&self) -> Permits<'_, G> {
        self.acquire_many(1)
    }

    /// Takes so many permits, all at once; waits until there are as many. 0 are always there.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`](Self::MAX_PERMITS), for which it would wait for ever.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(3);
    /// let two = semaphore.acquire_many(2);
    /// assert!(semaphore.try_acquire_many(2).is_none());
    /// drop(two);
    /// assert_eq!(semaphore.acquire_many(3).count(), 3);
    /// ```
    #[inline]
    pub fn acquire_many(&self, count: u32) -> Permits<'_, G> {
        self.assert_countable(count);
        if !self.try_take(count) {
            let gate = self.gate();
            let guard = gate.lock();
            // Without a deadline it comes back only with the permits.
            self.take_and_leave(gate, guard, count, Deadline::NEVER);
        }
        Permits { semaphore: self, count }
    }

    /// Takes a permit if there is one for whoever comes.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permits<'_, G>> {
        self.try_acquire_many(1)
    }

    /// Takes so many permits if there are as many for whoever comes.
    #[inline]
    pub fn try_acquire_many(&self, count: u32) -> Option<Permits<'_, G>> {
        // `then`, not `then_some`: permits that were not taken must not be dropped.
        (count <= Self::MAX_PERMITS && self.try_take(count))
            .then(|| Permits { semaphore: self, count })
    }

    /// Adds permits that nobody has held: those of [`Permits::forget`], or new ones.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then; the semaphore stays as it was.
    #[inline]
    pub fn add_permits(&self, count: u32) {
        let address: *const AtomicU32 = &self.word;
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let more = count.checked_mul(PERMIT).and_then(|more| word.checked_add(more));
            let Some(more) = more else { self.too_many(count) };
            // Release: pairs with the Acquire of who takes them. Relaxed: it is tried again.
            match self.word.compare_exchange_weak(
                word,
                more & !ASLEEP,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & ASLEEP != 0 {
            // By address: whoever has the permits by now may have ended the semaphore.
            park::wake_at(address, 1);
        }
    }

    #[cold]
    fn too_many(&self, count: u32) -> ! {
        panic!(
            "the semaphore at {self:p} has {} permits, and {count} more are over the {} that it can count: more were added than taken",
            self.available_permits(),
            Self::MAX_PERMITS
        )
    }

    #[inline]
    fn assert_countable(&self, count: u32) {
        assert!(
            count <= Self::MAX_PERMITS,
            "{count} permits are wanted of the semaphore at {self:p}, which can count {} at most: it would wait for ever",
            Self::MAX_PERMITS
        );
    }

    /// Takes permits that nobody has claimed.
    #[inline]
    fn try_take(&self, count: u32) -> bool {
        // Relaxed, here and below: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        if fork::POSSIBLE && word & CLAIMED != 0 {
            // In a forked child the claim may be that of a thread that is not there.
            self.gate();
            word = self.word.load(Ordering::Relaxed);
        }
        loop {
            if word & CLAIMED != 0 {
                return count == 0;
            }
            let Some(fewer) = word.checked_sub(count * PERMIT) else { return false };
            // Acquire: pairs with the Release of who gave them back. Relaxed: it is tried again.
            match self.word.compare_exchange_weak(word, fewer, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Returns the gate. In a forked child no thread holds it at first, and nothing is claimed.
    fn gate(&self) -> &G {
        self.home.adopt(|| {
            // SAFETY: no thread of this process uses the gate before it has come past here.
            let gate = unsafe { &mut *self.gate.get() };
            if gate.is_locked() {
                // By a thread of the parent. Not dropped: that thread may have been changing it.
                // SAFETY: valid for writes, being borrowed above.
                unsafe { ptr::write(gate, G::INIT) };
            }
            // Relaxed: nothing is taken.
            self.word.fetch_and(!(CLAIMED | ASLEEP), Ordering::Relaxed);
        });
        // SAFETY: it is not written from here on.
        unsafe { &*self.gate.get() }
    }

    /// The holder of the gate takes what it wants, if it comes before the deadline, and leaves the gate.
    #[cold]
    fn take_and_leave(&self, gate: &G, guard: G::Guard, count: u32, deadline: Deadline) -> bool {
        let taken = self.take_first(count, deadline);
        // SAFETY: the gate is held, with this guard.
        unsafe { gate.unlock(guard) };
        taken
    }

    fn take_first(&self, count: u32, deadline: Deadline) -> bool {
        // Relaxed, here and in all that takes nothing: Invariant 2.
        let mut word = self.word.fetch_or(CLAIMED, Ordering::Relaxed) | CLAIMED;
        let has = |word: u32| word / PERMIT >= count;
        if !has(word)
            && let Some(more) = spin_for(&self.word, Ordering::Relaxed, has, cost::current())
        {
            word = more;
        }
        loop {
            let changed = if has(word) {
                let fewer = (word - count * PERMIT) & !(CLAIMED | ASLEEP);
                // Acquire: pairs with the Release of who gave them back.
                self.word.compare_exchange(word, fewer, Ordering::Acquire, Ordering::Relaxed)
            } else {
                let asleep = word | ASLEEP;
                self.word.compare_exchange(word, asleep, Ordering::Relaxed, Ordering::Relaxed)
            };
            if let Err(now) = changed {
                word = now;
            } else if has(word) {
                return true;
            } else if park::wait(&self.word, word | ASLEEP, deadline) == park::Woken::TimedOut {
                self.word.fetch_and(!(CLAIMED | ASLEEP), Ordering::Relaxed);
                return false;
            } else {
                word = self.word.load(Ordering::Relaxed);
            }
        }
    }
}

/// When a try gives up; `None` for a moment that lies beyond the clock's end.
type Until = Option<Instant>;

impl<G: RawMutexTimed<Duration = Duration, Instant = Instant>> Semaphore<G> {
    /// [`acquire`](Self::acquire), but gives up after `timeout`.
    #[inline]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<Permits<'_, G>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// [`acquire`](Self::acquire), but gives up at `instant`.
    #[inline]
    pub fn try_acquire_until(&self, instant: Instant) -> Option<Permits<'_, G>> {
        self.try_acquire_many_until(1, instant)
    }

    /// [`acquire_many`](Self::acquire_many), but gives up after `timeout`. What has given up has taken nothing.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    ///
    /// ```
    /// use std::time::Duration;
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(1);
    /// assert!(semaphore.try_acquire_many_for(2, Duration::from_millis(1)).is_none());
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    #[inline]
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Option<Permits<'_, G>> {
        self.assert_countable(count);
        // The clock is read only by a thread that has to wait.
        (self.try_take(count) || self.take_until(count, moment_after(timeout)))
            .then(|| Permits { semaphore: self, count })
    }

    /// [`acquire_many`](Self::acquire_many), but gives up at `instant`. What has given up has taken nothing.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn try_acquire_many_until(&self, count: u32, instant: Instant) -> Option<Permits<'_, G>> {
        self.assert_countable(count);
        (self.try_take(count) || self.take_until(count, Some(instant)))
            .then(|| Permits { semaphore: self, count })
    }

    #[cold]
    fn take_until(&self, count: u32, until: Until) -> bool {
        let gate = self.gate();
        let guard = match until {
            Some(instant) => gate.try_lock_until(instant),
            None => Some(gate.lock()),
        };
        let deadline = until.map_or(Deadline::NEVER, Deadline::at);
        guard.is_some_and(|guard| self.take_and_leave(gate, guard, count, deadline))
    }
}

impl<G: RawMutex> Permits<'_, G> {
    /// How many they are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Does not give them back. [`Semaphore::add_permits`] does, by whoever and whenever.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(1);
    /// semaphore.acquire().forget();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// semaphore.add_permits(1);
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn forget(self) {
        core::mem::forget(self);
    }
}

impl<G: RawMutex> Drop for Permits<'_, G> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.add_permits(self.count);
    }
}

impl<G: RawMutex> fmt::Debug for Semaphore<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}

impl<G: RawMutex> fmt::Debug for Permits<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("count", &self.count).finish_non_exhaustive()
    }
}
