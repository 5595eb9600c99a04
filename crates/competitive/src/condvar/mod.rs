//! The condition variable: release a mutex and sleep in one step, until notified.
//!
//! Why not the mutex's own queue, to which some libraries move woken threads: a wait of this kind
//! says nothing about how long the mutex is held, and the mutex's policy learns from that. Why not
//! a counter that waiters sleep on: it wakes waiters that were not meant, and a waiter that gives
//! up can take a notification with it.
//!
//! A wait joins the queue while it holds the mutex, and releases it then. So a thread that takes
//! the mutex afterwards and notifies finds the waiter in the queue. Leaving the queue is decided
//! under its lock. Either a notifier takes the waiter out and counts it, or the waiter leaves at
//! its deadline and says that it timed out. So notifications are counted exactly, and no waiter
//! returns without one.
//!
//! # Invariants
//!
//! 1. `waiting` is at least the length of the queue. It is raised under the mutex, before the wait
//!    joins.
//! 2. From its release until it is taken back, the mutex is not this thread's; an unwinding in
//!    between ends the process, because the guard that the caller borrows would release it once
//!    more.
//!
//! # Orderings
//!
//! `waiting` is Relaxed. A notifier that changes the condition under the mutex sees the count of
//! each waiter, because that waiter has released the mutex since. A notifier that changes it
//! without the mutex may miss a thread that is on its way to sleep, and no fence would help: that
//! thread can have looked at the condition before the change.
//!
//! Source: Lampson and Redell, "Experience with Processes and Monitors in Mesa", CACM 1980.

mod any_mutex;

use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::time::Duration;

use lock_api::{RawCondvarTimed, RawMutex, RawMutexTimed};
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::{Deadline, Instant, moment_after};
use stanchion_machine::thread;

pub use any_mutex::{Condvar, WaitTimeoutResult};

use crate::mutex::RawPolicyMutex;
use crate::sleepers::{Sleepers, Slept};

/// The raw condition variable of `lock_api::Condvar`, for one type of mutex. [`Condvar`] takes all.
///
/// | | |
/// | --- | --- |
/// | notifying without a waiter | one load |
/// | notifying | a spin lock; a system call for each thread woken |
/// | waiting | a spin lock, a sleep, and the mutex again |
/// | order | first come, first woken; the mutex decides which woken thread gets it first |
/// | spurious wake-ups | none, so the number of threads notified is exact |
/// | size | 40 bytes; threads that wait bring their own memory |
///
/// `M` is any raw mutex of `lock_api`. Waits with several mutexes at once are allowed: each takes
/// its own mutex back. A thread may time out just as it is notified. Either it was notified, and
/// returns that, or it was not, and then the notification wakes another thread.
///
/// Notify with the mutex held, or after a section in which the condition was changed: a
/// notification goes to the threads that wait, and is forgotten if there are none.
///
/// A wait does not spin: it waits for an event, not for a section to end. Once notified, it gives
/// its processor away once if the mutex is held, since the notifier may need both; then it
/// waits for the mutex as the mutex's policy says.
///
/// In the child of a fork no thread of the parent waits, and none is notified in place of others.
///
/// # Panics
///
/// Never. If the mutex panics while it is taken back, as it may with a [`Policy`](crate::Policy)
/// that does, the process ends: the caller's guard cannot be honoured any more.
pub struct RawCondvar<M = RawPolicyMutex> {
    /// The number of threads that wait, or more (Invariant 1). Counted by waiters and notifiers.
    waiting: AtomicU32,
    /// The queue of the threads that wait.
    sleepers: Sleepers,
    /// Ties the condition variable to one type of mutex.
    mutex: PhantomData<fn(&M)>,
}

impl RawCondvar {
    /// Returns a condition variable without waiters, for waits with [`RawPolicyMutex`].
    #[must_use]
    pub const fn new() -> Self {
        Self::with_mutex()
    }
}

impl<M> RawCondvar<M> {
    /// Returns a condition variable without waiters, for waits with the mutex that the caller
    /// names, as in `RawCondvar::<Mcs>::with_mutex()`.
    #[must_use]
    pub const fn with_mutex() -> Self {
        Self { waiting: AtomicU32::new(0), sleepers: Sleepers::new(), mutex: PhantomData }
    }

    /// Returns the number of threads that wait. A hint.
    #[must_use]
    pub fn waiting(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.waiting.load(Ordering::Relaxed) as usize
    }

    fn left(&self, count: usize) {
        // Relaxed: a notifier that still sees it only looks in vain. What has joined fits.
        self.waiting.fetch_sub(count as u32, Ordering::Relaxed);
    }

    fn notify(&self, most: usize) -> usize {
        // Relaxed: see the file's header.
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.sleepers.wake(most, |taken| self.left(taken))
    }

    /// Waits with a mutex of any type, and returns whether it was notified.
    ///
    /// # Safety
    ///
    /// The mutex is held, and `guard` is that of its acquisition.
    unsafe fn sleep<R: RawMutex>(
        &self,
        mutex: &R,
        guard: &mut R::Guard,
        deadline: Deadline,
    ) -> bool {
        // Relaxed: Invariant 1; its notifier comes after the release of the mutex below.
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let guard: *mut R::Guard = guard;
        // Invariant 2.
        let bomb = AbortOnUnwind::armed("a mutex panicked while a condition variable used it");
        let release = || {
            // SAFETY: the guard is valid, and is written anew below before any code can use it.
            let held = unsafe { ptr::read(guard) };
            // SAFETY: the caller's promise; `held` is the only use of this acquisition.
            unsafe { mutex.unlock(held) };
        };
        let slept = self.sleepers.sleep(|| true, release, deadline);
        if slept == Slept::Woken && mutex.is_locked() {
            // Most likely by the notifier, which this thread may have pushed from its processor:
            // spinning would keep it away.
            thread::yield_now();
        }
        // SAFETY: the guard is borrowed, and its old content was given to `unlock`.
        unsafe { ptr::write(guard, mutex.lock()) };
        bomb.defuse();
        let notified = slept == Slept::Woken;
        if !notified {
            self.left(1);
        }
        notified
    }
}

// SAFETY: the mutex is released after the wait has joined the queue and taken back before it
// returns; an unwinding in between ends the process.
unsafe impl<M: RawMutex> lock_api::RawCondvar for RawCondvar<M> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::with_mutex();

    type RawMutex = M;

    unsafe fn wait(&self, mutex: &M, guard: &mut M::Guard) {
        // SAFETY: the caller's promise.
        unsafe { self.sleep(mutex, guard, Deadline::NEVER) };
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
        unsafe { !self.sleep(mutex, guard, Deadline::at(*timeout)) }
    }
}

impl<M> Default for RawCondvar<M> {
    fn default() -> Self {
        Self::with_mutex()
    }
}

impl<M> fmt::Debug for RawCondvar<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawCondvar").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
