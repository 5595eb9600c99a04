//! A lock for very short sections. A thread that comes while it is free takes it. A thread that
//! finds it held stays away for long.
//!
//! Why not a fair lock, or one that its waiters watch: an operation on a queue or a stack takes a
//! few nanoseconds, and the lines that it touches take a hundred or more to come from another
//! processor. So the lock should change hands rarely. The thread that has the lines should do as
//! much as it wants to. The others should neither fetch the lock's line to look at it, nor get the
//! lock in turn.
//!
//! | a waiter has looked | it stays away for |
//! | --- | --- |
//! | once | 0.5 µs: two threads that met by chance do not meet again |
//! | twice | 2 µs: the other one is doing nothing else, and gets some 200 operations done |
//! | again, and again | 8, 16, 32 µs |
//! | six times in vain | as [`Patient`] does: yields, then sleeps |
//!
//! After six looks the holder has lost its processor, or the section is not short.
//!
//! The pauses were measured (`cargo contest structures --only "bounded queues"`). Pauses
//! that double from 0.5 µs on cost two threads without other work 18 ns a pair of operations
//! instead of 13. A first pause of 4 µs costs two threads that meet only now and then 11 %.
//!
//! Source: barging is the usual word. That waiters should stay away for several sections is
//! Anderson 1990's backoff with another first step.

use stanchion_machine::wait::{Patient, WaitPolicy, delay};
use stanchion_spin::TestAndSet;
use stanchion_spin::contention::Read;

/// A test-and-set lock that favours the thread which had it last. The default of
/// [`LockedRing`](crate::queue::LockedRing).
///
/// | | |
/// | --- | --- |
/// | uncontended | one locked instruction to lock, a plain store to unlock |
/// | order | none, and no bound on how long a waiter may be passed over: milliseconds were seen |
/// | a holder without a processor | its waiters pause for 60 µs, then they yield and sleep |
/// | size | 1 byte |
///
/// ```
/// use stanchion_lockfree::{barging::Barging, lock_api::Mutex};
///
/// let total: Mutex<Barging, u32> = Mutex::new(1);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 2);
/// ```
pub type Barging = TestAndSet<Read, BargingBackoff>;

/// The pauses of a waiter, in nanoseconds.
const PAUSES_NS: [u64; 5] = [500, 2_000, 8_000, 16_000, 32_000];

/// The wait policy of [`Barging`]: a waiter stays away from the lock.
#[derive(Debug)]
pub struct BargingBackoff {
    /// The pauses that are left, in nanoseconds.
    pauses: core::slice::Iter<'static, u64>,
    /// The policy when none is left.
    afterwards: Patient<0>,
}

impl WaitPolicy for BargingBackoff {
    #[inline]
    fn start() -> Self {
        Self { pauses: PAUSES_NS.iter(), afterwards: Patient::start() }
    }

    fn pause(&mut self) {
        match self.pauses.next() {
            Some(nanos) => delay(*nanos),
            None => self.afterwards.pause(),
        }
    }

    fn leaves(&self) -> bool {
        self.pauses.as_slice().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_pauses_then_the_processor_is_given_away() {
        let mut policy = BargingBackoff::start();
        for _ in 0..PAUSES_NS.len() {
            assert!(!policy.leaves());
            policy.pause();
        }
        assert!(policy.leaves());
        policy.pause();
    }
}
