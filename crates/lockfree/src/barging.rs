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
//! | once | 5 transfers of a line: two threads that met by chance do not meet again |
//! | twice | 20: the other one is doing nothing else, and gets some 200 operations done |
//! | again, and again | 80 transfers, then as long as 100 and 200 calls to the kernel take |
//! | six times in vain | yields, 16 times, then sleeps as [`Patient`] does |
//!
//! Each pause lasts for up to half as long again, at random.
//!
//! After six looks the holder has lost its processor, the section is not short, or many threads
//! wait. A yield that let none run tells that no thread wants this processor. Then the waiter
//! stays away once more, as long as 200 calls take. Else 60 waiters would look after each yield,
//! and keep the line from the holder.
//!
//! # At an end of a queue
//!
//! All threads that want the lock of an end do the same: they push, or they pop. So it does not
//! matter which of them works. A waiter at an end ([`BargingAtEnd`]) yields before each pause but
//! the first two. If another thread ran, it looks again instead of pausing. If the yield took half
//! a time slice, threads want this processor, and the holder may be one of them: the waiter sleeps.
//! So fewer threads take lines from the holder, and time from it and from other programs. Under one
//! lock for all, producers that do nothing else would keep out a consumer that looks so seldom.
//!
//! # The pauses
//!
//! The pauses were measured (`cargo contest structures --only "bounded queues"`) where a
//! [transfer](stanchion_machine::wait::transfers) took some 100 ns. Pauses that double from the
//! first on cost two threads without other work 18 ns a pair of operations instead of 13. A first
//! pause eight times as long costs two threads that meet only now and then 11 %.
//!
//! Source: barging is the usual word. That waiters should stay away for several sections is
//! Anderson 1990's backoff with another first step.

use stanchion_machine::wait::{Patient, WaitPolicy, calls, delay, transfers, yield_to_another};
use stanchion_machine::{clock, topology};
use stanchion_spin::contention::Read;
use stanchion_spin::{Backoff, TestAndSet};

/// A test-and-set lock that favours the thread which had it last.
///
/// | | |
/// | --- | --- |
/// | uncontended | one locked instruction to lock, a plain store to unlock |
/// | order | none, and no bound on how long a waiter may be passed over: milliseconds were seen |
/// | a holder without a processor | its waiters pause, yield, and at last sleep |
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

/// [`Barging`] for threads that all do the same, so that it does not matter which of them works: a
/// waiter gives its processor away sooner. The default of [`LockedRing`](crate::queue::LockedRing)
/// and [`SegmentedQueue`](crate::queue::SegmentedQueue).
///
/// ```
/// use stanchion_lockfree::barging::BargingAtEnd;
/// use stanchion_lockfree::queue::SegmentedQueue;
///
/// let queue: SegmentedQueue<u32, BargingAtEnd> = SegmentedQueue::new();
/// assert_eq!(queue.pop(), None);
/// ```
pub type BargingAtEnd = TestAndSet<Read, BargingBackoff<true>>;

/// The pauses of a waiter.
const PAUSES: [Pause; 5] = [
    Pause::Transfers(5),
    Pause::Transfers(20),
    Pause::Transfers(80),
    Pause::Calls(100),
    Pause::Calls(200),
];

/// A pause of a waiter.
#[derive(Debug)]
enum Pause {
    /// As long as so many transfers of a line: the others are to get work done.
    Transfers(u64),
    /// As long as so many calls to the kernel: the waiter puts off yielding, which costs as much.
    Calls(u64),
}

impl Pause {
    /// Lets the pause pass, and up to half of its time more. Waiters that came together would else
    /// look together, and leave the lock idle together.
    fn pass(&self) {
        let nanos = match *self {
            Self::Transfers(count) => transfers(count),
            Self::Calls(count) => calls(count),
        };
        let more = nanos / 2;
        delay(nanos + Backoff::new().with_slot(more).with_cap(more).next_delay());
    }
}

/// The wait policy of [`Barging`]: a waiter stays away from the lock. `AT_END` is true for
/// [`BargingAtEnd`].
#[derive(Debug)]
pub struct BargingBackoff<const AT_END: bool = false> {
    /// The pauses that are left.
    pauses: core::slice::Iter<'static, Pause>,
    /// The yields that are left after them.
    yields: u32,
    /// The sleeps after these.
    afterwards: Patient<0, 0>,
}

/// The yields of a waiter before it sleeps.
const YIELDS: u32 = 16;

/// The pauses of a waiter at an end before it yields.
const PAUSES_AT_END: usize = 2;

/// At an end, nanoseconds from which a yield is the last one: half of the system's shortest time
/// slice.
const LONG_YIELD_NS: u64 = 350_000;

impl<const AT_END: bool> BargingBackoff<AT_END> {
    /// Learns from a yield that took so many nanoseconds: after a long one the waiter sleeps.
    const fn learn(&mut self, took: u64) {
        if took > LONG_YIELD_NS {
            self.yields = 0;
        }
    }
}

impl<const AT_END: bool> WaitPolicy for BargingBackoff<AT_END> {
    #[inline]
    fn start() -> Self {
        Self { pauses: PAUSES.iter(), yields: YIELDS, afterwards: Patient::start() }
    }

    fn pause(&mut self) {
        // With one processor no other thread makes progress while this one pauses.
        let can_pause = topology::usable() > 1;
        if !self.leaves()
            && let Some(pause) = self.pauses.next()
            && can_pause
        {
            return pause.pass();
        }
        let Some(fewer) = self.yields.checked_sub(1) else { return self.afterwards.pause() };
        self.yields = fewer;
        let began = AT_END.then(clock::now);
        let has_run = yield_to_another();
        if let Some(began) = began {
            self.learn(clock::now().nanos_since(began));
        }
        if !has_run && can_pause {
            self.pauses.next().unwrap_or(&PAUSES[PAUSES.len() - 1]).pass();
        }
    }

    fn leaves(&self) -> bool {
        let looks = PAUSES.len() - self.pauses.as_slice().len();
        looks >= if AT_END { PAUSES_AT_END } else { PAUSES.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses<const AT_END: bool>(expected: usize) {
        let mut policy = BargingBackoff::<AT_END>::start();
        for _ in 0..expected {
            assert!(!policy.leaves());
            policy.pause();
        }
        assert!(policy.leaves());
        policy.pause();
    }

    #[test]
    fn five_pauses_then_the_processor_is_given_away() {
        pauses::<false>(5);
    }

    #[test]
    fn at_an_end_two_pauses() {
        pauses::<true>(2);
    }

    #[test]
    fn a_yield_of_half_a_time_slice_is_the_last() {
        let mut policy = BargingBackoff::<true>::start();
        policy.learn(LONG_YIELD_NS);
        assert_eq!(policy.yields, YIELDS);
        policy.learn(LONG_YIELD_NS + 1);
        assert_eq!(policy.yields, 0);
    }
}
