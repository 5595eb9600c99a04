//! The counting semaphore: a mutex as gate, and a word that counts permits.
//!
//! Why not a queue of waiters, each with the number that it wants: a release would have to hand
//! permits to sleepers, and they would lie idle for the length of a wake-up. Here the threads that
//! find too few permits pass the gate one at a time. The thread that is through takes permits as
//! they come. Those behind it wait as the mutex waits.
//!
//! | `word` | gate held by | |
//! | --- | --- | --- |
//! | n permits | no thread, or the first in line, which looks | any thread takes them |
//! | n permits + asleep | the first in line, which sleeps | likewise; the next release wakes it |
//! | n permits + claimed | the first in line, which looks | for it: other threads queue up |
//! | n permits + claimed + asleep | the same, which sleeps | likewise; the next release wakes it |
//! | any of these + closed | a thread that is about to leave | for ever: no thread gets permits |
//!
//! Why other threads may overtake the first in line for 10 ms: a thread that runs takes the permit
//! that it has just released. Otherwise each permit would wait for a thread that wakes up.
//!
//! # Invariants
//!
//! 1. `claimed` is set and cleared by the holder of the gate only, and is clear when it leaves the
//!    gate. `asleep` is set by it, and cleared by it or by the release that wakes it.
//! 2. While `claimed` is set, permits are acquired by the holder of the gate only. It claims them
//!    once it has waited for [`PATIENCE_NS`]; if it sleeps then, it wakes up for that. So no thread
//!    overtakes it from then on, however many it wants. [`Semaphore::forget_permits`] may take them
//!    away from it.
//! 3. Permits are counted in 29 bits. More are refused.
//! 4. In a forked child the gate is free, and `claimed` and `asleep` are clear, before any of its
//!    threads uses the gate or believes a claim: the threads that stood in line are not there.
//!
//! # No wake-up is lost
//!
//! The first in line sleeps only while the word is the one that it saw, with `asleep` in it. A
//! release changes the word and finds `asleep` in it. Or `asleep` was set later, and then the first
//! in line has seen the new permits. The same holds for closing. The first in line then leaves the
//! gate, and the next one finds the semaphore closed there.
//!
//! # Orderings
//!
//! Permits are taken with Acquire, which pairs with the Release of a release: every change in
//! between is a read-modify-write. An Acquire that finds the semaphore closed pairs with the
//! Release of [`Semaphore::close`] in the same way.
//!
//! Source: Dijkstra, "Cooperating sequential processes", 1965, section 4. Taking several at once,
//! with the others held back, is from Vantilborgh and van Lamsweerde (1972).

mod permits;

use core::fmt;
use core::panic::RefUnwindSafe;
use core::ptr;
use core::time::Duration;
use std::sync::Arc;

use lock_api::{RawMutex, RawMutexTimed};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::clock::{Deadline, Instant, moment_after};
use stanchion_machine::wait::spin_for;
use stanchion_machine::{fork, park};

pub use permits::{Closed, OwnedPermits, Permits};

use crate::cost;
use crate::fork_lock::ForkLock;
use crate::mutex::RawPolicyMutex;
use crate::parking::PATIENCE_NS;

/// The permits are for the holder of the gate.
const CLAIMED: u32 = 1;
/// It sleeps.
const ASLEEP: u32 = 2;
/// No thread gets permits any more.
const CLOSED: u32 = 4;
/// One permit.
const PERMIT: u32 = 8;

/// A number of permits, and threads that wait until there are as many as they want.
///
/// - Uncontended: one compare-exchange to acquire, one to release.
/// - Order: a thread that is the first in line for 10 ms is not overtaken any more, however many
///   permits it wants. One that gives up earlier may have been overtaken each time. The line is a
///   mutex, and has its order and its bound. With [`RawPolicyMutex`] a thread that has slept for
///   10 ms is next, at most every 5 ms.
/// - Size: the mutex's and 8 bytes: 24.
/// - Waiting: the first in line spins for C, see [`cost`], then sleeps. The others wait for the
///   mutex, as its policy decides.
///
/// # Fork
///
/// In the child of a fork, permits that threads of the parent held are never given back. If threads
/// of the parent waited, the child's line is a new mutex, [`RawMutex::INIT`].
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
    /// The mutex that the first in line holds. Written only before any thread of a forked child
    /// uses it.
    gate: UnsafeCell<G>,
    /// Tells a forked child that the gate is its parent's.
    fork_lock: ForkLock,
    /// The permits, and the state of the first in line. Written by every thread.
    word: AtomicU32,
}

// SAFETY: the gate is shared by reference; see `Semaphore::gate` for the one write.
unsafe impl<G: Send + Sync> Sync for Semaphore<G> {}

// A gate that is written is written whole.
impl<G: RefUnwindSafe> RefUnwindSafe for Semaphore<G> {}

impl Semaphore {
    /// Returns a semaphore with so many permits. Its waiters queue up at the default mutex.
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

    /// Returns a semaphore with so many permits. Its waiters queue up at `gate`. That mutex must be
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
        assert!(permits <= Self::MAX_PERMITS, "a semaphore counts at most 2^29 - 1 permits");
        Self {
            gate: UnsafeCell::new(gate),
            fork_lock: ForkLock::new(),
            word: AtomicU32::new(permits * PERMIT),
        }
    }

    /// Returns how many permits there are to be had. A hint.
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
    /// If the semaphore is closed, or [`close`](Self::close)d while the thread waits.
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
        match self.acquire_many_unless_closed(count) {
            Ok(permits) => permits,
            Err(Closed) => self.refuse_closed(),
        }
    }

    /// Takes a permit; waits for one if there is none, and gives up if the semaphore is closed.
    ///
    /// # Errors
    ///
    /// [`Closed`], if the semaphore is, or [`close`](Self::close)d while the thread waits.
    #[inline]
    pub fn acquire_unless_closed(&self) -> Result<Permits<'_, G>, Closed> {
        self.acquire_many_unless_closed(1)
    }

    /// Takes so many permits, all at once; waits until there are as many, and gives up if the
    /// semaphore is closed. What has given up has taken nothing.
    ///
    /// # Errors
    ///
    /// [`Closed`], if the semaphore is, or [`close`](Self::close)d while the thread waits.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`](Self::MAX_PERMITS), for which it would wait for ever.
    #[inline]
    pub fn acquire_many_unless_closed(&self, count: u32) -> Result<Permits<'_, G>, Closed> {
        self.take(count).map(|()| Permits::new(self, count))
    }

    /// Takes a permit; waits for one if there is none. The permit keeps the semaphore alive.
    ///
    /// # Panics
    ///
    /// As [`acquire`](Self::acquire).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use stanchion_competitive::Semaphore;
    /// let workers = Arc::new(Semaphore::new(2));
    /// let permit = workers.clone().acquire_owned();
    /// // The permit may outlive this function.
    /// let worker = std::thread::spawn(move || drop(permit));
    /// worker.join().unwrap();
    /// assert_eq!(workers.available_permits(), 2);
    /// ```
    #[inline]
    pub fn acquire_owned(self: Arc<Self>) -> OwnedPermits<G> {
        self.acquire_many_owned(1)
    }

    /// Takes so many permits as [`acquire_many`](Self::acquire_many) does. They keep the semaphore
    /// alive.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    pub fn acquire_many_owned(self: Arc<Self>, count: u32) -> OwnedPermits<G> {
        match self.take(count) {
            Ok(()) => OwnedPermits::new(self, count),
            Err(Closed) => self.refuse_closed(),
        }
    }

    /// Takes so many permits as [`acquire_many_unless_closed`](Self::acquire_many_unless_closed)
    /// does. They keep the semaphore alive.
    ///
    /// # Errors
    ///
    /// [`Closed`], if the semaphore is, or [`close`](Self::close)d while the thread waits.
    ///
    /// # Panics
    ///
    /// As [`acquire_many_unless_closed`](Self::acquire_many_unless_closed).
    pub fn acquire_many_owned_unless_closed(
        self: Arc<Self>,
        count: u32,
    ) -> Result<OwnedPermits<G>, Closed> {
        self.take(count).map(|()| OwnedPermits::new(self, count))
    }

    /// Takes a permit if there is one that no waiter has claimed. The permit keeps the semaphore
    /// alive.
    #[inline]
    pub fn try_acquire_owned(self: Arc<Self>) -> Option<OwnedPermits<G>> {
        self.try_acquire_many_owned(1)
    }

    /// Takes so many permits if there are as many that no waiter has claimed. They keep the
    /// semaphore alive.
    pub fn try_acquire_many_owned(self: Arc<Self>, count: u32) -> Option<OwnedPermits<G>> {
        (count <= Self::MAX_PERMITS && self.try_take(count)).then(|| OwnedPermits::new(self, count))
    }

    /// Closes the semaphore: no thread gets permits any more, and all that wait give up.
    ///
    /// Permits that threads have are given back as before. Closing it again does nothing. What the
    /// thread did before it closed the semaphore is visible to threads that find it closed.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let work = Semaphore::new(0);
    /// std::thread::scope(|scope| {
    ///     let worker = scope.spawn(|| work.acquire_unless_closed().is_err());
    ///     work.close();
    ///     assert!(worker.join().unwrap());
    /// });
    /// assert!(work.is_closed() && work.try_acquire().is_none());
    /// ```
    pub fn close(&self) {
        let address: *const AtomicU32 = &self.word;
        // Release: pairs with the Acquire of a thread that finds it closed.
        if self.word.fetch_or(CLOSED, Ordering::Release) & ASLEEP != 0 {
            // By address, as in `add_permits`. The first in line clears `asleep`.
            park::wake_at(address, 1);
        }
    }

    /// Returns whether the semaphore is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release of `close`.
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Takes away at most `most` of the permits that no thread has, and returns how many those
    /// were.
    ///
    /// [`add_permits`](Self::add_permits) adds them again. Threads that wait for permits go on to
    /// wait.
    ///
    /// ```
    /// use stanchion_competitive::Semaphore;
    /// let semaphore = Semaphore::new(5);
    /// let two = semaphore.acquire_many(2);
    /// assert_eq!(semaphore.forget_permits(10), 3);
    /// drop(two);
    /// assert_eq!(semaphore.available_permits(), 2);
    /// ```
    pub fn forget_permits(&self, most: u32) -> u32 {
        // Relaxed, also below: a permit that is taken away tells nothing to the thread.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let count = most.min(word / PERMIT);
            match self.word.compare_exchange_weak(
                word,
                word - count * PERMIT,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return count,
                Err(now) => word = now,
            }
        }
    }

    /// Takes permits for the caller; waits if need be.
    #[inline]
    fn take(&self, count: u32) -> Result<(), Closed> {
        self.assert_countable(count);
        if self.try_take(count) || self.take_slowly(count) { Ok(()) } else { Err(Closed) }
    }

    /// Takes permits at the gate. Returns `false` if the semaphore is closed.
    #[cold]
    fn take_slowly(&self, count: u32) -> bool {
        let gate = self.gate();
        let guard = gate.lock();
        self.take_and_leave(gate, guard, count, Deadline::NEVER)
    }

    /// Takes a permit if there is one that no waiter has claimed.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permits<'_, G>> {
        self.try_acquire_many(1)
    }

    /// Takes so many permits if there are as many that no waiter has claimed.
    #[inline]
    pub fn try_acquire_many(&self, count: u32) -> Option<Permits<'_, G>> {
        // `then`, not `then_some`: permits that were not taken must not be dropped.
        (count <= Self::MAX_PERMITS && self.try_take(count)).then(|| Permits::new(self, count))
    }

    /// Adds permits that no holder gives back: those of [`Permits::forget`], or new ones.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then; the semaphore stays as it
    /// was.
    #[inline]
    pub fn add_permits(&self, count: u32) {
        let address: *const AtomicU32 = &self.word;
        // Relaxed: the exchange below decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let more = count.checked_mul(PERMIT).and_then(|more| word.checked_add(more));
            let Some(more) = more else { self.too_many(count) };
            // Release: pairs with the Acquire of the thread that takes them. Relaxed: it is tried
            // again.
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
            // By address: the thread that has the permits by now may have ended the semaphore.
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

    #[cold]
    fn refuse_closed(&self) -> ! {
        panic!(
            "permits are wanted of the semaphore at {self:p}, which is closed; `acquire_unless_closed` returns that as an error"
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

    /// Takes permits that no waiter has claimed.
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
            if word & (CLAIMED | CLOSED) != 0 {
                return count == 0 && word & CLOSED == 0;
            }
            let Some(fewer) = word.checked_sub(count * PERMIT) else { return false };
            // Acquire: pairs with the Release of the thread that gave them back. Relaxed: it is
            // tried again.
            match self.word.compare_exchange_weak(word, fewer, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Returns the gate. In a forked child no thread holds it at first, and nothing is claimed.
    fn gate(&self) -> &G {
        self.fork_lock.adopt(|| {
            self.gate.with_mut(|gate| {
                // SAFETY: no thread of this process uses the gate before it has come past here.
                let locked = unsafe { (*gate).is_locked() };
                if locked {
                    // By a thread of the parent. Not dropped: that thread may have been changing
                    // it. SAFETY: valid for writes, as above.
                    unsafe { ptr::write(gate, G::INIT) };
                }
            });
            // Relaxed: nothing is taken.
            self.word.fetch_and(!(CLAIMED | ASLEEP), Ordering::Relaxed);
        });
        // SAFETY: it is not written from here on.
        self.gate.with(|gate| unsafe { &*gate })
    }

    /// Takes the wanted permits for the holder of the gate, if they come before the deadline and
    /// before the semaphore is closed. Leaves the gate.
    #[cold]
    fn take_and_leave(&self, gate: &G, guard: G::Guard, count: u32, deadline: Deadline) -> bool {
        let taken = self.take_first(count, deadline);
        // SAFETY: the gate is held, with this guard.
        unsafe { gate.unlock(guard) };
        taken
    }

    fn take_first(&self, count: u32, deadline: Deadline) -> bool {
        let has = |word: u32| word / PERMIT >= count;
        let is_over = |word: u32| has(word) || word & CLOSED != 0;
        // Relaxed, here and in all that takes nothing.
        let seen = spin_for(&self.word, Ordering::Relaxed, is_over, cost::current());
        let mut word = seen.unwrap_or_else(|| self.word.load(Ordering::Relaxed));
        let patience = Deadline::after(Duration::from_nanos(PATIENCE_NS));
        let mut claimed = false;
        loop {
            if word & CLOSED != 0 {
                // Acquire: pairs with the Release of `close`.
                self.word.fetch_and(!(CLAIMED | ASLEEP), Ordering::Acquire);
                return false;
            }
            if has(word) {
                let fewer = (word - count * PERMIT) & !(CLAIMED | ASLEEP);
                // Acquire: pairs with the Release of the thread that gave them back.
                let taken =
                    self.word.compare_exchange(word, fewer, Ordering::Acquire, Ordering::Relaxed);
                let Err(now) = taken else { return true };
                word = now;
            } else if !claimed && (patience.passed() || stanchion_machine::choice()) {
                // In a model, where no time passes, it has passed by choice.
                claimed = true;
                word = self.word.fetch_or(CLAIMED, Ordering::Relaxed) | CLAIMED;
            } else if let Err(now) = self.word.compare_exchange(
                word,
                word | ASLEEP,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                word = now;
            } else {
                let until = if claimed { deadline } else { deadline.min(patience) };
                let woken = park::wait(&self.word, word | ASLEEP, until);
                if woken == park::Woken::TimedOut && until == deadline {
                    self.word.fetch_and(!(CLAIMED | ASLEEP), Ordering::Relaxed);
                    return false;
                }
                word = self.word.load(Ordering::Relaxed);
            }
        }
    }
}

/// The time at which a try gives up; `None` for a moment that lies beyond the clock's end.
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

    /// [`acquire_many`](Self::acquire_many), but gives up after `timeout`. What has given up has
    /// taken nothing.
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
            .then(|| Permits::new(self, count))
    }

    /// [`acquire_many`](Self::acquire_many), but gives up at `instant`. What has given up has taken
    /// nothing.
    ///
    /// # Panics
    ///
    /// As [`acquire_many`](Self::acquire_many).
    #[inline]
    pub fn try_acquire_many_until(&self, count: u32, instant: Instant) -> Option<Permits<'_, G>> {
        self.assert_countable(count);
        (self.try_take(count) || self.take_until(count, Some(instant)))
            .then(|| Permits::new(self, count))
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

impl<G: RawMutex> fmt::Debug for Semaphore<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}
