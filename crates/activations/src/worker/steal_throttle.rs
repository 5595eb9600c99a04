//! Whether it pays to take ready threads that lie at another slot.
//!
//! A theft interrupts the processor of whoever it takes from, and costs both some microseconds: dozens of threads that do next to nothing. Their own
//! worker goes through them faster than others can come for them. So a worker notes what a theft cost, and how long it could live on what it took.
//! A theft pays if that was [`WORTH`] times as long. What it brings beyond is a credit for those that do not pay: the last ones of a burst bring little.
//! When the credit is used up, the worker leaves the others alone for a while, and each time for twice as long until a theft pays again.
//!
//! ```text
//! theft ─► runs what it took ─► has nothing ─┬─ credit ─► next theft at once
//!                                            └─ none ─► leaves the others alone: 50 µs, 100 µs, … 800 µs
//! ```
//!
//! Why not a guess at how long threads run: nobody knows that beforehand, and to measure it costs each of them what one of a theft costs the thief only.
//! Why nobody need be woken for what a worker leaves alone: it comes back by itself (`parked.rs`).
//!
//! # Invariants
//!
//! 1. Between two pauses there is a theft, or a look that found nothing to take: what is ready is left alone for [`MOST_NS`] at most.
//!
//! Source: as for [delay](crate::delay), an attempt that may be repeated as soon as the last one has paid for itself; the doubling is ours.

use core::cell::Cell;

use machine::clock::{self, Deadline, Ticks};

/// A theft pays if what it brought lasts so many times as long as it took: it costs its victim as much, and threads run slower where they were not made.
const WORTH: u64 = 3;

/// The most that thefts may have brought beyond their price, in ns.
const MOST_CREDIT: u64 = 40_000;

/// An attempt that brought nothing, and took longer than this, interrupted somebody for nothing.
const FREE_NS: u64 = 1_000;

/// How long the others are left alone, at first and at most.
const LEAST_NS: u64 = 50_000;
const MOST_NS: u64 = 800_000;

/// One worker's account.
#[derive(Debug)]
pub(crate) struct StealThrottle {
    /// When it last took something, and how many nanoseconds that took, until what it brought is used up.
    taken: Cell<Option<(Ticks, u64)>>,
    /// What thefts have brought beyond their price, in ns.
    credit: Cell<u64>,
    /// It leaves the others alone until then.
    until: Cell<Ticks>,
    /// For how long it did that last, in ns; 0 if the last theft has paid.
    pause: Cell<u64>,
}

impl StealThrottle {
    pub(crate) fn new() -> Self {
        Self {
            taken: Cell::new(None),
            credit: Cell::new(0),
            until: Cell::new(Ticks::from_bits(0)),
            pause: Cell::new(0),
        }
    }

    /// The worker has nothing of its own any more: whether it may take what is another's.
    pub(crate) fn may_take(&self, now: Ticks) -> bool {
        if let Some((since, cost)) = self.taken.take() {
            let (lasted, price) = (now.nanos_since(since), WORTH * cost);
            if lasted >= price {
                self.pause.set(0);
            }
            self.settle(lasted, price, now);
        }
        now >= self.until.get()
    }

    /// It has tried, from then on; whether there was something.
    pub(crate) fn has_tried(&self, started: Ticks, found: bool) {
        let now = clock::now();
        let cost = now.nanos_since(started);
        if found {
            self.taken.set(Some((now, cost)));
        } else if cost > FREE_NS {
            self.settle(0, WORTH * cost, now);
        }
    }

    fn settle(&self, lasted: u64, price: u64, now: Ticks) {
        let left = (self.credit.get() + lasted).checked_sub(price);
        self.credit.set(left.unwrap_or(0).min(MOST_CREDIT));
        if left.is_some() {
            return;
        }
        let pause = (self.pause.get() * 2).clamp(LEAST_NS, MOST_NS);
        self.pause.set(pause);
        self.until.set(now.plus_nanos(pause));
    }

    /// Until when it leaves the others alone, if it does.
    pub(crate) fn pause(&self) -> Option<Deadline> {
        let nanos = self.until.get().nanos_since(clock::now());
        (nanos > 0).then(|| Deadline::after(core::time::Duration::from_nanos(nanos)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A theft that takes 2 µs from then on, and lasts for so long; whether the next may follow at once, and when it may.
    fn steal(steal_throttle: &StealThrottle, lasts: u64) -> (bool, Ticks) {
        let taken = clock::now();
        steal_throttle.taken.set(Some((taken, 2_000)));
        let dry = taken.plus_nanos(lasts);
        (steal_throttle.may_take(dry), dry)
    }

    #[test]
    fn thefts_that_do_not_pay_are_further_and_further_apart() {
        let steal_throttle = StealThrottle::new();
        for pause in [50_000, 100_000, 200_000, 400_000, 800_000, 800_000] {
            let (may, dry) = steal(&steal_throttle, 1_000);
            assert!(!may);
            assert!(steal_throttle.until.get().nanos_since(dry) > 0);
            assert!(!steal_throttle.may_take(dry.plus_nanos(pause - 1_000)));
            assert!(steal_throttle.may_take(dry.plus_nanos(pause + 1_000)));
        }
    }

    #[test]
    fn one_that_pays_makes_up_for_all_others() {
        let steal_throttle = StealThrottle::new();
        for _ in 0..5 {
            assert!(!steal(&steal_throttle, 1_000).0);
        }
        steal_throttle.until.set(Ticks::from_bits(0));
        assert!(steal(&steal_throttle, 2_000 * WORTH + 1_000).0);
        let (may, dry) = steal(&steal_throttle, 1_000);
        assert!(!may && steal_throttle.may_take(dry.plus_nanos(LEAST_NS + 1_000)));
    }

    #[test]
    fn one_that_brings_much_pays_for_some_that_do_not() {
        let steal_throttle = StealThrottle::new();
        assert!(steal(&steal_throttle, 10_000_000).0);
        let mut paid = 0;
        while steal(&steal_throttle, 1_000).0 {
            paid += 1;
        }
        let loss = 2_000 * WORTH - 1_000;
        assert_eq!(paid, MOST_CREDIT / loss);
    }
}
