//! Moments that the program names on a clock of its choice, as times from now.

use core::ffi::c_int;
use core::time::Duration;

use libc::{clockid_t, timespec};

/// A moment on one of the two clocks that a thread may wait by.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// The clock on which the moment is.
    clock: clockid_t,
    /// The moment, as the time since the clock's zero.
    at: Duration,
}

impl Moment {
    /// Returns the moment `until` on `clock`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for another clock, and for nanoseconds out of range.
    ///
    /// # Safety
    ///
    /// `until` must be readable.
    pub(super) unsafe fn new(clock: clockid_t, until: *const timespec) -> Result<Self, c_int> {
        if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
            return Err(libc::EINVAL);
        }
        // SAFETY: the caller's promise.
        let until = unsafe { *until };
        if !(0..1_000_000_000).contains(&until.tv_nsec) {
            return Err(libc::EINVAL);
        }
        Ok(Self { clock, at: duration(until) })
    }

    /// Returns the time until the moment, or `None` if it is past. The clock of the day may be set
    /// meanwhile. A thread that has waited that long therefore has to ask again.
    pub(super) fn remaining(self) -> Option<Duration> {
        let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes to `now`.
        unsafe { libc::clock_gettime(self.clock, &mut now) };
        self.at.checked_sub(duration(now)).filter(|left| !left.is_zero())
    }
}

/// Returns the time since the clock's zero. A time before zero counts as zero, and so as past.
fn duration(time: timespec) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}
