//! Work that lasts a given time and touches no memory.
//!
//! The work is a chain of multiplications, each of which needs the one before. No processor
//! overlaps them, no compiler sums them up, and no cache has a part in it. The pace is measured
//! once, before anything else runs. Why not wait until the clock has moved on: a thread that is
//! preempted would find its work done when it comes back, and several cells test preemption.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The speed of [`work`] on this processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Multiplications of the chain in a nanosecond.
    steps_a_nano: f64,
}

/// Work in steps of [`work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    /// Steps under the lock.
    pub(crate) inside: u32,
    /// Steps between an unlock and the next lock.
    pub(crate) outside: u32,
}

impl Pace {
    /// Measures the pace by the fastest of 50 runs, which was disturbed least. Takes about 20 ms.
    pub(crate) fn measure() -> Self {
        const STEPS: u32 = 200_000;
        let run = |_| {
            let started = Instant::now();
            work(STEPS);
            started.elapsed()
        };
        let least = (0..50).map(run).min().unwrap_or_default().max(Duration::from_nanos(1));
        Self { steps_a_nano: f64::from(STEPS) / least.as_nanos() as f64 }
    }

    /// Returns the number of steps of [`work`] that take `nanos` nanoseconds.
    pub(crate) fn steps(self, nanos: u64) -> u32 {
        // A float becomes an integer by saturation.
        (nanos as f64 * self.steps_a_nano).round() as u32
    }
}

/// Works for `steps` steps, about a nanosecond each.
#[inline]
pub(crate) fn work(steps: u32) {
    if steps > 0 {
        let_all_before_end();
        chain(steps);
    }
}

/// Keeps the processor from starting on the work while it still waits for the lock. The processor
/// looks some hundred instructions ahead. Without this fence it would hold the lock for only half
/// of a section of 100 ns. Takes some nanoseconds.
#[cfg(target_arch = "x86_64")]
#[inline]
fn let_all_before_end() {
    // SAFETY: every x86-64 processor has SSE2, which the instruction is part of.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// Does nothing: other processors have no instruction for it that can be had without assembly.
/// There short work is overlapped.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn let_all_before_end() {}

/// Multiplies `steps` times. It is one function for all callers, never inlined. Where `steps` is a
/// constant, an inlined copy would be another loop, with another pace.
#[inline(never)]
fn chain(steps: u32) {
    let mut value = black_box(steps);
    for _ in 0..steps {
        // The shift keeps several steps from being one multiplication by a power.
        value = (value ^ (value >> 15)).wrapping_mul(0x9e37_79b1);
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_lasts_as_long_as_asked() {
        let pace = Pace::measure();
        assert_eq!(pace.steps(0), 0);
        let steps = pace.steps(1_000_000);
        let run = |_| {
            let started = Instant::now();
            work(steps);
            started.elapsed()
        };
        let least = (0..20).map(run).min().unwrap_or_default();
        // Whatever else runs here makes either measurement longer, the least of many hardly.
        assert!((500..3_000).contains(&least.as_micros()), "1 ms of work took {least:?}");
    }
}
