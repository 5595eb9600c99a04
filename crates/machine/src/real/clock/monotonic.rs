//! The monotonic clock as a count of nanoseconds: the one that the kernel sleeps by.

use core::time::Duration;
use std::time::Instant;

pub(crate) use system::{monotonic, monotonic_at};

/// Returns the moment it is now.
#[inline]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The clock that [`Instant`] reads, asked for its number.
#[cfg(unix)]
mod system {
    use super::super::once::Once;
    use super::nanos;
    use std::time::Instant;

    #[cfg(target_vendor = "apple")]
    const CLOCK: libc::clockid_t = libc::CLOCK_UPTIME_RAW;
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

    /// Returns the nanoseconds on the monotonic clock.
    #[inline]
    pub(crate) fn monotonic() -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is writable and of the type asked for. The call cannot fail: every such
        // system has this clock.
        unsafe { libc::clock_gettime(CLOCK, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Returns the moment on [`monotonic`] of an instant; never before it, at most a few hundred
    /// nanoseconds after. Returns the start of the clock for an instant that lies before it,
    /// `u64::MAX` for one beyond its end.
    pub(crate) fn monotonic_at(instant: Instant) -> u64 {
        let (then, nanos_then) = anchor();
        match instant.checked_duration_since(then) {
            Some(later) => nanos_then.saturating_add(nanos(later)),
            None => nanos_then.saturating_sub(nanos(then.saturating_duration_since(instant))),
        }
    }

    /// Returns one moment on both scales, the second not before the first.
    fn anchor() -> (Instant, u64) {
        static ANCHOR: Once<(Instant, u64)> = Once::new();
        ANCHOR.get_or_make(|| {
            // Both read the same clock, so the pair read with the least between is right to within
            // a call.
            let pair = || {
                let before = monotonic();
                let instant = Instant::now();
                let after = monotonic();
                (instant, after, after.saturating_sub(before))
            };
            let mut best = pair();
            for _ in 0..7 {
                let next = pair();
                if next.2 < best.2 {
                    best = next;
                }
            }
            (best.0, best.1)
        })
    }
}

/// Systems that have no fork, so that a lock may be waited for.
#[cfg(not(unix))]
mod system {
    use super::nanos;
    use std::sync::OnceLock;
    use std::time::Instant;

    /// Returns the nanoseconds since this process first asked.
    #[inline]
    pub(crate) fn monotonic() -> u64 {
        nanos(Instant::now().saturating_duration_since(anchor()))
    }

    /// Returns the moment on [`monotonic`] of an instant; 0 for one before its start, `u64::MAX`
    /// for one beyond its end.
    pub(crate) fn monotonic_at(instant: Instant) -> u64 {
        nanos(instant.saturating_duration_since(anchor()))
    }

    fn anchor() -> Instant {
        static ANCHOR: OnceLock<Instant> = OnceLock::new();
        *ANCHOR.get_or_init(Instant::now)
    }
}
