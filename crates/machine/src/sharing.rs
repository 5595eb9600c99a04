//! One barrier of the kernel for all threads that want one at the same time.
//!
//! The kernel serves one call at a time, and each call interrupts all running threads. Where sixty
//! threads call at once, the last would wait for sixty barriers. But a barrier serves each thread
//! that has wanted one before it began. So one caller makes the barrier, and the others wait for
//! its end. They need two barriers at most: one that has begun before they came, and one for them
//! all.
//!
//! # Invariants
//!
//! 1. The state is even if no barrier is being made, and odd while one is. It goes up by one when a
//!    barrier begins and when it has ended, and never back. So each value stands for one barrier. A
//!    thread that sleeps inside one while 2^31 others are made could end a later one; at a
//!    microsecond each that is half an hour.
//! 2. A caller that reads an even state has its barrier when the state is 2 more, and one that
//!    reads an odd state when it is 3 more. Its fence before that read precedes the fence with
//!    which the barrier in question begins, because the read did not see that beginning. So what
//!    the caller wrote is visible to each thread after the barrier.
//! 3. A barrier ends with a fence, and a caller acquires that end. So it sees what each other
//!    thread wrote before the barrier reached it.
//!
//! # A thread that does not end its barrier
//!
//! It may have lost its processor, or the kernel has refused it, or the thread is gone: a child of
//! `fork` has only the thread that forked. So a caller waits for a bounded time, and then makes a
//! barrier itself. That began later than the one it has waited for. So the caller may end that one
//! as well, and the next caller need not wait. A refused barrier ends none.

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::wait::{rounds, spin_for};

/// The answer of the kernel to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was refused.
    Refused,
    /// It has been made.
    Made,
    /// It has been made, but barriers take too much of the time.
    TooMany,
}

/// A kernel that may make barriers.
pub trait Kernel {
    /// Registers the process. Returns whether it may have barriers.
    fn register(&self) -> bool;

    /// Puts a barrier into every running thread of the process. It begins and ends with a fence of
    /// the caller, `SeqCst`.
    fn barrier(&self) -> Answer;

    /// Is told that both sides fence from now on, because barriers were too many.
    fn leaves(&self);

    /// Returns whether barriers are worth another try, after they were too many.
    fn is_worth_a_try(&self) -> bool;

    /// Sleeps for longer, by orders of magnitude, than a store takes to become visible.
    fn sleep(&self);
}

/// The rounds for which a caller waits for another one's barrier at most. In such a time each
/// processor is interrupted four times on the simulated machine `modern`, where interrupts are
/// dear.
const WAIT_ROUNDS: u64 = 64;

/// The least such limit, in nanoseconds: a barrier may be late where there are few processors, too.
const LEAST_WAIT_NS: u64 = 200_000;

/// The greatest: a caller looks all the time, also for a barrier that will never end.
const MOST_WAIT_NS: u64 = 2_000_000;

/// The barriers of a process.
#[derive(Debug)]
pub struct Sharing {
    /// Twice the number of barriers so far, and 1 while one is being made.
    state: AtomicU32,
}

impl Sharing {
    /// Makes the state of a process that has made no barrier.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "public for the models only")]
    pub const fn new() -> Self {
        Self { state: AtomicU32::new(0) }
    }

    /// Makes a barrier, or waits for one that another thread makes.
    pub fn barrier(&self, kernel: &impl Kernel) -> Answer {
        // SeqCst: pairs with the fence with which a barrier begins (Invariant 2).
        fence(Ordering::SeqCst);
        // Relaxed: the fences order it.
        let seen = self.state.load(Ordering::Relaxed);
        let enough = seen.wrapping_add(3) & !1;
        let mut now = seen;
        loop {
            if now.wrapping_sub(enough) as i32 >= 0 {
                return Answer::Made;
            }
            if now.is_multiple_of(2) {
                match self.begin(now) {
                    Ok(begun) => return self.make(begun, kernel),
                    Err(other) => now = other,
                }
            } else {
                // Acquire: Invariant 3.
                let limit = rounds(WAIT_ROUNDS).clamp(LEAST_WAIT_NS, MOST_WAIT_NS);
                match spin_for(&self.state, Ordering::Acquire, |state| state != now, limit) {
                    Some(state) => now = state,
                    None => return self.make(now, kernel),
                }
            }
        }
    }

    /// Begins a barrier. Returns the new state, or the one that another thread has stored.
    fn begin(&self, now: u32) -> Result<u32, u32> {
        let begun = now.wrapping_add(1);
        // Relaxed: the barrier begins with a fence. Acquire on failure: Invariant 3.
        self.state.compare_exchange(now, begun, Ordering::Relaxed, Ordering::Acquire)?;
        Ok(begun)
    }

    /// Makes a barrier, and ends with it the one that has begun with that state.
    fn make(&self, begun: u32, kernel: &impl Kernel) -> Answer {
        let answer = kernel.barrier();
        if answer != Answer::Refused {
            // Relaxed: the barrier ends with a fence. If it fails, another thread has ended it,
            // after a barrier too.
            let end = begun.wrapping_add(1);
            let _ = self.state.compare_exchange(begun, end, Ordering::Relaxed, Ordering::Relaxed);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// A kernel that counts its barriers.
    struct Counting {
        /// The number of its barriers.
        barriers: Cell<u32>,
        /// Its answer to each.
        answer: Answer,
    }

    impl Kernel for Counting {
        fn register(&self) -> bool {
            true
        }

        fn barrier(&self) -> Answer {
            self.barriers.set(self.barriers.get() + 1);
            self.answer
        }

        fn leaves(&self) {}

        fn is_worth_a_try(&self) -> bool {
            false
        }

        fn sleep(&self) {}
    }

    #[test]
    fn a_caller_alone_makes_its_own_barriers() {
        let kernel = Counting { barriers: Cell::new(0), answer: Answer::Made };
        // Also where the number wraps around.
        for state in [0, u32::MAX - 3] {
            let sharing = Sharing { state: AtomicU32::new(state) };
            kernel.barriers.set(0);
            assert!((0..4).all(|_| sharing.barrier(&kernel) == Answer::Made));
            assert_eq!(kernel.barriers.get(), 4);
        }
    }

    #[test]
    fn a_thread_that_is_gone_is_waited_for_once() {
        let kernel = Counting { barriers: Cell::new(0), answer: Answer::Made };
        let sharing = Sharing { state: AtomicU32::new(7) };
        assert_eq!(sharing.barrier(&kernel), Answer::Made);
        assert_eq!(sharing.state.load(Ordering::Relaxed), 8);
        assert_eq!(kernel.barriers.get(), 1);
    }

    #[test]
    fn a_refused_barrier_ends_none() {
        let kernel = Counting { barriers: Cell::new(0), answer: Answer::Refused };
        let sharing = Sharing::new();
        for refused in 1..=2 {
            assert_eq!(sharing.barrier(&kernel), Answer::Refused);
            assert_eq!(sharing.state.load(Ordering::Relaxed), 1);
            assert_eq!(kernel.barriers.get(), refused);
        }
    }
}
