//! The observed state of a worker: what was last seen of it, so that each upcall is counted once.
//!
//! Workers pass by each other's slots, the monitor looks, and a worker that was away comes back.
//! Several of them may find the same. So the finding is a word of the worker's, and the thread that
//! moves the word counts the upcalls of that move.
//!
//! - `RUNS`. The worker: runs, or no thread has looked. Moved by a thread that sees the worker:
//!   blocked, in the middle of a thread. To: `BLOCKED`. And counts: `Blocked`.
//! - `RUNS`. Moved by a thread that sees the worker: preempted there. To: `PREEMPTED`. And counts:
//!   `Preempted`.
//! - `BLOCKED`. The worker: has blocked there. Moved by a thread that sees the worker: running, or
//!   by the worker at its next scheduling point. To: `RUNS`. And counts: `Unblocked`.
//! - `BLOCKED`. Moved by a thread that sees the worker: preempted, so it ran in between. To:
//!   `PREEMPTED`. And counts: `Unblocked`, `Preempted`.
//! - `PREEMPTED`. The worker: was preempted there. Moved by a thread that sees the worker:
//!   running, or by the worker. To: `RUNS`.
//! - `PREEMPTED`. Moved by a thread that sees the worker: blocked, so it ran in between. To:
//!   `BLOCKED`. And counts: `Blocked`.
//!
//! Why a word of the worker, and not of its slot: a late look would record on the slot what it has
//! seen of a worker that has lost it. Why there is a time in the word, even when the worker runs:
//! a look that is late by a block and its end finds another time, and does not count that block
//! again.
//!
//! # Invariants
//!
//! 1. A word that was left does not come again: each move but the one to `RUNS` brings a new time.
//! 2. So of the threads that have read the same word one moves it, and `Blocked` and `Unblocked`
//!    of a worker alternate.
//!
//! # Orderings
//!
//! Reading the word is an Acquire, and the look comes after it. Moving it is a Release, after the
//! look of the mover. So a thread that reads `RUNS` does not see the block before that any more.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Ticks;
use stanchion_machine::presence::Presence;

use crate::stats::upcalls::Upcall;

/// The state of a worker in the middle of a thread, as it is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    /// It runs.
    Runs,
    /// It waits in the kernel.
    Blocked,
    /// It could run, and has no processor.
    Preempted,
}

impl Observed {
    /// Returns the state for a presence. A worker that cannot be observed counts as running.
    #[inline]
    pub(crate) fn of(presence: Presence) -> Self {
        match presence {
            Presence::Running | Presence::Unknown => Self::Runs,
            Presence::Blocked => Self::Blocked,
            Presence::Preempted => Self::Preempted,
        }
    }
}

/// The bits of the state. Above them is the time, for which its neighbours do as well.
const STATE: u64 = 3;

/// A value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation(u64);

impl Observation {
    fn new(state: Observed, time: u64) -> Self {
        Self(time & !STATE | state as u64)
    }

    /// Returns the state.
    #[inline]
    pub fn state(self) -> Observed {
        match self.0 & STATE {
            0 => Observed::Runs,
            1 => Observed::Blocked,
            _ => Observed::Preempted,
        }
    }

    /// Returns the time of the observation, if the state is not `Runs`.
    pub(crate) fn since(self) -> Ticks {
        Ticks::from_bits(self.0 & !STATE)
    }

    /// Returns the upcalls that the move to `next` counts.
    pub fn upcalls(self, next: Observed) -> &'static [Upcall] {
        match (self.state(), next) {
            (Observed::Runs | Observed::Preempted, Observed::Blocked) => &[Upcall::Blocked],
            (Observed::Blocked, Observed::Runs) => &[Upcall::Unblocked],
            (Observed::Blocked, Observed::Preempted) => &[Upcall::Unblocked, Upcall::Preempted],
            (Observed::Runs, Observed::Preempted) => &[Upcall::Preempted],
            (Observed::Preempted, Observed::Runs | Observed::Preempted)
            | (Observed::Runs, Observed::Runs)
            | (Observed::Blocked, Observed::Blocked) => &[],
        }
    }
}

/// The word of one worker. Moved by any thread that looks.
pub struct ObservedState(AtomicU64);

impl ObservedState {
    /// Returns the word of a worker that runs.
    pub fn new() -> Self {
        Self(AtomicU64::fresh(Observation::new(Observed::Runs, 0).0))
    }

    /// Returns the last observation.
    #[inline]
    pub fn read(&self) -> Observation {
        // Acquire: pairs with the Release of `update`.
        Observation(self.0.load(Ordering::Acquire))
    }

    /// Moves the word from `from` to the state that was observed `now`. Returns whether it was
    /// still there, so that the caller counts the upcalls.
    pub fn update(&self, from: Observation, next: Observed, now: Ticks) -> bool {
        // Invariant 1.
        let time = if next == Observed::Runs { from.0 } else { now.to_bits() };
        let to = Observation::new(next, time);
        // Release: pairs with the Acquire of `read`. Relaxed: another thread has moved it, and
        // counts.
        self.0.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
