//! Jitter: the causes that make the times of a run differ from one access to the next, all of them
//! from the seed.
//!
//! | source | decided by | applies to |
//! | --- | --- | --- |
//! | arbitration | a random number a transaction, two an exchange | the moment it is done at |
//! | refresh | one phase for the memory | a transaction to be answered during a refresh |
//! | clock interrupts | one phase for each processor | the code there when the interrupt comes |
//!
//! Why no event for an interrupt: its phase determines when it comes. So the number that fall into
//! a stretch of computation or an access is a sum. The thread does its handler's time after the
//! stretch. A thread that spins in its own cache does nothing that an interrupt could delay, except
//! that it notices a write no earlier than the handler's end.
//!
//! # Invariants
//!
//! 1. The random numbers are a stream of their own: without jitter a run is the same as ever.
//! 2. A transaction is done no earlier than the others see it.

use crate::machine::Jitter;
use crate::memory::{Done, Kind};
use crate::random::Random;
use crate::{Machine, Time};

/// The constant that makes this stream of numbers differ from the run's.
const STREAM: u64 = 0x6a69_7474_6572;

/// Something that comes back after the same time for ever.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    /// The time of its first coming, less than a period after the beginning of the run.
    phase: u64,
    /// 0 if it never comes.
    period: u64,
    /// Its length.
    length: u64,
}

impl Periodic {
    fn new(period: Time, length: Time, random: &mut Random) -> Self {
        let (period, length) = (period.as_picos(), length.as_picos());
        let phase = if period == 0 { 0 } else { random.below(period) };
        Self { phase, period, length }
    }

    /// Returns how often it comes before `at`.
    fn count(self, at: Time) -> u64 {
        if self.period == 0 {
            return 0;
        }
        at.as_picos().saturating_sub(self.phase).div_ceil(self.period)
    }

    /// Returns `at`, or the end of the occurrence that `at` falls into.
    fn end(self, at: Time) -> Time {
        let Some(last) = self.count(at + Time::picos(1)).checked_sub(1) else { return at };
        at.max(Time::picos(self.phase + last * self.period + self.length))
    }
}

/// The jitter of a run.
#[derive(Debug)]
pub(crate) struct Jitters {
    /// The greatest delay of the arbitration, in picoseconds.
    arbitration: u64,
    /// The stream of random numbers.
    random: Random,
    /// The refresh of the memory.
    refresh: Periodic,
    /// The clock interrupts of each processor.
    ticks: Vec<Periodic>,
}

impl Jitters {
    pub(crate) fn new(machine: &Machine, seed: u64) -> Self {
        let Jitter { arbitration, refresh_period, refresh, tick_period, tick } = machine.jitter;
        let mut random = Random::new(seed ^ STREAM);
        let refresh = Periodic::new(refresh_period, refresh, &mut random);
        let ticks = (0..machine.processors)
            .map(|_| Periodic::new(tick_period, tick, &mut random))
            .collect();
        Self { arbitration: arbitration.as_picos(), random, refresh, ticks }
    }

    /// Returns when a transaction is done that takes its time without jitter.
    #[inline]
    pub(crate) fn transaction(&mut self, kind: Kind, done: &Done) -> Time {
        if done.hit {
            return done.at;
        }
        let mut at = done.at;
        if self.arbitration > 0 {
            // A word is read and written back: each way has to wait for the clocks.
            for _ in 0..if kind == Kind::Exchange { 2 } else { 1 } {
                let longer = self.random.below(2 * self.arbitration + 1);
                at = (at + Time::picos(longer)) - Time::picos(self.arbitration);
            }
        }
        // It is done after it has reached the memory, unless the processor does not wait for that.
        self.refresh.end(at.max(done.reaches.min(done.at)))
    }

    /// Returns the time at which a thread on `processor` notices a change that it can notice from
    /// `at` on.
    pub(crate) fn notices(&self, processor: usize, at: Time) -> Time {
        self.ticks[processor].end(at)
    }

    /// Returns the time of the handlers of the interrupts that come to `processor` between two
    /// moments.
    #[inline]
    pub(crate) fn handlers(&self, processor: usize, from: Time, until: Time) -> Time {
        let ticks = self.ticks[processor];
        Time::picos((ticks.count(until) - ticks.count(from)) * ticks.length)
    }
}
