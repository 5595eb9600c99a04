//! The time for which a thread waits, as the program gives it to the C library.

use core::ffi::c_int;

use libc::{clockid_t, timespec};

use super::{Cond, Mutex, real};

/// The time for which a thread waits.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// Without a limit.
    Ever,
    /// Until a time on the clock of the day.
    Time(*const timespec),
    /// Until a time on this clock.
    Clock(clockid_t, *const timespec),
}

impl Until {
    /// Locks a mutex of the C library, with this limit.
    pub(super) unsafe fn real_lock(self, mutex: Mutex) -> c_int {
        match self {
            // SAFETY: the caller's promise.
            Self::Ever => unsafe { real::mutex_lock(mutex) },
            // SAFETY: the caller's promise.
            Self::Time(until) => unsafe { real::mutex_timedlock(mutex, until) },
            // SAFETY: the caller's promise.
            Self::Clock(clock, until) => unsafe { real::mutex_clocklock(mutex, clock, until) },
        }
    }

    /// Waits for a condition variable of the C library, with this limit.
    pub(super) unsafe fn real_wait(self, cond: Cond, mutex: Mutex) -> c_int {
        match self {
            // SAFETY: the caller's promise.
            Self::Ever => unsafe { real::cond_wait(cond, mutex) },
            // SAFETY: the caller's promise.
            Self::Time(until) => unsafe { real::cond_timedwait(cond, mutex, until) },
            // SAFETY: the caller's promise.
            Self::Clock(clock, until) => unsafe { real::cond_clockwait(cond, mutex, clock, until) },
        }
    }
}
