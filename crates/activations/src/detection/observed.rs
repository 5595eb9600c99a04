//! What was last seen of a worker, so that each upcall is told once, whoever looks.
//!
//! Carriers pass by each other's slots, the monitor looks, and a worker that was away comes back: several of them may find the same. So what was found is a
//! word of the worker's, and who moves it tells what that means.
//!
//! | state | the worker | left by who sees it | for | and tells |
//! | --- | --- | --- | --- | --- |
//! | `RUNS` | runs, or nobody has looked | blocked, in the middle of a thread | `BLOCKED` | `Blocked` |
//! | | | preempted there | `PREEMPTED` | `Preempted` |
//! | `BLOCKED` | has blocked there | run, or itself at its next scheduling point | `RUNS` | `Unblocked` |
//! | | | preempted, so it ran in between | `PREEMPTED` | `Unblocked`, `Preempted` |
//! | `PREEMPTED` | was preempted there | run, or itself | `RUNS` | |
//! | | | blocked, so it ran in between | `BLOCKED` | `Blocked` |
//!
//! Why of the worker, and not of its slot: a look that is late would note on the slot what it has seen of one that has lost it. Why a time in the word,
//! also when the worker runs: a look that is late by a block and its end finds another time, and does not tell of that block again.
//!
//! # Invariants
//!
//! 1. A word that has been left does not come again: each move but that to `RUNS` brings a new time.
//! 2. So of those who have read the same word one moves it, and `Blocked` and `Unblocked` of a worker come by turns.
//!
//! # Orderings
//!
//! Reading is an Acquire, and so the look comes after it; moving is a Release, after the look of who moves. So who reads that the worker runs does not look at
//! the block before that any more.

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::Ticks;
use machine::presence::Presence;

use crate::stats::upcalls::Upcall;

/// What is seen of a worker in the middle of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observed {
    Runs,
    Blocked,
    Preempted,
}

impl Observed {
    /// Who cannot be seen is taken to run.
    #[inline]
    pub(crate) fn of(presence: Presence) -> Self {
        match presence {
            Presence::Running | Presence::Unknown => Self::Runs,
            Presence::Blocked => Self::Blocked,
            Presence::Preempted => Self::Preempted,
        }
    }
}

/// The states' bits; above them is the time, whose neighbours are as good.
const STATE: u64 = 3;

/// A word that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Observation(u64);

impl Observation {
    fn new(seen: Observed, time: u64) -> Self {
        Self(time & !STATE | seen as u64)
    }

    #[inline]
    pub(crate) fn seen(self) -> Observed {
        match self.0 & STATE {
            0 => Observed::Runs,
            1 => Observed::Blocked,
            _ => Observed::Preempted,
        }
    }

    /// When it was noted, if it does not say that the worker runs.
    pub(crate) fn since(self) -> Ticks {
        Ticks::from_bits(self.0 & !STATE)
    }

    /// What is told by who moves it there.
    pub(crate) fn tells(self, seen: Observed) -> &'static [Upcall] {
        match (self.seen(), seen) {
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

/// The word of one worker.
pub(crate) struct ObservedState(AtomicU64);

impl ObservedState {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::fresh(Observation::new(Observed::Runs, 0).0))
    }

    #[inline]
    pub(crate) fn read(&self) -> Observation {
        // Acquire: pairs with the Release of `see`.
        Observation(self.0.load(Ordering::Acquire))
    }

    /// Moves it from there to what has been seen `now`; whether it was still there, and so the caller's to move.
    pub(crate) fn see(&self, from: Observation, seen: Observed, now: Ticks) -> bool {
        // Invariant 1.
        let time = if seen == Observed::Runs { from.0 } else { now.to_bits() };
        let to = Observation::new(seen, time);
        // Release: pairs with the Acquire of `read`. Relaxed: somebody else has moved it, and tells.
        self.0.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
