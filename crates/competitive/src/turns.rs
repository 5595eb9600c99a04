//! The turns of the threads at a mutex, and what follows from them: whether a waiter looks at the
//! mutex closely, or stays away from it.
//!
//! | a waiter | gets the mutex | costs the holder |
//! | --- | --- | --- |
//! | looks closely | soon after a release | a transfer of the line with each release |
//! | stays away | when it looks, and finds it free | nothing meanwhile |
//!
//! Looking closely is right if a release is followed by other work that takes longer than the line
//! takes to come over: then the mutex would lie idle. Staying away is right if the thread that has
//! released the mutex wants it back at once: it has the line, and gets many sections done in the
//! time of one hand-over. Neither time is known, and neither is a constant: it is a matter of the
//! processors and of what else they do to the line. So the lock asks its history: **of the waiters
//! that looked closely, how many were overtaken?** A waiter that was not overtaken was in time. If
//! most are overtaken, the others come back faster than the line can move.
//!
//! Each acquisition counts as a turn. A waiter that comes remembers the count, and compares it when
//! it has the mutex: the turns between are the ones that overtook it. Counting costs the holder a
//! load and a store in a line that it has, about half a nanosecond.
//!
//! While waiters stay away, every sixteenth looks closely all the same. So the lock learns that
//! its threads have changed their ways.
//!
//! # Orderings
//!
//! All are Relaxed: the word is a number by itself. Only a holder writes it, so no turn is lost; a
//! waiter may read an old count, and takes a turn for one too many.
//!
//! Source: the question is Karlin et al. 1991's, whether the lock's own past tells what the next
//! wait is like. Staying away is Anderson 1990's backoff.

use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::wait::SPINS;

/// The count of a lock's turns, and the verdict on looking closely. A new lock has zeros.
///
/// | bits | |
/// | --- | --- |
/// | 0 to 2 | the score of staying away; waiters do it from [`AWAY`] on |
/// | 3 to 6 | the waits so far, modulo 16 |
/// | 7 to 31 | the turns so far |
///
/// Under loom, where no waiter looks twice, it is not written.
pub(crate) struct Turns(AtomicU32);

/// The count as a waiter found it when it came.
#[derive(Clone, Copy)]
pub(crate) struct Came(u32);

const SCORE: u32 = 0b111;
const WAIT: u32 = 1 << 3;
const WAITS: u32 = 0b1111 << 3;
const LOWER: u32 = SCORE | WAITS;
const TURN: u32 = 1 << 7;

/// From this score on, waiters stay away.
const AWAY: u32 = 4;

impl Turns {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts a turn of the calling thread, which has just taken the lock without waiting.
    #[inline]
    pub(crate) fn count(&self) {
        if SPINS {
            let turns = self.0.load(Ordering::Relaxed);
            self.0.store(turns.wrapping_add(TURN), Ordering::Relaxed);
        }
    }

    /// Returns the state for a thread that begins to wait.
    #[inline]
    pub(crate) fn come(&self) -> Came {
        Came(if SPINS { self.0.load(Ordering::Relaxed) } else { 0 })
    }

    /// Counts a turn of the calling thread, which has waited for it and came at `came`. Without
    /// `slept` its wait tells something about looking closely.
    #[inline]
    pub(crate) fn count_after(&self, came: Came, slept: bool) {
        if SPINS {
            let turns = self.0.load(Ordering::Relaxed);
            self.0.store(after(turns, came, slept), Ordering::Relaxed);
        }
    }
}

impl Came {
    /// Returns whether this waiter is to look closely at first.
    #[inline]
    pub(crate) fn looks_closely(self) -> bool {
        SPINS && (self.keeps_looking() || self.0 & WAITS == WAITS)
    }

    /// Returns whether this waiter is to look closely for as long as it spins. One that only tries
    /// whether waiters should is not.
    #[inline]
    pub(crate) fn keeps_looking(self) -> bool {
        SPINS && self.0 & SCORE < AWAY
    }
}

/// Returns the word after one more turn, of a thread that came at `came`.
#[inline]
fn after(turns: u32, came: Came, slept: bool) -> u32 {
    let mut score = turns & SCORE;
    if !slept && came.looks_closely() {
        // The other bits may have begun anew between: they are no part of the difference.
        score = match (turns & !LOWER).wrapping_sub(came.0 & !LOWER) / TURN {
            0 => score.saturating_sub(1),
            1 => score,
            _ => (score + 2).min(SCORE),
        };
    }
    let waits = turns.wrapping_add(WAIT) & WAITS;
    (turns & !LOWER | waits | score).wrapping_add(TURN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets `waits` threads wait one after the other, each overtaken so many times.
    fn wait(turns: &Turns, waits: usize, overtaken: usize) -> usize {
        let mut close = 0;
        for _ in 0..waits {
            let came = turns.come();
            close += usize::from(came.looks_closely());
            (0..overtaken).for_each(|_| turns.count());
            turns.count_after(came, false);
        }
        close
    }

    #[test]
    fn waiters_that_are_in_time_look_closely() {
        assert_eq!(wait(&Turns::new(), 100, 0), 100);
    }

    #[test]
    fn waiters_that_are_overtaken_stay_away_and_one_in_sixteen_tries() {
        let turns = Turns::new();
        assert!(wait(&turns, 16, 5) <= 3);
        assert_eq!(wait(&turns, 160, 5), 10);
    }

    #[test]
    fn a_lock_learns_that_its_threads_have_changed() {
        let turns = Turns::new();
        wait(&turns, 100, 5);
        // Waiters that stay away are overtaken by threads that come and go. That tells nothing.
        wait(&turns, 5 * 16, 0);
        assert_eq!(wait(&turns, 100, 0), 100);
        // Overtaken once is no verdict: a third thread may have come.
        assert_eq!(wait(&turns, 100, 1), 100);
        wait(&turns, 100, 2);
        assert_eq!(wait(&turns, 16, 2), 1);
    }

    #[test]
    fn the_count_of_waits_that_begins_anew_hides_no_turn() {
        let turns = Turns::new();
        wait(&turns, 15, 0);
        let came = turns.come();
        // The sixteenth wait ends meanwhile, and one more turn.
        wait(&turns, 1, 0);
        turns.count();
        turns.count_after(came, false);
        assert_eq!(turns.0.load(Ordering::Relaxed) & SCORE, 2);
    }

    #[test]
    fn a_wait_that_slept_changes_no_verdict() {
        let turns = Turns::new();
        for _ in 0..100 {
            let came = turns.come();
            (0..9).for_each(|_| turns.count());
            turns.count_after(came, true);
        }
        assert!(turns.come().looks_closely());
    }

    #[test]
    fn the_count_begins_anew_without_a_verdict() {
        let last = !LOWER;
        let turns = Turns(AtomicU32::new(last));
        let came = turns.come();
        turns.count_after(came, false);
        assert_eq!(turns.0.load(Ordering::Relaxed), WAIT);
        // Overtaken twice, while the count began anew.
        let turns = Turns(AtomicU32::new(last));
        let came = turns.come();
        turns.count();
        turns.count();
        turns.count_after(came, false);
        assert_eq!(turns.0.load(Ordering::Relaxed), (2 * TURN) | WAIT | 2);
    }
}
