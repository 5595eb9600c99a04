//! The counting semaphore: a word that counts permits, and a queue that they are handed to.
//!
//! Why not as in `stanchion_competitive`, where the first in line takes permits as they come, at a
//! gate that is a mutex: there a permit must not lie idle for as long as the kernel takes to wake a
//! thread. Here it is handed to its next owner at once, because that one is ready as soon as it is
//! called, and so the order is strict.
//!
//! | `word` | meaning |
//! | --- | --- |
//! | n permits | a thread that comes takes them |
//! | n permits + `QUEUED` | they are for the first in line: a thread that comes queues up |
//!
//! # Invariants
//!
//! 1. `QUEUED` is written under the queue's lock, and stands whenever that is free if the queue is
//!    not empty. While it stands permits are taken under that lock only.
//! 2. Whenever the lock is free, the first in line wants more permits than there are, or a thread
//!    is about to take the lock and to serve it: a thread that has added permits, or one that was
//!    the first in line and has left.
//! 3. Permits are counted in 31 bits. More are refused.
//!
//! # Orderings
//!
//! Permits are added with Release, and taken with Acquire. A thread takes them for itself, or for
//! the first in line, which sees it through the answer. Every change in between is a
//! read-modify-write.
//!
//! Source: Dijkstra, "Cooperating sequential processes", 1965, section 4.

use core::fmt;
use core::time::Duration;

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::{Deadline, Instant};

use super::queue::{Answer, BATCH, Line, Queue, Waiter, notify_all};
use crate::worker::context;

/// The flag of a semaphore with threads in line.
const QUEUED: u32 = 1;
/// The value of one permit.
const PERMIT: u32 = 2;

/// A counting semaphore: a number of permits, and threads that park until there are as many as they
/// want.
///
/// | | |
/// | --- | --- |
/// | uncontended | one compare-exchange to acquire, one to release |
/// | order | first come, first served, however many each wants; no thread overtakes |
/// | size | 40 bytes; threads that wait bring their own memory |
/// | deadline | yes |
///
/// A wait does not spin: permits have no owner that could be seen to run.
///
/// ```
/// use stanchion_activations::sync::Semaphore;
///
/// static CONNECTIONS: Semaphore = Semaphore::new(2);
/// let one = CONNECTIONS.acquire();
/// let other = CONNECTIONS.acquire();
/// assert!(CONNECTIONS.try_acquire().is_none());
/// drop(one);
/// assert!(CONNECTIONS.try_acquire().is_some());
/// # drop(other);
/// ```
pub struct Semaphore {
    /// The permits, and `QUEUED`. Changed by all threads that use the semaphore.
    word: AtomicU32,
    /// The threads in line.
    queue: Queue,
}

/// Permits of a [`Semaphore`], given back when this is dropped. It may go to another thread.
///
/// If so many permits were [added](Semaphore::add_permits) meanwhile that these cannot be counted,
/// the semaphore has [`MAX_PERMITS`](Semaphore::MAX_PERMITS) then.
///
/// ```
/// use stanchion_activations::sync::{Permits, Semaphore};
///
/// static SLOTS: Semaphore = Semaphore::new(4);
///
/// fn two() -> Option<Permits<'static>> {
///     SLOTS.try_acquire_many(2)
/// }
/// let (first, second) = (two(), two());
/// assert!(two().is_none());
/// // One pair comes back, the other never does.
/// drop(first);
/// second.expect("there were four").forget();
/// assert_eq!(SLOTS.available_permits(), 2);
/// ```
#[must_use = "permits that are dropped are given back at once"]
pub struct Permits<'s> {
    /// The semaphore that they go back to.
    semaphore: &'s Semaphore,
    /// The number of permits.
    count: u32,
}

impl Semaphore {
    /// More permits than this cannot be counted.
    pub const MAX_PERMITS: u32 = u32::MAX / PERMIT;

    /// Returns a semaphore with so many permits.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    #[must_use]
    pub const fn new(permits: u32) -> Self {
        assert!(permits <= Self::MAX_PERMITS, "a semaphore counts at most 2^31 - 1 permits");
        Self { word: AtomicU32::new(permits * PERMIT), queue: Queue::new() }
    }

    /// Returns the number of permits that could be taken if no thread waits for them. A hint.
    #[must_use]
    pub fn available_permits(&self) -> u32 {
        // Relaxed: out of date when it is returned.
        self.word.load(Ordering::Relaxed) / PERMIT
    }

    /// Takes a permit; waits for one if there is none.
    #[inline]
    pub fn acquire(&self) -> Permits<'_> {
        self.acquire_many(1)
    }

    /// Takes so many permits, all at once; waits until there are as many. 0 are always there.
    ///
    /// # Panics
    ///
    /// If they are more than [`MAX_PERMITS`](Self::MAX_PERMITS), for which it would wait for ever.
    ///
    /// ```
    /// let semaphore = stanchion_activations::sync::Semaphore::new(3);
    /// let permits = semaphore.acquire_many(2);
    /// assert_eq!((permits.count(), semaphore.available_permits()), (2, 1));
    /// ```
    #[inline]
    pub fn acquire_many(&self, count: u32) -> Permits<'_> {
        // Without a deadline it comes back only with the permits.
        self.acquire_by(count, || Deadline::NEVER);
        Permits { semaphore: self, count }
    }

    /// Takes a permit, if there is one and no thread is in line.
    #[inline]
    pub fn try_acquire(&self) -> Option<Permits<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes so many permits, if there are as many and no thread is in line.
    #[inline]
    pub fn try_acquire_many(&self, count: u32) -> Option<Permits<'_>> {
        // `then`, not `then_some`: permits that were not taken must not be dropped.
        self.try_take(count).then(|| Permits { semaphore: self, count })
    }

    /// [`acquire`](Self::acquire), but gives up after `timeout`.
    ///
    /// ```
    /// let semaphore = stanchion_activations::sync::Semaphore::new(0);
    /// assert!(semaphore.try_acquire_for(std::time::Duration::from_millis(1)).is_none());
    /// ```
    #[inline]
    pub fn try_acquire_for(&self, timeout: Duration) -> Option<Permits<'_>> {
        self.try_acquire_many_for(1, timeout)
    }

    /// [`acquire`](Self::acquire), but gives up at `instant`.
    #[inline]
    pub fn try_acquire_until(&self, instant: Instant) -> Option<Permits<'_>> {
        self.try_acquire_many_until(1, instant)
    }

    /// [`acquire_many`](Self::acquire_many), but gives up after `timeout`, and then lets those
    /// behind it have what there is.
    ///
    /// # Panics
    ///
    /// As `acquire_many`.
    #[inline]
    pub fn try_acquire_many_for(&self, count: u32, timeout: Duration) -> Option<Permits<'_>> {
        let got = self.acquire_by(count, || Deadline::after(timeout));
        got.then(|| Permits { semaphore: self, count })
    }

    /// [`acquire_many`](Self::acquire_many), but gives up at `instant`.
    ///
    /// # Panics
    ///
    /// As `acquire_many`.
    #[inline]
    pub fn try_acquire_many_until(&self, count: u32, instant: Instant) -> Option<Permits<'_>> {
        let got = self.acquire_by(count, || Deadline::at(instant));
        got.then(|| Permits { semaphore: self, count })
    }

    /// Adds permits that no [`Permits`] holds: those of [`Permits::forget`], or new ones.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS) then; nothing is added.
    ///
    /// ```
    /// let done = stanchion_activations::sync::Semaphore::new(0);
    /// std::thread::scope(|s| {
    ///     s.spawn(|| done.add_permits(1));
    ///     done.acquire().forget();
    /// });
    /// assert_eq!(done.available_permits(), 0);
    /// ```
    #[inline]
    pub fn add_permits(&self, count: u32) {
        assert!(self.add(count, false), "a semaphore counts at most 2^31 - 1 permits");
    }

    /// Adds permits. If they are too many to be counted, adds as many as can be if it `saturates`,
    /// or else none; returns whether it has added permits.
    #[inline]
    fn add(&self, count: u32, saturates: bool) -> bool {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let sum = (word / PERMIT).saturating_add(count);
            if sum > Self::MAX_PERMITS && !saturates {
                return false;
            }
            let sum = sum.min(Self::MAX_PERMITS);
            let next = (sum * PERMIT) | (word & QUEUED);
            // Release: pairs with the Acquire of the thread that takes them.
            match self.word.compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & QUEUED != 0 {
            self.serve();
        }
        true
    }

    #[inline]
    fn try_take(&self, count: u32) -> bool {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if count == 0 {
                return true;
            }
            if word & QUEUED != 0 || word / PERMIT < count {
                return false;
            }
            let next = word - count * PERMIT;
            // Acquire: pairs with the Release of `add`.
            match self.word.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    #[inline]
    fn acquire_by(&self, count: u32, deadline: impl FnOnce() -> Deadline) -> bool {
        assert!(count <= Self::MAX_PERMITS, "a semaphore counts at most 2^31 - 1 permits");
        self.try_take(count) || self.acquire_slow(count, deadline())
    }

    #[cold]
    fn acquire_slow(&self, count: u32, deadline: Deadline) -> bool {
        if deadline.passed() {
            return false;
        }
        let waiter = Waiter::new(count.into());
        let bomb = AbortOnUnwind::armed("a thread unwound while it waited for permits");
        let got = self.queue.with(|line| {
            let got = self.take_or_mark(count);
            if !got {
                // SAFETY: it is new, and this goes on by `Queue::wait`, or the process ends.
                unsafe { line.put(&waiter, false) };
            }
            got
        });
        let answer = if got {
            Answer::Served
        } else {
            self.queue.wait(&waiter, deadline, |line| self.mark_end(line))
        };
        bomb.defuse();
        if answer == Answer::TimedOut {
            // Invariant 2.
            self.serve();
        }
        answer == Answer::Served
    }

    /// Takes the permits if no thread is in line, or else sets `QUEUED`. Returns whether it has
    /// taken them. Called under the lock.
    fn take_or_mark(&self, count: u32) -> bool {
        // Relaxed: the exchange decides.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let takes = word & QUEUED == 0 && word / PERMIT >= count;
            let next = if takes { word - count * PERMIT } else { word | QUEUED };
            // Acquire: pairs with the Release of `add`.
            match self.word.compare_exchange(word, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return takes,
                Err(now) => word = now,
            }
        }
    }

    /// Clears `QUEUED` if no thread is in line. Called under the lock.
    fn mark_end(&self, line: &Line) {
        if line.is_empty() {
            // Relaxed: nothing is taken.
            self.word.fetch_and(!QUEUED, Ordering::Relaxed);
        }
    }

    /// Hands permits to those in line, in order, for as long as there are enough for the first.
    #[cold]
    fn serve(&self) {
        loop {
            let mut batch = [const { None }; BATCH];
            let more = self.queue.with(|line| {
                for place in &mut batch {
                    let Some(wanted) = line.first_note() else { return false };
                    if !self.take_for_first(wanted as u32) {
                        return false;
                    }
                    *place = line.answer_first(Answer::Served, 0);
                    self.mark_end(line);
                }
                true
            });
            notify_all(&mut batch);
            if !more {
                return context::give_way();
            }
        }
    }

    /// Takes so many permits if they are there. Called under the lock, with a line.
    fn take_for_first(&self, count: u32) -> bool {
        // Relaxed: `QUEUED` is set, so no other thread takes any. Permits that are added later are
        // served later.
        let enough = self.word.load(Ordering::Relaxed) / PERMIT >= count;
        if enough {
            // Acquire: pairs with the Release of `add`; the answer hands that on.
            self.word.fetch_sub(count * PERMIT, Ordering::Acquire);
        }
        enough
    }
}

impl Permits<'_> {
    /// Returns the number of permits.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Keeps the permits from going back: the semaphore has so many fewer from now on.
    pub fn forget(self) {
        core::mem::forget(self);
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        // A panic here could end the process.
        if self.count > 0 {
            self.semaphore.add(self.count, true);
        }
    }
}

impl fmt::Debug for Permits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permits").field("count", &self.count).finish_non_exhaustive()
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available_permits", &self.available_permits())
            .finish_non_exhaustive()
    }
}
