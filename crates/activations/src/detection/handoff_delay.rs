//! The hand-off delay: the time for which a worker may be blocked before its slot is taken.
//!
//! A hand-off is worth what the new worker does on the slot until the old one is back: a read of
//! 60 µs is time enough for several threads. A hand-off was in vain if the old worker is back
//! before another could have begun. Each hand-off in vain lengthens the delay, each other one
//! shortens it.
//!
//! Why the delay begins at zero: the monitor has been woken by the block, which takes as long as
//! most page faults last. A worker that passes by sees a block as soon as it has begun, and so
//! waits at least [`LEAST_NS`].
//!
//! Why not a history for each worker, as a mutex has one: which thread runs on which worker is
//! chance.
//!
//! Source: Karlin, Li, Manasse and Owicki 1991, for the worth of a wait; the doubling is ours.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

/// The least delay, in ns, for a worker that passes by: about the time that it takes to wake
/// another worker.
pub(crate) const LEAST_NS: u64 = 20_000;

/// The first step, in ns.
const STEP_NS: u64 = 5_000;

/// The longest delay, in ns: longer than page faults that read nothing.
const MOST_NS: u64 = 80_000;

/// A worker that is back within so many ns should have been left alone: no other worker can have
/// begun on its slot.
const SOON_NS: u64 = 15_000;

/// The delay, in ns. Written by workers that are back from a block. All accesses are Relaxed: a
/// number that is a little old is a little wrong.
pub(crate) struct HandoffDelay(AtomicU64);

impl HandoffDelay {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::fresh(0))
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Learns from a worker that is back so many ns after its slot was taken. Returns whether that
    /// was too soon for the hand-off to be worth its price.
    pub(crate) fn learn(&self, away_ns: u64) -> bool {
        let now = self.nanos();
        let soon = away_ns < SOON_NS;
        let next = if soon { (now * 2).clamp(STEP_NS, MOST_NS) } else { now - now.div_ceil(8) };
        self.0.store(next, Ordering::Relaxed);
        soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_grows_after_early_returns_and_shrinks_after_late_ones() {
        let delay = HandoffDelay::new();
        assert_eq!(delay.nanos(), 0);
        assert!(delay.learn(0));
        assert_eq!(delay.nanos(), STEP_NS);
        for _ in 0..10 {
            delay.learn(SOON_NS - 1);
        }
        assert_eq!(delay.nanos(), MOST_NS);
        for _ in 0..100 {
            assert!(!delay.learn(SOON_NS));
        }
        assert_eq!(delay.nanos(), 0);
    }

    #[test]
    fn one_early_return_in_eight_leaves_the_delay_short() {
        let delay = HandoffDelay::new();
        for _ in 0..100 {
            delay.learn(0);
            for _ in 0..7 {
                delay.learn(1_000_000);
            }
        }
        assert!(delay.nanos() < 2 * STEP_NS);
    }
}
