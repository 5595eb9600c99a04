//! The park state of a thread: one word, through which it is parked and woken.
//!
//! - `RUNNING`. Meaning: the thread runs, or is ready. Changed by: an unpark, to `TOKEN`; a
//!   notification, to `NOTIFIED`; its worker when the thread has left its stack, to `PARKED` or
//!   `WAITING`.
//! - `TOKEN`. Meaning: the same, and its next park returns at once. Changed by: the thread, to
//!   `RUNNING`.
//! - `NOTIFIED`. Meaning: the same, and what the runtime lets it wait for may have come. Changed
//!   by: the thread, to `RUNNING`; an unpark, to `TOKEN`.
//! - `PARKED`. Meaning: its stack is laid aside until it is unparked. Changed by: an unpark or a
//!   notification, to `RUNNING`.
//! - `WAITING`. Meaning: its stack is laid aside until it is notified; an unpark is remembered.
//!   Changed by: a notification, to `RUNNING`; an unpark, to `TOKEN`.
//!
//! ```text
//!                 unpark                       settle(Park)
//!   TOKEN ◄──────────────────── RUNNING ───────────────────────► PARKED
//!     ▲  ────────────────────►   ▲ │ ▲ ◄──────────────────────────  │
//!     │        take_token        │ │ │    unpark, notify             │
//!     │                take_token│ │ └───────────────────────────────┘
//!     │                          │ │ settle(Wait)
//!     │  unpark                  │ ├──────────────► WAITING ── notify ──► RUNNING
//!     ├────────────── NOTIFIED ──┘ │                   │
//!     │                   ▲        │                   │ unpark
//!     │                   └────────┘ notify            │
//!     └────────────────────────────────────────────────┘
//! ```
//!
//! Why notifications beside unparks: a thread that waits for the end of another thread, or for a
//! time, must not use up a token that its user has put there for the next park.
//!
//! Above the state the word counts the *ends* of which the thread has been notified. Why: a joiner
//! goes on when it has been notified, not when it sees that the other thread has ended. So it stays
//! until the notification, and the thread that notifies it needs no reference to it.
//!
//! # Invariants
//!
//! 1. Moving a runtime's thread out of `PARKED` or `WAITING` obliges the mover to make it ready,
//!    once, with the thread's own reference (`completion.rs`), which was with its state.
//! 2. A thread that has asked to be notified of an end does not go on before that end is counted.
//!    From then on the notifier touches it no more, except by Invariant 1.
//!
//! # Orderings
//!
//! An unpark or notification is a Release, and the end of a park or wait an Acquire: what was
//! written before the one is seen after the other. The move to `PARKED` or `WAITING` is a Release,
//! and the wake-up that takes the thread from there an Acquire: the stack that was laid aside.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

const RUNNING: u32 = 0;
const TOKEN: u32 = 1;
const NOTIFIED: u32 = 2;
const PARKED: u32 = 3;
const WAITING: u32 = 4;

/// The bits of the state.
const STATE: u32 = 7;

/// One end of which the thread was notified.
const END: u32 = STATE + 1;

/// The reason for which a thread lays its stack aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// A park without a deadline: until it is unparked.
    Park,
    /// A wait: until it is notified.
    Wait,
}

/// The reason for which a thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// An unpark, which leaves a token if the thread does not park.
    Unpark,
    /// A notification: the end of the wait may have come. The token stays as it is.
    Notify,
    /// A notification that a thread has ended which this one joins.
    Completion,
}

/// The word.
pub struct ParkState(AtomicU32);

impl ParkState {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::fresh(RUNNING))
    }

    /// Takes the token, if there is one, and forgets a notification. Returns whether there was a
    /// token. Called by the thread.
    pub fn take_token(&self) -> bool {
        // Acquire: pairs with the Release of `wake_for`. Relaxed if there was neither.
        self.0.load(Ordering::Relaxed) & STATE != RUNNING
            && self.0.fetch_and(!STATE, Ordering::Acquire) & STATE == TOKEN
    }

    /// Puts a token back. Called by the thread.
    pub(crate) fn put_token(&self) {
        let token = |seen| Some(seen & !STATE | TOKEN);
        // Relaxed: no thread is told of anything. An exchange, so that what an unpark has released
        // meanwhile can still be acquired.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, token);
    }

    /// Returns the number of ends of which the thread was notified, modulo a power of two. Called
    /// by the thread.
    #[inline]
    pub fn ends(&self) -> u32 {
        // Acquire: pairs with the Release of `wake_for`: what the ended thread did.
        self.0.load(Ordering::Acquire) & !STATE
    }

    /// Parks the thread after its stack was laid aside. Returns `false` if an unpark or a
    /// notification has come already. Then the thread goes on, and a park has used up the token.
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
            // From here on the thread may have ended.
            return true;
        }
        if pause == Pause::Park {
            // Acquire: pairs with the Release of a second unpark, which may have come since.
            self.0.fetch_and(!STATE, Ordering::Acquire);
        }
        false
    }

    /// Sleeps in the kernel until the thread is woken or the deadline passes. Called by a kernel
    /// thread.
    pub fn sleep(&self, deadline: Deadline) {
        // Relaxed: the exchange decides.
        let awake = self.0.load(Ordering::Relaxed) & !STATE | RUNNING;
        let asleep = awake | WAITING;
        // Acquire on failure: pairs with the Release of `wake_for`.
        if self.0.compare_exchange(awake, asleep, Ordering::Relaxed, Ordering::Acquire).is_err() {
            return;
        }
        loop {
            // Acquire: as above.
            if self.0.load(Ordering::Acquire) != asleep {
                return;
            }
            if park::wait(&self.0, asleep, deadline) == park::Woken::TimedOut {
                // Relaxed: nothing is read. On failure a wake-up came after all, which the next
                // look at the word acquires.
                let word = &self.0;
                let _ = word.compare_exchange(asleep, awake, Ordering::Relaxed, Ordering::Relaxed);
                return;
            }
        }
    }

    /// Wakes the kernel thread where it [sleeps](Self::sleep).
    pub(crate) fn wake_in_kernel(&self) {
        park::wake_one(&self.0);
    }

    /// Moves the word for a wake-up of a kernel thread, or of a runtime's. Returns whether the
    /// thread was asleep, so that the caller wakes it or makes it ready. If it was not, it may be
    /// gone by now.
    pub(crate) fn wake_for(&self, reason: WakeReason, is_kernel: bool) -> bool {
        // Relaxed: the exchange decides.
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let next = match (reason, seen & STATE) {
                (WakeReason::Unpark, PARKED) if !is_kernel => RUNNING,
                // An exchange even if there is a token: what was written before this unpark is to
                // be seen as well.
                (WakeReason::Unpark, _) => TOKEN,
                (_, PARKED | WAITING) if !is_kernel => RUNNING,
                (_, TOKEN) => TOKEN,
                _ => NOTIFIED,
            };
            let end = if reason == WakeReason::Completion { END } else { 0 };
            let ends = (seen & !STATE).wrapping_add(end);
            // Release: pairs with the Acquire of the thread that parks or waits. Acquire: the
            // stack, of `settle`.
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
