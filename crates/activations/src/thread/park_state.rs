//! Whether a thread is parked: one word, by which it is laid aside and woken.
//!
//! | state | meaning | left by |
//! | --- | --- | --- |
//! | `RUNNING` | it runs, or is ready | an unpark, for `TOKEN`; a call, for `CALLED`; its worker when it has left its stack, for `PARKED` or `WAITING` |
//! | `TOKEN` | likewise, and its next park returns at once | itself, for `RUNNING` |
//! | `CALLED` | likewise, and what the runtime lets it wait for may have come | itself, for `RUNNING`; an unpark, for `TOKEN` |
//! | `PARKED` | its stack is laid aside until it is unparked | an unpark or a call, for `RUNNING` |
//! | `WAITING` | likewise, until it is called; an unpark is to be remembered | a call, for `RUNNING`; an unpark, for `TOKEN` |
//!
//! Why calls beside unparks: a thread that waits for another's end, or for a time, must not use up a token that its user has put there for the next park.
//!
//! Above the state the word counts the *ends* of which the thread has been told, each by a call that also counts. Why: who joins a thread goes on when it
//! has been called, and not when it sees that the thread has ended. So it is there until the call, and who calls needs no share of it.
//!
//! # Invariants
//!
//! 1. Who moves the state of a runtime's thread from `PARKED` or `WAITING` makes it ready, once, by its own share (`completion.rs`), which was with its state.
//! 2. A thread that has asked to be told of an end does not go on before that is counted; from then on who has told it touches it no more, but by
//!    Invariant 1.
//!
//! # Orderings
//!
//! An unpark or call is a Release and the end of a park or wait an Acquire: what was written before the one is seen after the other. The move to `PARKED`
//! or `WAITING` is a Release and the unpark or call that takes it from there an Acquire: the stack that was laid aside.

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;

const RUNNING: u32 = 0;
const TOKEN: u32 = 1;
const CALLED: u32 = 2;
const PARKED: u32 = 3;
const WAITING: u32 = 4;

/// The state's bits.
const STATE: u32 = 7;

/// An end that has been told.
const END: u32 = STATE + 1;

/// What a thread lays its stack aside for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// To be unparked, without a deadline.
    Park,
    /// To be called.
    Wait,
}

/// What rouses a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    Unpark,
    /// What the thread waits for may have come. Leaves the token alone.
    Call,
    /// A call: a thread has ended for which this one waits.
    End,
}

/// The word.
pub(crate) struct ParkState(AtomicU32);

impl ParkState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::fresh(RUNNING))
    }

    /// Takes the token, if there is one, and forgets a call. By the thread.
    pub(crate) fn take_token(&self) -> bool {
        // Acquire: pairs with the Release of `wake_for`. Relaxed if there was neither.
        self.0.load(Ordering::Relaxed) & STATE != RUNNING
            && self.0.fetch_and(!STATE, Ordering::Acquire) & STATE == TOKEN
    }

    /// Puts a token back. By the thread.
    pub(crate) fn put_token(&self) {
        let token = |seen| Some(seen & !STATE | TOKEN);
        // Relaxed: nobody is to be told of anything. An exchange, so that what an unpark has released meanwhile can still be acquired.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, token);
    }

    /// Of how many ends it has been told, modulo something. By the thread.
    #[inline]
    pub(crate) fn ends(&self) -> u32 {
        // Acquire: pairs with the Release of `wake_for`: what the thread did that has ended.
        self.0.load(Ordering::Acquire) & !STATE
    }

    /// Its stack has been laid aside: from now on it is woken. `false` if there was an unpark or a call already: then it goes on, and a park has used it up.
    pub(crate) fn settle(&self, pause: Pause) -> bool {
        let asleep = match pause {
            Pause::Park => PARKED,
            Pause::Wait => WAITING,
        };
        // Relaxed: the exchange decides.
        let awake = self.0.load(Ordering::Relaxed) & !STATE | RUNNING;
        // Release: the stack. Acquire on failure: pairs with the Release of `wake_for`.
        let exchange = |next| {
            self.0.compare_exchange(awake, next, Ordering::Release, Ordering::Acquire).is_ok()
        };
        if exchange(awake | asleep) {
            // It may have ended by now.
            return true;
        }
        if pause == Pause::Park {
            // Acquire: pairs with the Release of a second unpark, which may have come since.
            self.0.fetch_and(!STATE, Ordering::Acquire);
        }
        false
    }

    /// Sleeps in the kernel until it is woken, or the deadline has passed. By a kernel thread.
    pub(crate) fn sleep(&self, deadline: Deadline) {
        // Relaxed: the exchange decides.
        let awake = self.0.load(Ordering::Relaxed) & !STATE | RUNNING;
        let asleep = awake | WAITING;
        // Acquire on failure: pairs with the Release of `wake_for`.
        if self.0.compare_exchange(awake, asleep, Ordering::Relaxed, Ordering::Acquire).is_err() {
            return;
        }
        loop {
            // Acquire: likewise.
            if self.0.load(Ordering::Acquire) != asleep {
                return;
            }
            if park::wait(&self.0, asleep, deadline) == park::Woken::TimedOut {
                // Relaxed: nothing is read. On failure it was woken after all, which its next look at the word acquires.
                let word = &self.0;
                let _ = word.compare_exchange(asleep, awake, Ordering::Relaxed, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Wakes it where it [sleeps](Self::sleep).
    pub(crate) fn wake(&self) {
        park::wake_one(&self.0);
    }

    /// Rouses it, a kernel thread or one of a runtime's; whether it was asleep, so that the caller is to wake it or make it ready. If not, it may be
    /// gone by now.
    pub(crate) fn wake_for(&self, by: WakeReason, kernel: bool) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = match (by, seen & STATE) {
                (WakeReason::Unpark, PARKED) if !kernel => RUNNING,
                // An exchange all the same: what was written before this unpark is to be seen as well.
                (WakeReason::Unpark, _) => TOKEN,
                (_, PARKED | WAITING) if !kernel => RUNNING,
                (_, TOKEN) => TOKEN,
                _ => CALLED,
            };
            let ends = (seen & !STATE).wrapping_add(if by == WakeReason::Completion { END } else { 0 });
            // Release: pairs with the Acquire of who parks or waits. Acquire: the stack, of `settle`.
            let exchanged = self.0.compare_exchange_weak(
                seen,
                ends | next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            match exchanged {
                Ok(_) => return matches!(seen & STATE, PARKED | WAITING),
                Err(now) => seen = now,
            }
        }
    }
}
