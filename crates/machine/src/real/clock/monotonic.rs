//! The monotonic clock as a count of nanoseconds: the one that the kernel sleeps by.

use super::once::Once;
use core::time::Duration;
use std::time::Instant;

/// Nanoseconds on the monotonic clock.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
pub(crate) fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable and of the type asked for. The call cannot fail: every kernel has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since this process first asked.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
pub(crate) fn monotonic() -> u64 {
    nanos(Instant::now().saturating_duration_since(anchor().0))
}

/// The moment it is now.
#[inline]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The moment on [`monotonic`] of an instant; never before it, at most a few hundred nanoseconds after. The start of the clock for one
/// that lies before it, `u64::MAX` for one beyond its end.
pub(crate) fn monotonic_at(instant: Instant) -> u64 {
    let (then, nanos_then) = *anchor();
    match instant.checked_duration_since(then) {
        Some(later) => nanos_then.saturating_add(nanos(later)),
        None => nanos_then.saturating_sub(nanos(then.saturating_duration_since(instant))),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// One moment on both scales, the second not before the first.
fn anchor() -> &'static (Instant, u64) {
    static ANCHOR: Once<(Instant, u64)> = Once::new();
    ANCHOR.get_or_make(|| {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        {
            // Both read the same clock, so the pair read with the least between is right to within a call.
            (0..8)
                .map(|_| {
                    let before = monotonic();
                    let instant = Instant::now();
                    (instant, monotonic(), before)
                })
                .min_by_key(|(_, after, before)| after - before)
                .map_or_else(
                    || (Instant::now(), monotonic()),
                    |(instant, after, _)| (instant, after),
                )
        }
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        {
            (Instant::now(), 0)
        }
    })
}
