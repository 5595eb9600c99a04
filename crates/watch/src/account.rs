//! Splits the time in which a worker was awake: on a processor, ready for one, blocked.
//!
//! The kernel counts the time on a processor at once. It counts a wait for a processor when the
//! wait ends. So a thread that is ready at a reading has a wait that is not counted yet. It is
//! *pending*: taken as a wait now, and taken off the count of the next readings.
//!
//! ```text
//! awake = running + finished waits + pending wait + blocked
//! ```
//!
//! A thread that is blocked or on a processor at a reading has no pending wait, so the rest is time
//! in which it was blocked. A thread that is ready has the rest as a pending wait. That is wrong
//! for a thread that blocked, was woken, and is ready just then. The count tells at the next
//! reading, and the difference goes to `blocked` there.

use crate::system::{Activity, Reading};

/// Parts of a time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    /// On a processor.
    pub(crate) running: u64,
    /// Ready, without a processor.
    pub(crate) ready: u64,
    /// Off its processor to wait for something.
    pub(crate) blocked: u64,
}

impl Split {
    /// Adds the parts of another time.
    pub(crate) fn add(&mut self, other: Self) {
        self.running += other.running;
        self.ready += other.ready;
        self.blocked += other.blocked;
    }

    /// Returns the whole.
    pub(crate) fn total(self) -> u64 {
        self.running + self.ready + self.blocked
    }
}

/// The account of a worker from reading to reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    /// The last reading.
    last: Reading,
    /// The time that the worker had been awake at the last reading, in nanoseconds.
    awake: u64,
    /// The wait at the last reading that the kernel had not counted, in nanoseconds.
    pending: u64,
}

impl Account {
    /// Opens an account at a reading of a worker that has been awake for `awake`.
    pub(crate) fn new(first: Reading, awake: u64) -> Self {
        Self { last: first, awake, pending: 0 }
    }

    /// Goes on to the next reading. Returns the parts of the time in which the worker was awake
    /// since the last one.
    pub(crate) fn advance(&mut self, next: Reading, awake: u64) -> Split {
        let awake_since = awake.saturating_sub(self.awake);
        // Work while it was about to park is in there too, so there may be more than was awake.
        let running = next.running.saturating_sub(self.last.running).min(awake_since);
        let counted = next.ready.saturating_sub(self.last.ready);
        let rest = awake_since - running;
        let newly_ready = counted.saturating_sub(self.pending).min(rest);
        let rest = rest - newly_ready;
        let (ready, blocked, pending) = if next.activity == Activity::Ready {
            (newly_ready + rest, 0, self.pending.saturating_sub(counted) + rest)
        } else {
            (newly_ready, rest, 0)
        };
        *self = Self { last: next, awake, pending };
        Split { running, ready, blocked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Activity::{Blocked, Ready, Running};

    fn reading(at: u64, running: u64, ready: u64, activity: Activity) -> Reading {
        Reading { at, running, ready, activity }
    }

    fn split(running: u64, ready: u64, blocked: u64) -> Split {
        Split { running, ready, blocked }
    }

    #[test]
    fn each_cause_has_its_part() {
        let mut account = Account::new(reading(0, 0, 0, Running), 0);
        assert_eq!(account.advance(reading(100, 99, 1, Running), 100), split(99, 1, 0));
        assert_eq!(account.advance(reading(200, 99, 1, Blocked), 200), split(0, 0, 100));
        assert_eq!(account.advance(reading(300, 149, 31, Running), 300), split(50, 30, 20));
    }

    #[test]
    fn a_wait_that_is_not_counted_yet_is_counted_once() {
        let mut account = Account::new(reading(0, 0, 0, Running), 0);
        assert_eq!(account.advance(reading(100, 10, 0, Ready), 100), split(10, 90, 0));
        assert_eq!(account.advance(reading(200, 10, 0, Ready), 200), split(0, 100, 0));
        // The kernel counts the 190 and 20 more. It ran for 60.
        assert_eq!(account.advance(reading(280, 70, 210, Running), 280), split(60, 20, 0));
        assert_eq!(account.pending, 0);
    }

    #[test]
    fn a_pending_wait_may_be_counted_while_the_next_one_is_pending() {
        let mut account = Account::new(reading(0, 0, 0, Running), 0);
        assert_eq!(account.advance(reading(100, 10, 0, Ready), 100), split(10, 90, 0));
        assert_eq!(account.advance(reading(200, 15, 120, Ready), 200), split(5, 95, 0));
        assert_eq!(account.advance(reading(300, 115, 185, Running), 300), split(100, 0, 0));
    }

    #[test]
    fn time_while_parked_is_no_part() {
        let mut account = Account::new(reading(0, 0, 0, Blocked), 0);
        // It was awake for 10 of 100, and ran for a moment more on its way to park.
        assert_eq!(account.advance(reading(100, 12, 5, Blocked), 10), split(10, 0, 0));
        assert_eq!(account.advance(reading(200, 12, 5, Blocked), 10), split(0, 0, 0));
    }

    #[test]
    fn the_parts_are_never_more_than_the_time_awake() {
        let mut account = Account::new(reading(0, 0, 0, Running), 0);
        for (step, activity) in [Ready, Running, Blocked, Ready, Ready, Running].iter().enumerate()
        {
            let step = step as u64 + 1;
            let next = reading(step * 100, step * 37, step * step * 20, *activity);
            let parts = account.advance(next, step * 80);
            assert_eq!(parts.total(), 80, "{parts:?}");
        }
    }
}
