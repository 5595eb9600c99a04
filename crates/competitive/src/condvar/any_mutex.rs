//! A condition variable with waits that are generic over the mutex.
//!
//! `lock_api::Condvar<C>` is tied to one type of mutex by its type parameter. It alone has access
//! to the state in a guard of `lock_api`. So a wait makes a `lock_api::Condvar` on its stack, over
//! a raw condition variable that only borrows the real one, and waits through that.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use core::time::Duration;

use lock_api::{MutexGuard, RawMutex};
use stanchion_machine::clock::{Deadline, Instant, moment_after};

use super::RawCondvar;

/// A condition variable for every mutex of `lock_api` 0.5.
///
/// It works with a [`Mutex`](crate::Mutex), a [`PolicyMutex`](crate::PolicyMutex) of any policy,
/// and every other `lock_api::Mutex`, also with several at once: each wait takes its own mutex
/// back. Costs, order and panics are those of [`RawCondvar`].
///
/// ```
/// use stanchion_competitive::{Condvar, Mutex};
///
/// static QUEUE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
/// static FILLED: Condvar = Condvar::new();
///
/// let taker = std::thread::spawn(|| {
///     let mut queue = QUEUE.lock();
///     FILLED.wait_while(&mut queue, |queue| queue.is_empty());
///     queue.pop()
/// });
/// QUEUE.lock().push(7);
/// FILLED.notify_one();
/// assert_eq!(taker.join().unwrap(), Some(7));
/// ```
pub struct Condvar {
    /// The condition variable proper.
    raw: RawCondvar<()>,
}

/// Tells whether a wait of a [`Condvar`] ended at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns `true` if the deadline came before a notification.
    #[inline]
    #[must_use]
    pub const fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self { raw: RawCondvar::with_mutex() }
    }

    /// Returns how many threads wait. A hint.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.raw.waiting()
    }

    /// Wakes the thread that has waited longest, and returns whether there was one.
    ///
    /// Notifications are not stored: without a waiter this does nothing.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.raw.notify(1) == 1
    }

    /// Wakes all threads that wait, and returns how many they were.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.raw.notify(usize::MAX)
    }

    /// Releases the mutex, sleeps until notified, and takes the mutex again.
    ///
    /// A notification after the release finds this thread. There are no spurious wake-ups.
    pub fn wait<M: RawMutex, T: ?Sized>(&self, guard: &mut MutexGuard<'_, M, T>) {
        self.wait_before(guard, Deadline::NEVER);
    }

    /// Waits for as long as `condition` returns `true`.
    ///
    /// # Panics
    ///
    /// If `condition` panics. The guard then still holds the mutex.
    pub fn wait_while<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) {
        self.wait_while_before(guard, condition, Deadline::NEVER);
    }

    /// Waits as [`wait`](Self::wait) does, but for at most `timeout`.
    ///
    /// The mutex needs no deadlines of its own: it is taken again without one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use stanchion_competitive::{Condvar, PolicyMutex, policy::AlwaysBlock};
    ///
    /// let mutex = PolicyMutex::<_, AlwaysBlock>::new(());
    /// let never = Condvar::new();
    /// assert!(never.wait_for(&mut mutex.lock(), Duration::from_millis(1)).timed_out());
    /// ```
    pub fn wait_for<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_before(guard, deadline_after(timeout))
    }

    /// Waits as [`wait`](Self::wait) does, but at most until `instant`.
    pub fn wait_until<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        instant: Instant,
    ) -> WaitTimeoutResult {
        self.wait_before(guard, Deadline::at(instant))
    }

    /// Waits for as long as `condition` returns `true`, but for at most `timeout`.
    ///
    /// The result has timed out only if `condition` returned `true` after the deadline.
    ///
    /// # Panics
    ///
    /// As [`wait_while`](Self::wait_while).
    pub fn wait_while_for<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.wait_while_before(guard, condition, deadline_after(timeout))
    }

    /// Waits for as long as `condition` returns `true`, but at most until `instant`.
    ///
    /// The result has timed out only if `condition` returned `true` after the deadline.
    ///
    /// # Panics
    ///
    /// As [`wait_while`](Self::wait_while).
    pub fn wait_while_until<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        condition: impl FnMut(&mut T) -> bool,
        instant: Instant,
    ) -> WaitTimeoutResult {
        self.wait_while_before(guard, condition, Deadline::at(instant))
    }

    fn wait_while_before<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        deadline: Deadline,
    ) -> WaitTimeoutResult {
        let mut result = WaitTimeoutResult(false);
        while condition(&mut **guard) {
            if result.timed_out() {
                return result;
            }
            result = self.wait_before(guard, deadline);
        }
        WaitTimeoutResult(false)
    }

    fn wait_before<M: RawMutex, T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, M, T>,
        deadline: Deadline,
    ) -> WaitTimeoutResult {
        let borrowing = lock_api::Condvar::<Borrowing<M>>::new();
        borrowing.raw().raw.set(&self.raw);
        borrowing.raw().deadline.set(deadline);
        borrowing.wait(guard);
        WaitTimeoutResult(borrowing.raw().timed_out.get())
    }
}

fn deadline_after(timeout: Duration) -> Deadline {
    moment_after(timeout).map_or(Deadline::NEVER, Deadline::at)
}

/// One wait at a [`Condvar`], as a raw condition variable for that wait's type of mutex.
struct Borrowing<M> {
    /// The condition variable to wait at. Null until the wait begins.
    raw: Cell<*const RawCondvar<()>>,
    /// The deadline of the wait, set before it begins.
    deadline: Cell<Deadline>,
    /// The wait's outcome, set by the wait.
    timed_out: Cell<bool>,
    /// Ties it to the type of mutex.
    mutex: PhantomData<fn(&M)>,
}

// SAFETY: its one wait is that of `RawCondvar`, which keeps the contract.
unsafe impl<M: RawMutex> lock_api::RawCondvar for Borrowing<M> {
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self {
        raw: Cell::new(ptr::null()),
        deadline: Cell::new(Deadline::NEVER),
        timed_out: Cell::new(false),
        mutex: PhantomData,
    };

    type RawMutex = M;

    unsafe fn wait(&self, mutex: &M, guard: &mut M::Guard) {
        // SAFETY: `Condvar::wait_before` has set it to a condition variable that it borrows.
        let raw = unsafe { &*self.raw.get() };
        // SAFETY: the caller's promise.
        let notified = unsafe { raw.sleep(mutex, guard, self.deadline.get()) };
        self.timed_out.set(!notified);
    }

    /// Wakes no thread: none can reach this value but the one that waits.
    fn notify_one(&self) -> bool {
        false
    }

    fn notify_all(&self) -> usize {
        0
    }
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
