//! Takes times, and computes figures from them.

use std::time::{Duration, Instant};

/// Returns the nanoseconds that `f` takes. Each of `runs` runs takes the mean of `calls` calls in a
/// row. The result is the least mean, which is the one with the least disturbance.
pub fn least(runs: u32, calls: u32, mut f: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..runs {
        let started = Instant::now();
        for _ in 0..calls {
            f();
        }
        best = best.min(nanos(started.elapsed()) / f64::from(calls));
    }
    best
}

/// Computes Jain, Chiu and Hawe's index of fairness (1984): `(Σx)² / (n Σx²)`; 1 if all shares are
/// 0.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// Returns `duration` in nanoseconds.
pub fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// Returns the processor time that this process has used.
#[cfg(unix)]
pub fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that lives through the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    if done == 0 {
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    } else {
        Duration::ZERO
    }
}

/// Returns zero: the processor time is not read on this system.
#[cfg(not(unix))]
pub fn processor_time() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), 1.0);
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), 0.25);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
