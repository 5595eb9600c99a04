//! Backoff in time: how long a thread stays away from a contended word.
//!
//! Why not a count of pauses: one pause hint lasts 5 ns on one processor and 45 ns on another. A
//! count that fits one machine is ten times wrong on the next.
//!
//! Why random: waiters that failed together would come back together.
//!
//! The delay after the *k*-th failure is uniform in `0 ..= slot * 2^k`, and at most `cap`. The slot
//! is about the time of one hand-off of a lock between two processors, with what the lock protects:
//! by default four [`transfers`] of a cache line, as measured on this machine. The paper compares
//! it to a transmission slot of the Ethernet.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 4.4. The randomized window is from Metcalfe
//! and Boggs 1976.

use stanchion_machine::wait::{calls, delay, rounds, transfers};

/// The slot by default, in [`transfers`] of a cache line.
pub const SLOT_TRANSFERS: u64 = 4;

/// The cap on a single delay by default, in [`calls`] to the kernel: about the cost to put a thread
/// to sleep and wake it.
pub const CAP_CALLS: u64 = 300;

/// The cap where many processors may wait at once, if it is longer, in [`rounds`].
pub const CAP_ROUNDS: u64 = 20;

/// The window doubles at most this often. After as many failures a backoff is complete, whatever
/// its cap.
const DOUBLINGS: u32 = 20;

/// A backoff that grows from one slot to the cap, and reports when it has reached the cap.
///
/// - [`spin`](Self::spin) pauses. It is for a thread that has lost a race: another thread made
///   progress.
/// - [`snooze`](Self::snooze) pauses, and yields once the cap is reached. It is for a thread that
///   waits until another thread makes progress.
/// - [`is_completed`](Self::is_completed) says when to stop and block. It becomes true after a
///   bounded number of calls of *either*.
///
/// Under loom a delay takes no time and lets the other threads run.
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
/// use stanchion_spin::Backoff;
///
/// fn double(word: &AtomicU32) -> u32 {
///     let mut backoff = Backoff::new();
///     loop {
///         let old = word.load(Relaxed);
///         if word.compare_exchange(old, old * 2, Relaxed, Relaxed).is_ok() {
///             return old;
///         }
///         backoff.spin();
///     }
/// }
/// assert_eq!(double(&AtomicU32::new(21)), 21);
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    /// The failures since the start or the last `reset`: the exponent of the window.
    failures: u32,
    /// The first window, in nanoseconds. None for [`SLOT_TRANSFERS`].
    slot: Option<u64>,
    /// The longest delay, in nanoseconds. None for [`CAP_CALLS`] or [`CAP_ROUNDS`].
    cap: Option<u64>,
    /// The state of the random source. It is 0 until the first delay seeds it.
    random: u64,
}

impl Backoff {
    /// Returns a backoff with a slot of [`SLOT_TRANSFERS`] transfers, and a cap of [`CAP_CALLS`]
    /// calls or [`CAP_ROUNDS`] rounds, whichever is longer. At its first delay it is seeded by the
    /// thread's random source.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { failures: 0, slot: None, cap: None, random: 0 }
    }

    /// Returns the backoff with another cap on a single delay, in nanoseconds. With a cap of 0 it
    /// never delays.
    #[inline]
    #[must_use]
    pub const fn with_cap(mut self, nanos: u64) -> Self {
        self.cap = Some(nanos);
        self
    }

    /// Returns the backoff with another slot, in nanoseconds.
    #[inline]
    #[must_use]
    pub const fn with_slot(mut self, nanos: u64) -> Self {
        self.slot = Some(nanos);
        self
    }

    /// Returns the backoff with a random source of its own. Its delays are then the same on every
    /// run.
    #[inline]
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.random = scramble(seed);
        self
    }

    /// Returns the number of failures since the start or the last [`reset`](Self::reset). Every
    /// delay and every call of [`fail`](Self::fail) counts as one.
    #[inline]
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Starts over with the shortest delay. The random source is not reset.
    #[inline]
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns whether the delays have reached the cap. A thread that can block should block then.
    #[inline]
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.failures >= DOUBLINGS || self.window() >= self.cap()
    }

    /// Delays the thread after it lost a race.
    #[inline]
    pub fn spin(&mut self) {
        let nanos = self.next_delay();
        delay(nanos);
    }

    /// Delays the thread while another thread has to make progress. Once the cap is reached, it
    /// yields the processor instead.
    #[inline]
    pub fn snooze(&mut self) {
        #[cfg(feature = "std")]
        if self.is_completed() {
            stanchion_machine::thread::yield_now();
            return;
        }
        self.spin();
    }

    /// Returns the next delay in nanoseconds and counts it as taken. It is for callers that do the
    /// waiting themselves.
    #[inline]
    pub fn next_delay(&mut self) -> u64 {
        let window = self.window().min(self.cap());
        self.failures = self.failures.saturating_add(1);
        if self.random == 0 {
            self.random = source::next();
        }
        self.random = step(self.random);
        // The high bits of the generator are the best ones.
        ((u128::from(self.random) * (u128::from(window) + 1)) >> 64) as u64
    }

    /// Counts a failure without a delay: the caller delays when the word next looks free.
    #[inline]
    pub const fn fail(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// Delays as long as the failures so far suggest, without counting another failure.
    #[inline]
    pub fn delay_again(&mut self) {
        let failures = self.failures;
        self.failures = failures.saturating_sub(1);
        self.spin();
        self.failures = failures;
    }

    /// Returns the window after the failures so far, before the cap is applied.
    #[inline]
    fn window(&self) -> u64 {
        let slot = self.slot.unwrap_or_else(|| transfers(SLOT_TRANSFERS));
        slot.saturating_mul(1 << self.failures.min(DOUBLINGS))
    }

    /// Returns the longest delay.
    #[inline]
    fn cap(&self) -> u64 {
        self.cap.unwrap_or_else(|| calls(CAP_CALLS).max(rounds(CAP_ROUNDS)))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

/// Seeds the random source of the calling thread, so that a single-threaded test repeats itself.
///
/// ```
/// use stanchion_spin::backoff::{Backoff, seed_thread};
/// seed_thread(7);
/// let first = Backoff::new().next_delay();
/// seed_thread(7);
/// assert_eq!(Backoff::new().next_delay(), first);
/// ```
#[cfg(feature = "std")]
pub fn seed_thread(seed: u64) {
    source::SEED.with(|source| source.set(scramble(seed)));
}

/// Advances Marsaglia's xorshift generator by one step. The result is never 0 unless `state` is 0.
const fn step(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

/// Makes a state that is not 0 from any seed (the finalizer of splitmix64).
const fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) | 1
}

#[cfg(feature = "std")]
mod source {
    use core::cell::Cell;

    stanchion_machine::thread_local! {
        /// The state of this thread's random source. It is 0 until its first use.
        pub(super) static SEED: Cell<u64> = Cell::new(0);
    }

    /// Returns the next number of the thread's source. During the thread's destruction it returns a
    /// number that no source made.
    pub(super) fn next() -> u64 {
        SEED.try_with(|source| {
            let state = if source.get() == 0 { fresh() } else { source.get() };
            source.set(super::step(state));
            source.get()
        })
        .unwrap_or_else(|_| fresh())
    }

    /// Returns a seed that differs between threads. More is not needed.
    fn fresh() -> u64 {
        super::scramble(stanchion_machine::hint::entropy())
    }
}

#[cfg(not(feature = "std"))]
mod source {
    /// Returns a new seed each time, as there are no thread-locals. `machine` tells the waiters
    /// apart.
    pub(super) fn next() -> u64 {
        super::scramble(stanchion_machine::hint::entropy())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// crossbeam#949: a backoff that only ever spins must also complete.
    #[test]
    fn completes_whichever_method_is_called() {
        let mut spinning = Backoff::new().with_slot(100).with_cap(1_000);
        let mut snoozing = spinning.clone();
        for _ in 0..10 {
            spinning.spin();
            snoozing.snooze();
        }
        assert!(spinning.is_completed());
        assert!(snoozing.is_completed());
        spinning.reset();
        assert!(!spinning.is_completed());
    }

    #[test]
    fn delays_stay_within_window_and_cap() {
        let mut backoff = Backoff::new().with_seed(1).with_slot(100).with_cap(1_600);
        for failure in 0..40_u32 {
            let window = (100 << failure.min(20)).min(1_600);
            assert_eq!(backoff.failures(), failure);
            assert!(backoff.next_delay() <= window);
        }
    }

    #[test]
    fn by_default_the_unit_is_a_transfer() {
        let mut backoff = Backoff::new();
        assert!(backoff.next_delay() <= transfers(SLOT_TRANSFERS));
        assert!(!backoff.is_completed());
        while !backoff.is_completed() {
            backoff.fail();
        }
        assert!(transfers(SLOT_TRANSFERS) << backoff.failures() >= calls(CAP_CALLS));
    }

    #[test]
    fn windows_are_used_whole() {
        let mut backoff = Backoff::new().with_seed(3).with_slot(1_000).with_cap(1_000);
        let delays: std::vec::Vec<_> = (0..1_000).map(|_| backoff.next_delay()).collect();
        assert!(delays.iter().any(|&nanos| nanos < 100));
        assert!(delays.iter().any(|&nanos| nanos > 900));
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let delays = |seed| {
            let mut backoff = Backoff::new().with_seed(seed);
            [(); 8].map(|()| backoff.next_delay())
        };
        assert_eq!(delays(42), delays(42));
        assert_ne!(delays(42), delays(43));
        // A seed of 0 is as good as any.
        assert_ne!(delays(0), [0; 8]);
    }

    #[test]
    fn completes_whatever_the_cap_and_slot() {
        for mut backoff in [Backoff::new().with_cap(u64::MAX), Backoff::new().with_slot(0)] {
            for _ in 0..DOUBLINGS {
                let _ = backoff.next_delay();
            }
            assert!(backoff.is_completed());
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut huge = Backoff::new().with_seed(1).with_slot(u64::MAX).with_cap(u64::MAX);
        assert!((0..40).any(|_| huge.next_delay() > u64::MAX / 2));
        let mut backoff = Backoff::new().with_slot(u64::MAX).with_cap(0);
        for _ in 0..100 {
            assert_eq!(backoff.next_delay(), 0);
        }
        assert!(backoff.is_completed());
    }
}
