//! A mutex and a condition variable of the C library, for statics: the shim names a lock after its
//! static.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use libc::{pthread_cond_t, pthread_mutex_t};

/// A mutex of the C library, and the value that it protects.
///
/// The mutex is the first field, so that its address is that of the static.
#[repr(C)]
pub(super) struct Mutex<T> {
    /// The C library's part. Only its functions write to it.
    raw: UnsafeCell<pthread_mutex_t>,
    /// The value. The thread that holds the mutex reads and writes it.
    value: UnsafeCell<T>,
}

// SAFETY: a thread has access to the value only while it holds the mutex.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    pub(super) const fn new(value: T) -> Self {
        Self {
            raw: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            value: UnsafeCell::new(value),
        }
    }

    pub(super) fn lock(&'static self) -> Guard<T> {
        // SAFETY: an initialized mutex, which does not move, since it is a static.
        let result = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        assert_eq!(result, 0, "pthread_mutex_lock");
        Guard { mutex: self, stays: PhantomData }
    }
}

/// The right to the value, until it is dropped.
pub(super) struct Guard<T: 'static> {
    /// The mutex, which this thread holds.
    mutex: &'static Mutex<T>,
    /// Makes the guard stay in its thread, which is the one that may unlock.
    stays: PhantomData<*mut T>,
}

impl<T: 'static> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread holds the mutex.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: 'static> DerefMut for Guard<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread holds the mutex, and has one guard of it.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: 'static> Drop for Guard<T> {
    fn drop(&mut self) {
        // SAFETY: this thread holds the mutex.
        unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
    }
}

/// A condition variable of the C library.
pub(super) struct Condition(UnsafeCell<pthread_cond_t>);

// SAFETY: several threads may use a condition variable.
unsafe impl Sync for Condition {}

impl Condition {
    pub(super) const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }

    /// Lets other threads have the mutex until one of them calls [`Self::wake_all`], or for no
    /// reason.
    pub(super) fn wait<T>(&'static self, guard: &mut Guard<T>) {
        // SAFETY: both are initialized, and this thread holds the mutex.
        let result = unsafe { libc::pthread_cond_wait(self.0.get(), guard.mutex.raw.get()) };
        assert_eq!(result, 0, "pthread_cond_wait");
    }

    pub(super) fn wake_all(&'static self) {
        // SAFETY: an initialized condition variable.
        unsafe { libc::pthread_cond_broadcast(self.0.get()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_turns_and_are_woken() {
        static COUNT: Mutex<u32> = Mutex::new(0);
        static CHANGED: Condition = Condition::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        *COUNT.lock() += 1;
                    }
                    CHANGED.wake_all();
                });
            }
            let mut count = COUNT.lock();
            while *count < 3_000 {
                CHANGED.wait(&mut count);
            }
        });
    }
}
