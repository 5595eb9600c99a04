//! `std::sync::Condvar`.

use std::fmt;
use std::sync::{self, LockResult, WaitTimeoutResult};
use std::time::{Duration, Instant};

use super::held::map;
use super::mutex::MutexGuard;

/// A `std::sync::Condvar`, of which a wait reports that it releases the mutex and takes it again.
///
/// ```
/// use stanchion_checked::std::{Condvar, Mutex};
/// use std::time::Duration;
///
/// let (mutex, condvar) = (Mutex::new(false), Condvar::new());
/// let (_guard, result) =
///     condvar.wait_timeout(mutex.lock().unwrap(), Duration::from_millis(1)).unwrap();
/// # let _ = result;
/// ```
#[derive(Default)]
pub struct Condvar {
    /// The condition variable.
    inner: sync::Condvar,
}

impl Condvar {
    /// Makes a condition variable. Costs nothing, and never panics.
    ///
    /// ```
    /// use stanchion_checked::std::Condvar;
    ///
    /// static CHANGED: Condvar = Condvar::new();
    /// # CHANGED.notify_one();
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self { inner: sync::Condvar::new() }
    }

    /// Releases the mutex, blocks until the thread is woken, and takes the mutex again. It may also
    /// wake without a notification.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the guard.
    ///
    /// # Panics
    ///
    /// Perhaps, if the condition variable is used with another mutex too.
    ///
    /// ```
    /// use stanchion_checked::std::{Condvar, Mutex};
    ///
    /// let (ready, changed) = (Mutex::new(false), Condvar::new());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         *ready.lock().unwrap() = true;
    ///         changed.notify_all();
    ///     });
    ///     let mut guard = ready.lock().unwrap();
    ///     while !*guard {
    ///         guard = changed.wait(guard).unwrap();
    ///     }
    /// });
    /// ```
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (held, inner) = guard.into_parts();
        let (held, result) = held.waiting(|| self.inner.wait(inner));
        map(result, |inner| MutexGuard::from_parts(held, inner))
    }

    /// Waits as long as the condition is true.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the guard.
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait) does, and if `condition` panics.
    ///
    /// ```
    /// use stanchion_checked::std::{Condvar, Mutex};
    ///
    /// let mutex = Mutex::new(1);
    /// let guard = Condvar::new().wait_while(mutex.lock().unwrap(), |value| *value == 0);
    /// assert_eq!(*guard.unwrap(), 1);
    /// ```
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits, and ends the wait after a time.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the guard.
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait) does.
    ///
    /// ```
    /// use stanchion_checked::std::{Condvar, Mutex};
    /// use std::time::Duration;
    ///
    /// let (mutex, condvar) = (Mutex::new(1), Condvar::new());
    /// let (guard, _) =
    ///     condvar.wait_timeout(mutex.lock().unwrap(), Duration::from_millis(1)).unwrap();
    /// assert_eq!(*guard, 1);
    /// ```
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (held, inner) = guard.into_parts();
        let wait = || self.inner.wait_timeout(inner, timeout);
        let (held, result) = held.waiting(wait);
        map(result, |(inner, ended)| (MutexGuard::from_parts(held, inner), ended))
    }

    /// Waits as long as the condition is true, and ends the wait after a time.
    ///
    /// # Errors
    ///
    /// If a thread has panicked with the mutex held. The error has the guard.
    ///
    /// # Panics
    ///
    /// As [`wait`](Self::wait) does, and if `condition` panics.
    ///
    /// ```
    /// use stanchion_checked::std::{Condvar, Mutex};
    /// use std::time::Duration;
    ///
    /// let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    /// let timeout = Duration::from_millis(1);
    /// let (_, result) = condvar
    ///     .wait_timeout_while(mutex.lock().unwrap(), timeout, |value| *value == 0)
    ///     .unwrap();
    /// assert!(result.timed_out());
    /// ```
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        timeout: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let start = Instant::now();
        let has_ended = loop {
            if !condition(&mut guard) {
                break false;
            }
            // The time is over.
            let Some(left) = timeout.checked_sub(start.elapsed()) else { break true };
            guard = self.wait_timeout(guard, left)?.0;
        };
        // Only `std` makes a result: that of a wait of no time says whether the time is over.
        let (held, inner) = guard.into_parts();
        let wait = || self.inner.wait_timeout_while(inner, Duration::ZERO, |_| has_ended);
        let (held, result) = held.waiting(wait);
        map(result, |(inner, ended)| (MutexGuard::from_parts(held, inner), ended))
    }

    /// Wakes a thread that waits, if there is one. Never panics.
    ///
    /// ```
    /// stanchion_checked::std::Condvar::new().notify_one();
    /// ```
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// Wakes all threads that wait. Never panics.
    ///
    /// ```
    /// stanchion_checked::std::Condvar::new().notify_all();
    /// ```
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
