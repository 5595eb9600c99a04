//! The lock for very short sections: whoever comes by while it is free has it, and whoever finds it held stays away for long.
//!
//! Why not a fair lock, or one whose waiters watch it: an operation on a queue or a stack takes a few nanoseconds, and the lines that it touches a
//! hundred or more to come from another processor. So the lock should change hands rarely: the thread that has the lines should do as much as it wants to,
//! and the others should neither take the lock's line away to look at it nor be served in turn.
//!
//! | a waiter has looked | it stays away for |
//! | --- | --- |
//! | once | 1 µs: some 100 operations of the one that has the lines |
//! | again, and again | twice as long, up to 32 µs |
//! | six times in vain | as [`Patient`] does: yields, then sleeps. The holder has lost its processor, or the section is not short |
//!
//! The 1 µs was measured, against 0.5, 2 and 4 µs: with 0.5 two threads without other work take 18 ns a pair of operations instead of 16, with 4 µs two
//! threads that meet only now and then take 11 % longer (`cargo bench -p benches --bench lockfree -- "bounded queues"`).
//!
//! Source: barging is the usual word; that waiters should stay away for several sections is Anderson 1990's backoff with another first step.

use machine::wait::{Patient, WaitPolicy, delay};
use stanchion_spin::TestAndSet;
use stanchion_spin::contention::Read;

/// A test-and-set lock that favours the thread which had it last: the default of [`LockedRing`](crate::queue::LockedRing).
///
/// | | |
/// | --- | --- |
/// | uncontended | one locked instruction to lock, a plain store to unlock |
/// | order | none, and no bound on how long a waiter may be passed over: milliseconds were seen where all threads do nothing else |
/// | a holder that has lost its processor | costs its waiters 64 µs of pausing, then they yield and sleep |
/// | size | 1 byte |
///
/// ```
/// use stanchion_lockfree::{barging::Barging, lock_api::Mutex};
///
/// let total: Mutex<Barging, u32> = Mutex::new(1);
/// *total.lock() += 1;
/// assert_eq!(total.into_inner(), 2);
/// ```
pub type Barging = TestAndSet<Read, Aloof>;

/// The first pause and the one after the last, in nanoseconds.
const PAUSES_NS: (u64, u64) = (1_000, 64_000);

/// How a waiter of [`Barging`] passes the time: away from the lock.
#[derive(Debug)]
pub struct Aloof {
    /// The next pause, until it is the last.
    next_ns: u64,
    afterwards: Patient<0>,
}

impl WaitPolicy for Aloof {
    #[inline]
    fn start() -> Self {
        Self { next_ns: PAUSES_NS.0, afterwards: Patient::start() }
    }

    fn pause(&mut self) {
        if self.leaves() {
            return self.afterwards.pause();
        }
        delay(self.next_ns);
        self.next_ns *= 2;
    }

    fn leaves(&self) -> bool {
        self.next_ns >= PAUSES_NS.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 4, 8, 16, 32 µs.
    #[test]
    fn six_pauses_then_the_processor_is_given_away() {
        let mut policy = Aloof::start();
        for _ in 0..6 {
            assert!(!policy.leaves());
            policy.pause();
        }
        assert!(policy.leaves());
        policy.pause();
    }
}
