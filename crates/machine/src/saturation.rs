//! Tells when heavy fences come so close to each other that fences on both sides are better, and
//! for how long.
//!
//! While the kernel makes barriers, each other running thread of the process is interrupted again
//! and again, and callers wait for each other. If it does so more than half of the time, that costs
//! more than ordinary fences in all programs but those that do little else than light fences.
//!
//! The measure is a debt, as in the ski-rental problem (Karlin, Manasse, McGeoch, Owicki, 1994, for
//! locks). The time in which the kernel makes barriers adds to it, and other time pays it back. A
//! program may have a burst of barriers, and it never loses more than [`MOST_DEBT`] before it
//! changes. Then it fences on both sides for a period. After that it tries barriers again, because
//! the burst may have been the start of the program. If the debt is high again soon, the next
//! period is twice as long. So the tries cost at most half of a hundredth of the time, where
//! barriers take all of it.
//!
//! All accesses are Relaxed, and several threads may count at once: the numbers are hints. If one
//! is lost, the change comes a barrier later.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The debt in nanoseconds above which both sides fence.
const MOST_DEBT: u64 = 250_000;
/// The most that one barrier adds. A caller may lose its processor meanwhile, for milliseconds, and
/// one such caller is no reason to change.
const MOST_OF_ONE: u64 = MOST_DEBT;
/// The shortest period of fences on both sides, in nanoseconds.
const SHORTEST: u64 = 50_000_000;
/// The longest period.
const LONGEST: u64 = 10_000_000_000;

/// The debt of a process, and its period of fences on both sides. Moments are nanoseconds of any
/// clock that does not go back.
#[derive(Debug)]
pub(crate) struct Saturation {
    /// The end of the latest barrier.
    latest: AtomicU64,
    /// The time in barriers that other time has not paid back.
    debt: AtomicU64,
    /// The length of the current period, or of the last one; 0 before the first.
    period: AtomicU64,
    /// The end of that period.
    over: AtomicU64,
}

impl Saturation {
    pub(crate) const fn new() -> Self {
        Self {
            latest: AtomicU64::new(0),
            debt: AtomicU64::new(0),
            period: AtomicU64::new(0),
            over: AtomicU64::new(0),
        }
    }

    /// Counts a barrier of the kernel. Returns whether barriers take too much of the time, so that
    /// both sides should fence.
    ///
    /// The kernel serves one call at a time. So a call that waits for another one adds only what it
    /// takes after that.
    pub(crate) fn counts(&self, began: u64, ended: u64) -> bool {
        let latest = self.latest.fetch_max(ended, Relaxed);
        let others = began.saturating_sub(latest);
        let barrier = ended.saturating_sub(began.max(latest)).min(MOST_OF_ONE);
        let debt = self.debt.load(Relaxed).saturating_sub(others) + barrier;
        self.debt.store(debt.min(2 * MOST_DEBT), Relaxed);
        debt > MOST_DEBT
    }

    /// Begins a period of fences on both sides, twice as long as the last one if that ended less
    /// than its length ago. Nothing is owed any more.
    pub(crate) fn leaves(&self, now: u64) {
        self.debt.store(0, Relaxed);
        let (last, over) = (self.period.load(Relaxed), self.over.load(Relaxed));
        let soon = now.saturating_sub(over) < last;
        let period = if soon { (2 * last).min(LONGEST) } else { SHORTEST };
        self.period.store(period, Relaxed);
        self.over.store(now.saturating_add(period), Relaxed);
    }

    /// Returns whether the period is over, so that barriers are worth another try. It is over too
    /// if the clock has gone back, as after a restore from a checkpoint.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        let over = self.over.load(Relaxed);
        now >= over || over - now > LONGEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Issues barriers of `length`, `apart` from each other, from `now` on. Returns when they are
    /// too much, or `None` if 10,000 are not.
    fn saturated(saturation: &Saturation, mut now: u64, length: u64, apart: u64) -> Option<u64> {
        for _ in 0..10_000 {
            let ended = now + length;
            if saturation.counts(now, ended) {
                saturation.leaves(ended);
                return Some(ended);
            }
            now = ended + apart;
        }
        None
    }

    /// Longer than a period.
    const BEGIN: u64 = 60_000_000_000;

    #[test]
    fn barriers_in_less_than_half_of_the_time_are_never_too_much() {
        for length in [100, 2_000, 60_000] {
            assert_eq!(saturated(&Saturation::new(), BEGIN, length, length + 1), None);
        }
    }

    #[test]
    fn barriers_all_the_time_are_too_much_after_a_quarter_of_a_millisecond() {
        for length in [100, 2_000, 60_000] {
            let at = saturated(&Saturation::new(), BEGIN, length, 0).unwrap() - BEGIN;
            assert!((250_001..=250_000 + length).contains(&at), "{length}: {at}");
        }
    }

    #[test]
    fn long_barriers_in_two_thirds_of_the_time_are_too_much() {
        assert!(saturated(&Saturation::new(), BEGIN, 200_000, 100_000).is_some());
    }

    #[test]
    fn a_caller_that_loses_its_processor_is_no_reason() {
        let saturation = Saturation::new();
        assert!(!saturation.counts(BEGIN, BEGIN + 20_000_000));
        assert!(!saturation.counts(BEGIN + 21_000_000, BEGIN + 41_000_000));
    }

    #[test]
    fn a_clock_that_goes_back_ends_the_period() {
        let saturation = Saturation::new();
        let now = saturated(&saturation, BEGIN, 2_000, 0).unwrap();
        assert!(!saturation.is_over(now));
        assert!(saturation.is_over(now + SHORTEST) && saturation.is_over(0));
    }

    #[test]
    fn calls_that_wait_for_each_other_count_once() {
        let saturation = Saturation::new();
        // Each millisecond eight threads call at once, and the kernel serves them for 40 us.
        for round in 0..1_000 {
            let began = BEGIN + round * 1_000_000;
            assert!((1..=8).all(|call| !saturation.counts(began, began + call * 5_000)));
        }
    }

    #[test]
    fn each_try_that_fails_doubles_the_period_up_to_ten_seconds() {
        let saturation = Saturation::new();
        let (mut now, mut tries) = (BEGIN, 0);
        let mut periods = Vec::new();
        while periods.last() != Some(&LONGEST) && tries < 20 {
            now = saturated(&saturation, now, 2_000, 0).unwrap();
            let over = (1..).find(|n| saturation.is_over(now + n * SHORTEST)).unwrap() * SHORTEST;
            periods.push(over);
            now += over;
            tries += 1;
        }
        let doubled: Vec<u64> = (0..8).map(|n| SHORTEST << n).chain([LONGEST]).collect();
        assert_eq!(periods, doubled);
        assert!(saturated(&saturation, now, 2_000, 0).is_some());
        assert_eq!(saturation.period.load(Relaxed), LONGEST);
    }

    #[test]
    fn after_a_long_rest_the_period_is_short_again() {
        let saturation = Saturation::new();
        let first = saturated(&saturation, BEGIN, 2_000, 0).unwrap();
        let second = saturated(&saturation, first + SHORTEST, 2_000, 0).unwrap();
        assert_eq!(saturation.period.load(Relaxed), 2 * SHORTEST);
        let _third = saturated(&saturation, second + 4 * SHORTEST + 1, 2_000, 0).unwrap();
        assert_eq!(saturation.period.load(Relaxed), SHORTEST);
    }

    #[test]
    fn a_clock_that_stands_still_or_jumps_is_no_reason_to_panic() {
        let saturation = Saturation::new();
        assert!((0..1_000).all(|_| !saturation.counts(7, 7)));
        for (began, ended) in [(u64::MAX, u64::MAX), (u64::MAX, 0), (0, u64::MAX), (5, 3)] {
            let _ = saturation.counts(began, ended);
        }
        assert!(saturation.is_over(u64::MAX));
    }
}
