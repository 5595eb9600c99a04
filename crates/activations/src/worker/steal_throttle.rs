//! The steal throttle: it decides whether a worker may steal ready threads that lie on another
//! slot.
//!
//! A steal interrupts the processor of its victim, and costs both some microseconds: dozens of
//! threads that do next to nothing. The victim goes through them faster than others can come for
//! them. So a worker measures the price of a steal, and the time for which it can live on its
//! booty. A steal pays if that time is [`WORTH`] times as long. The rest of the time is a credit
//! for steals that do not pay: the last ones of a burst bring little. When the credit is used up,
//! the worker leaves the others alone for a while, and each time for twice as long until a steal
//! pays again.
//!
//! ```text
//! steal ─► runs the booty ─► has nothing ─┬─ credit ──► next steal at once
//!                                         └─ no credit ► leaves the others alone:
//!                                                        50 µs, 100 µs, … 800 µs
//! ```
//!
//! Why not an estimate of how long threads run: that is not known beforehand, and to measure it
//! costs each thread as much as a steal costs the thief alone. Why no worker need be woken for
//! threads that a throttled one leaves alone: it comes back by itself (`processors/parking.rs`).
//!
//! # Invariants
//!
//! 1. Between two pauses there is a steal, or a look that found nothing to steal. So ready threads
//!    are left alone for [`MOST_NS`] at most.
//!
//! Source: as for the [hand-off delay](crate::detection::handoff_delay), an attempt that may be
//! repeated as soon as the last one has paid for itself; the doubling is ours.

use core::cell::Cell;

use stanchion_machine::clock::{self, Deadline, Ticks};

/// A steal pays if its booty lasts so many times as long as it took: it costs its victim as much,
/// and threads run slower where they were not made.
const WORTH: u64 = 3;

/// The most credit, in ns.
const MOST_CREDIT: u64 = 40_000;

/// An attempt in vain that took longer than this interrupted a victim, in ns.
const FREE_NS: u64 = 1_000;

/// The first pause, in ns.
const LEAST_NS: u64 = 50_000;

/// The longest pause, in ns.
const MOST_NS: u64 = 800_000;

/// The account of one worker.
#[derive(Debug)]
pub(super) struct StealThrottle {
    /// The time of the last steal and its price in ns, until its booty is used up.
    last_steal: Cell<Option<(Ticks, u64)>>,
    /// The time that steals have brought beyond their price, in ns.
    credit: Cell<u64>,
    /// The worker leaves the others alone until then.
    until: Cell<Ticks>,
    /// The length of the last pause, in ns; 0 if the last steal has paid.
    last_pause: Cell<u64>,
}

impl StealThrottle {
    pub(super) fn new() -> Self {
        Self {
            last_steal: Cell::new(None),
            credit: Cell::new(0),
            until: Cell::new(Ticks::from_bits(0)),
            last_pause: Cell::new(0),
        }
    }

    /// Returns whether the worker, which has no threads of its own any more, may steal.
    pub(super) fn may_steal(&self, now: Ticks) -> bool {
        // The booty of the last steal is used up.
        if let Some((since, cost)) = self.last_steal.take() {
            let (lasted, price) = (now.nanos_since(since), WORTH * cost);
            if lasted >= price {
                self.last_pause.set(0);
            }
            self.settle(lasted, price, now);
        }
        now >= self.until.get()
    }

    /// Counts an attempt that began at `started`.
    pub(super) fn count_steal(&self, started: Ticks, found: bool) {
        let now = clock::now();
        let cost = now.nanos_since(started);
        if found {
            self.last_steal.set(Some((now, cost)));
        } else if cost > FREE_NS {
            self.settle(0, WORTH * cost, now);
        }
    }

    fn settle(&self, lasted: u64, price: u64, now: Ticks) {
        let left = (self.credit.get() + lasted).checked_sub(price);
        self.credit.set(left.unwrap_or(0).min(MOST_CREDIT));
        // It has paid, or the credit has.
        if left.is_some() {
            return;
        }
        let pause = (self.last_pause.get() * 2).clamp(LEAST_NS, MOST_NS);
        self.last_pause.set(pause);
        self.until.set(now.plus_nanos(pause));
    }

    /// Returns the time until which the worker leaves the others alone, if it does.
    pub(super) fn pause(&self) -> Option<Deadline> {
        let nanos = self.until.get().nanos_since(clock::now());
        (nanos > 0).then(|| Deadline::after(core::time::Duration::from_nanos(nanos)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a steal that takes 2 µs, with booty for so long. Returns whether the next may
    /// follow at once, and the time at which the booty is used up.
    fn steal(throttle: &StealThrottle, lasts: u64) -> (bool, Ticks) {
        let taken = clock::now();
        throttle.last_steal.set(Some((taken, 2_000)));
        let dry = taken.plus_nanos(lasts);
        (throttle.may_steal(dry), dry)
    }

    #[test]
    fn pauses_double_while_steals_do_not_pay() {
        let throttle = StealThrottle::new();
        for pause in [50_000, 100_000, 200_000, 400_000, 800_000, 800_000] {
            let (may, dry) = steal(&throttle, 1_000);
            assert!(!may);
            assert!(throttle.until.get().nanos_since(dry) > 0);
            assert!(!throttle.may_steal(dry.plus_nanos(pause - 1_000)));
            assert!(throttle.may_steal(dry.plus_nanos(pause + 1_000)));
        }
    }

    #[test]
    fn steal_that_pays_resets_the_pause() {
        let throttle = StealThrottle::new();
        for _ in 0..5 {
            assert!(!steal(&throttle, 1_000).0);
        }
        throttle.until.set(Ticks::from_bits(0));
        assert!(steal(&throttle, 2_000 * WORTH + 1_000).0);
        let (may, dry) = steal(&throttle, 1_000);
        assert!(!may && throttle.may_steal(dry.plus_nanos(LEAST_NS + 1_000)));
    }

    #[test]
    fn credit_pays_for_some_steals() {
        let throttle = StealThrottle::new();
        assert!(steal(&throttle, 10_000_000).0);
        let mut paid = 0;
        while steal(&throttle, 1_000).0 {
            paid += 1;
        }
        let loss = 2_000 * WORTH - 1_000;
        assert_eq!(paid, MOST_CREDIT / loss);
    }
}
