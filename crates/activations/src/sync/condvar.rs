//! The condition variable: release a mutex and park in one step, until notified.
//!
//! Why not the mutex's own queue, into which notified threads could be moved: a thread that waits
//! for an event says nothing about how long the mutex is held, and the mutex's policy learns from
//! that.
//!
//! A wait joins the queue while it holds the mutex, and releases it then. So a thread that takes
//! the mutex afterwards and notifies finds the waiter in the queue. Leaving the queue is decided
//! under its lock: by a notifier, which counts it, or by the waiter itself, at its deadline. So
//! notifications are counted exactly, and no wait returns without one before its deadline.
//!
//! # Invariants
//!
//! 1. `waiting` is at least the length of the queue. It is raised under the mutex, before the wait
//!    joins the queue.
//! 2. From its release until it is taken back, the waiter does not hold the mutex. An unwinding in
//!    between ends the process, because the guard that the caller borrows would release it once
//!    more.
//!
//! # Orderings
//!
//! `waiting` is Relaxed. A thread that changes the condition under the mutex and notifies sees the
//! count of each thread that has waited for the condition, because that thread has released the
//! mutex since.
//!
//! Source: Lampson and Redell, "Experience with Processes and Monitors in Mesa", CACM 1980.

use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::time::Duration;

use lock_api::{RawCondvarTimed, RawMutexTimed};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::{Deadline, Instant, moment_after};

use super::mutex::RawMutex;
use super::queue::{Answer, Queue, Waiter};

/// A raw condition variable: it lets threads park until a condition holds that a mutex protects.
///
/// - notifying without a waiter: one load.
/// - notifying: a spin lock, and the price of an [`unpark`](crate::Thread::unpark) for each
///   waiter.
/// - waiting: a spin lock, a park, and the mutex again.
/// - order: first come, first notified; the mutex decides which of them gets it first.
/// - spurious wake-ups: none, so the number of threads notified is exact.
/// - size: 40 bytes; threads that wait bring their own memory.
///
/// It works with any mutex of `lock_api`. With another than that of this crate, a thread that takes
/// the mutex back waits as that mutex does. A wait does not spin: it waits for an event, not for a
/// section to end. A thread that times out just as it is notified either was notified, and returns
/// that, or was not, and then the notification is for another thread.
///
/// # Panics
///
/// Waiting never does. If the mutex panics while it is released or taken back, the process ends.
///
/// ```
/// use stanchion_activations::sync::RawCondvar;
///
/// use stanchion_spin::{Ticket, TicketMutex};
///
/// // For another mutex than that of this crate.
/// static OPEN: TicketMutex<bool> = TicketMutex::new(false);
/// static CHANGED: lock_api::Condvar<RawCondvar<Ticket>> = lock_api::Condvar::new();
///
/// let waits = std::thread::spawn(|| CHANGED.wait_while(&mut OPEN.lock(), |open| !*open));
/// *OPEN.lock() = true;
/// CHANGED.notify_all();
/// waits.join().unwrap();
/// ```
pub struct RawCondvar<M = RawMutex> {
    /// The number of threads that wait, or more (Invariant 1). Raised by waiters, lowered by the
    /// thread that takes them out.
    waiting: AtomicU32,
    /// The threads that wait.
    queue: Queue,
    mutex: PhantomData<fn(&M)>,
}

/// A condition variable for a [`Mutex`](super::Mutex).
///
/// Its methods are `lock_api`'s, with the names and meanings of `parking_lot`'s:
///
/// | here, and in `parking_lot` | in the standard library |
/// | --- | --- |
/// | `wait(&mut guard)` | `wait(guard)`, which gives the guard back, and may return for nothing |
/// | `wait_while(&mut guard, condition)` | `wait_while(guard, condition)` |
/// | `wait_for(&mut guard, time)` | `wait_timeout(guard, time)` |
/// | `wait_until(&mut guard, instant)` | |
/// | `wait_while_for`, `wait_while_until` | `wait_timeout_while` |
/// | `notify_one`, which returns whether a thread was notified | `notify_one` |
/// | `notify_all`, which returns how many were | `notify_all` |
///
/// The differences: nothing is poisoned. No wait returns without a notification or its time.
/// User-level and kernel threads may wait on the same one, and at once with different mutexes, for
/// which `parking_lot` panics. A notified thread contends for the mutex when it runs, where
/// `parking_lot` moves all but one to the mutex's queue. So notify after the mutex was released,
/// where that is possible.
///
/// ```
/// use stanchion_activations::{Runtime, spawn, sync::{Condvar, Mutex}};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// let taken = Runtime::new(1)?.run(|| {
///     let taker = spawn(|| {
///         let mut queue = QUEUE.lock();
///         FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///         queue.pop()
///     });
///     QUEUE.lock().push(7);
///     FILLED.notify_one();
///     taker.join().unwrap()
/// });
/// assert_eq!(taken, Some(7));
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub type Condvar = lock_api::Condvar<RawCondvar>;

impl<M> RawCondvar<M> {
    /// Returns a condition variable without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self { waiting: AtomicU32::new(0), queue: Queue::new(), mutex: PhantomData }
    }

    /// Returns the number of threads that wait. A hint.
    #[must_use]
    pub fn waiting(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.waiting.load(Ordering::Relaxed) as usize
    }

    /// Counts waiters that were taken out.
    fn left(&self, count: usize) {
        // Relaxed: a notifier that still sees them only looks in vain. The number fits.
        self.waiting.fetch_sub(count as u32, Ordering::Relaxed);
    }

    fn notify(&self, most: usize) -> usize {
        // Relaxed: see the file's header.
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.queue.send_on(most, |taken| self.left(taken))
    }
}

impl<M: lock_api::RawMutex> RawCondvar<M> {
    /// Waits, and returns whether the thread was notified.
    ///
    /// # Safety
    ///
    /// The mutex is held, and `guard` is that of its acquisition.
    unsafe fn park(&self, mutex: &M, guard: &mut M::Guard, deadline: Deadline) -> bool {
        // Before anything that is to be undone if it panics.
        let waiter = Waiter::new(0);
        // Relaxed: Invariant 1; its notifier comes after the release of the mutex below.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard: *mut M::Guard = guard;
        // Invariant 2.
        let bomb = AbortOnUnwind::armed("a mutex panicked while a condition variable used it");
        // SAFETY: it is new, and this goes on by `Queue::wait`, or the process ends.
        self.queue.with(|line| unsafe { line.put(&waiter, false) });
        // SAFETY: the guard is valid, and is written anew below before it is used.
        let held = unsafe { ptr::read(guard) };
        // SAFETY: the caller's promise; `held` is the only use of this acquisition.
        unsafe { mutex.unlock(held) };
        let answer = self.queue.wait(&waiter, deadline, |_| self.left(1));
        // SAFETY: the guard is borrowed, and what it held was given to `unlock`.
        unsafe { ptr::write(guard, mutex.lock()) };
        bomb.defuse();
        answer != Answer::TimedOut
    }
}

// SAFETY: the mutex is released after the wait has joined the queue, and taken back before it
// returns. An unwinding in between ends the process.
unsafe impl<M: lock_api::RawMutex> lock_api::RawCondvar for RawCondvar<M> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::new();

    type RawMutex = M;

    unsafe fn wait(&self, mutex: &M, guard: &mut M::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.park(mutex, guard, Deadline::NEVER) };
    }

    #[inline]
    fn notify_one(&self) -> bool {
        self.notify(1) == 1
    }

    #[inline]
    fn notify_all(&self) -> usize {
        self.notify(usize::MAX)
    }
}

// SAFETY: as above.
unsafe impl<M> RawCondvarTimed for RawCondvar<M>
where
    M: RawMutexTimed<Duration = Duration, Instant = Instant>,
{
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        moment_after(*timeout)
    }

    unsafe fn wait_until(&self, mutex: &M, guard: &mut M::Guard, timeout: &Instant) -> bool {
        // SAFETY: the caller's promise.
        unsafe { !self.park(mutex, guard, Deadline::at(*timeout)) }
    }
}

impl<M> Default for RawCondvar<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> fmt::Debug for RawCondvar<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
