//! How long a carrier may be blocked before its seat is taken.
//!
//! As long as a hand-over would cost, by the argument for spinning before one sleeps: then at most twice is paid of what who knows the future would
//! pay. What it costs is [`LEAST_NS`] on a machine with a processor to spare, and more where it wakes threads for nothing. So it learns: each carrier that is
//! back soon after it was taken makes the runtime more patient, each that stays away less.
//!
//! Why not a history for each carrier, as a mutex has one: which thread runs on which carrier is chance.
//!
//! Source: Karlin, Li, Manasse and Owicki 1991, for what a wait is worth; the doubling is ours.

use machine::atomic::{AtomicU64, Fresh, Ordering};

/// At least, in ns: about what it takes to wake another carrier.
pub(crate) const LEAST_NS: u64 = 20_000;

/// At most, in ns: a disk that turns is slower by far.
const MOST_NS: u64 = 320_000;

/// A carrier that is back so soon after its seat was taken should have been left alone.
const SOON_NS: u64 = 50_000;

/// How long to wait. All Relaxed: a number that is a little old is a little wrong.
pub(crate) struct Patience(AtomicU64);

impl Patience {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::fresh(LEAST_NS))
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A carrier has come back so long after its seat was taken; whether that was too soon for it to have been worth while.
    pub(crate) fn learn(&self, away_ns: u64) -> bool {
        let now = self.nanos();
        let soon = away_ns < SOON_NS;
        let next = if soon { now * 2 } else { now - now / 8 };
        self.0.store(next.clamp(LEAST_NS, MOST_NS), Ordering::Relaxed);
        soon
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_those_that_are_back_soon_and_shrinks_with_those_that_are_not() {
        let patience = Patience::new();
        assert!(patience.learn(0));
        assert_eq!(patience.nanos(), 2 * LEAST_NS);
        for _ in 0..10 {
            patience.learn(SOON_NS - 1);
        }
        assert_eq!(patience.nanos(), MOST_NS);
        for _ in 0..100 {
            assert!(!patience.learn(SOON_NS));
        }
        assert_eq!(patience.nanos(), LEAST_NS);
    }

    #[test]
    fn one_that_is_back_soon_in_eight_does_not_make_it_wait_for_ever() {
        let patience = Patience::new();
        for _ in 0..100 {
            patience.learn(0);
            for _ in 0..7 {
                patience.learn(1_000_000);
            }
        }
        assert_eq!(patience.nanos(), LEAST_NS);
    }
}
