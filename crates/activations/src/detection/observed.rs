//! What was last seen of a carrier, so that each upcall is told once, whoever looks.
//!
//! Carriers pass by each other's seats, the lookout looks, and a carrier that was away comes back: several of them may find the same. So what was found is a
//! word of the carrier's, and who moves it tells what that means.
//!
//! | state | the carrier | left by who sees it | for | and tells |
//! | --- | --- | --- | --- | --- |
//! | `RUNS` | runs, or nobody has looked | blocked, in the middle of a thread | `BLOCKED` | `Blocked` |
//! | | | preempted there | `PREEMPTED` | `Preempted` |
//! | `BLOCKED` | has blocked there | run, or itself at its next scheduling point | `RUNS` | `Unblocked` |
//! | | | preempted, so it ran in between | `PREEMPTED` | `Unblocked`, `Preempted` |
//! | `PREEMPTED` | was preempted there | run, or itself | `RUNS` | |
//! | | | blocked, so it ran in between | `BLOCKED` | `Blocked` |
//!
//! Why of the carrier, and not of its seat: a look that is late would note on the seat what it has seen of one that has lost it. Why a time in the word,
//! also when the carrier runs: a look that is late by a block and its end finds another time, and does not tell of that block again.
//!
//! # Invariants
//!
//! 1. A word that has been left does not come again: each move but that to `RUNS` brings a new time.
//! 2. So of those who have read the same word one moves it, and `Blocked` and `Unblocked` of a carrier come by turns.
//!
//! # Orderings
//!
//! Reading is an Acquire, and so the look comes after it; moving is a Release, after the look of who moves. So who reads that the carrier runs does not look at
//! the block before that any more.

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::clock::Ticks;
use machine::presence::Presence;

use crate::stats::upcalls::Upcall;

/// What is seen of a carrier in the middle of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Runs,
    Blocked,
    Preempted,
}

impl Seen {
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
pub(crate) struct Noted(u64);

impl Noted {
    fn new(seen: Seen, time: u64) -> Self {
        Self(time & !STATE | seen as u64)
    }

    #[inline]
    pub(crate) fn seen(self) -> Seen {
        match self.0 & STATE {
            0 => Seen::Runs,
            1 => Seen::Blocked,
            _ => Seen::Preempted,
        }
    }

    /// When it was noted, if it does not say that the carrier runs.
    pub(crate) fn since(self) -> Ticks {
        Ticks::from_bits(self.0 & !STATE)
    }

    /// What is told by who moves it there.
    pub(crate) fn tells(self, seen: Seen) -> &'static [Upcall] {
        match (self.seen(), seen) {
            (Seen::Runs | Seen::Preempted, Seen::Blocked) => &[Upcall::Blocked],
            (Seen::Blocked, Seen::Runs) => &[Upcall::Unblocked],
            (Seen::Blocked, Seen::Preempted) => &[Upcall::Unblocked, Upcall::Preempted],
            (Seen::Runs, Seen::Preempted) => &[Upcall::Preempted],
            (Seen::Preempted, Seen::Runs | Seen::Preempted)
            | (Seen::Runs, Seen::Runs)
            | (Seen::Blocked, Seen::Blocked) => &[],
        }
    }
}

/// The word of one carrier.
pub(crate) struct Note(AtomicU64);

impl Note {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::fresh(Noted::new(Seen::Runs, 0).0))
    }

    #[inline]
    pub(crate) fn read(&self) -> Noted {
        // Acquire: pairs with the Release of `see`.
        Noted(self.0.load(Ordering::Acquire))
    }

    /// Moves it from there to what has been seen `now`; whether it was still there, and so the caller's to move.
    pub(crate) fn see(&self, from: Noted, seen: Seen, now: Ticks) -> bool {
        // Invariant 1.
        let time = if seen == Seen::Runs { from.0 } else { now.to_bits() };
        let to = Noted::new(seen, time);
        // Release: pairs with the Acquire of `read`. Relaxed: somebody else has moved it, and tells.
        self.0.compare_exchange(from.0, to.0, Ordering::Release, Ordering::Relaxed).is_ok()
    }
}
