//! How long a worker may be blocked before its slot is taken.
//!
//! What a hand-over is worth does not depend on how soon the worker is back, but on what the one that got its slot did until then: a read of 60 µs is time enough for
//! several threads. A hand-over was for nothing if the worker is back before another could have begun. Each of these makes
//! the runtime more patient, each other one less.
//!
//! Why it begins with none: the monitor has been woken by the block, which takes as long as most page faults last. A worker that passes by, and sees
//! a block as soon as it has begun, waits [`LEAST_NS`].
//!
//! Why not a history for each worker, as a mutex has one: which thread runs on which worker is chance.
//!
//! Source: Karlin, Li, Manasse and Owicki 1991, for what a wait is worth; the doubling is ours.

use machine::atomic::{AtomicU64, Fresh, Ordering};

/// For who passes by, in ns: about what it takes to wake another worker.
pub(crate) const LEAST_NS: u64 = 20_000;

/// The first step, in ns.
const STEP_NS: u64 = 5_000;

/// At most, in ns: longer than page faults that read nothing.
const MOST_NS: u64 = 80_000;

/// A worker that is back so soon after its slot was taken should have been left alone: nobody can have begun there.
const SOON_NS: u64 = 15_000;

/// How long to wait. All Relaxed: a number that is a little old is a little wrong.
pub(crate) struct HandoffDelay(AtomicU64);

impl HandoffDelay {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::fresh(0))
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A worker has come back so long after its slot was taken; whether that was too soon for it to have been worth while.
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
    fn it_grows_with_those_that_are_back_soon_and_shrinks_with_those_that_are_not() {
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
    fn one_that_is_back_soon_in_eight_does_not_make_it_wait_for_ever() {
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
