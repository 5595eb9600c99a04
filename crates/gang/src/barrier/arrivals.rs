//! The word of the barriers whose members need no names: how many have arrived since the beginning, and why that ended.
//!
//! An arrival takes a number; who has the last number of a phase has crossed it by that very step. Why not count down, reverse a sense and start
//! again, as the papers do: that is a second write, and a thread beyond the number of members, which only such barriers can have, would count itself
//! between the two. Here its number is one of the next phase.
//!
//! ```text
//! whole    0 (2 bits)      | arrivals (62 bits)
//! broken   reason (2 bits) | the phase that broke (42 bits) | arrivals refused, on their way out (20 bits)
//!
//! from             to                          who               meaning
//! a                a+1                         an arrival        a+1 have come; if members divide it, a phase is crossed
//! a                (reason, a/members, 0)      anybody, once     the phase that a belongs to is broken, and all after it
//! (r, p, g)        (r, p, g+1), (r, p, g)      a late arrival    comes, sees the reason, leaves
//! ```
//!
//! # Invariants
//!
//! 1. The arrivals of a whole word only grow. A phase is crossed by its last arrival or broken by the one write of a reason, and the word's
//!    modification order says which.
//! 2. The phase that broke does not change any more: fewer than 2^20 threads are on their way out at one time ([`MOST_MEMBERS`](super::MOST_MEMBERS)
//!    says how many threads there can be).
//! 3. 2^62 arrivals take a century at one each nanosecond; the phase that broke is compared within 2^42.
//!
//! # Orderings
//!
//! An arrival is AcqRel: it publishes what the member did, and the last one sees what all did. A waiter's look is Acquire and pairs with the arrivals
//! of all others: each is a read-modify-write, so the last one's value carries on what those before released.

use machine::atomic::{AtomicU64, Fresh, Ordering};
use machine::topology::CachePadded;

use super::Broken;

const REASON_SHIFT: u32 = 62;
/// The smallest word that is not whole.
const BROKEN: u64 = 1 << REASON_SHIFT;
/// Where the phase that broke begins.
const PHASE_SHIFT: u32 = 20;
const PHASE_MASK: u64 = (1 << (REASON_SHIFT - PHASE_SHIFT)) - 1;

/// The word.
pub(super) struct Arrivals {
    word: CachePadded<AtomicU64>,
    members: u64,
}

/// One arrival, of a thread that now waits or has crossed.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    phase: u64,
    /// How many arrivals there are at the end of the phase.
    end: u64,
    last: bool,
}

impl Arrival {
    /// Whether it has crossed the phase for all.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    /// The number of its phase.
    #[inline]
    pub(super) fn phase(&self) -> u64 {
        self.phase
    }

    /// Whether the phase is crossed or broken, as `word` tells.
    #[inline]
    pub(super) fn is_over(&self, word: u64) -> bool {
        // A reason is in the highest bits.
        word >= self.end
    }

    /// Which of the two, when it is over.
    #[inline]
    pub(super) fn outcome(&self, word: u64) -> Result<(), Broken> {
        match reason(word) {
            Some(why) if (word >> PHASE_SHIFT) & PHASE_MASK == self.phase & PHASE_MASK => Err(why),
            _ => Ok(()),
        }
    }
}

fn reason(word: u64) -> Option<Broken> {
    Broken::in_word((word >> REASON_SHIFT) as u32)
}

impl Arrivals {
    /// Nobody has come yet.
    pub(super) fn new(members: u32) -> Self {
        Self::after(0, members)
    }

    /// As it is after so many phases.
    pub(super) fn after(phases: u64, members: u32) -> Self {
        let members = u64::from(members);
        Self { word: CachePadded::new(AtomicU64::fresh(phases * members)), members }
    }

    pub(super) fn members(&self) -> usize {
        self.members as usize
    }

    /// The word to watch, with Acquire.
    #[inline]
    pub(super) fn word(&self) -> &AtomicU64 {
        &self.word
    }

    /// Arrives, and if it is the last, crosses the phase.
    #[inline]
    pub(super) fn arrive(&self) -> Result<Arrival, Broken> {
        // AcqRel: Release pairs with the looks of the others and with the Acquire of the phase's last arrival, which is this one's if it is that.
        let before = self.word.fetch_add(1, Ordering::AcqRel);
        if before >= BROKEN {
            return Err(self.refused(before));
        }
        let phase = before / self.members;
        let end = (phase + 1) * self.members;
        Ok(Arrival { phase, end, last: before + 1 == end })
    }

    #[cold]
    fn refused(&self, before: u64) -> Broken {
        // Relaxed: keeps Invariant 2, publishes nothing.
        self.word.fetch_sub(1, Ordering::Relaxed);
        reason(before).expect("only a reason makes a word so great")
    }

    /// Breaks the phase of `arrival`, unless it is over: what became of it.
    #[cold]
    pub(super) fn give_up(&self, arrival: Arrival) -> Result<(), Broken> {
        // Acquire: as a waiter's look, if the phase is over after all.
        let mut word = self.word.load(Ordering::Acquire);
        while !arrival.is_over(word) {
            let broken = self.broken_at(word, Broken::TimedOut);
            // Relaxed: that a barrier is broken publishes nothing. Acquire: as above.
            match self.word.compare_exchange_weak(
                word,
                broken,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => return Err(Broken::TimedOut),
                Err(now) => word = now,
            }
        }
        arrival.outcome(word)
    }

    /// Breaks the phase that arrivals now belong to, unless one is broken already.
    pub(super) fn shatter(&self, why: Broken) {
        // Relaxed: that a barrier is broken publishes nothing; what counts is the order of the word's own values.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            (word < BROKEN).then(|| self.broken_at(word, why))
        });
    }

    fn broken_at(&self, word: u64, why: Broken) -> u64 {
        let phase = (word / self.members) & PHASE_MASK;
        (u64::from(why as u32) << REASON_SHIFT) | (phase << PHASE_SHIFT)
    }

    /// Whether it is broken, and why.
    pub(super) fn broken(&self) -> Option<Broken> {
        // Relaxed: a hint.
        reason(self.word.load(Ordering::Relaxed))
    }

    /// How many have arrived in the phase that is going on: a hint, and 0 when it is broken.
    pub(super) fn arrived(&self) -> u64 {
        // Relaxed: a hint.
        let word = self.word.load(Ordering::Relaxed);
        if word < BROKEN { word % self.members } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_of_any_number_is_told_from_its_neighbours() {
        for phases in [0, 1, PHASE_MASK - 1, PHASE_MASK, PHASE_MASK + 1] {
            let arrivals = Arrivals::after(phases, 2);
            let first = arrivals.arrive().unwrap();
            assert!(!first.is_last() && !first.is_over(arrivals.word().load(Ordering::Relaxed)));
            assert!(arrivals.arrive().unwrap().is_last());
            let next = arrivals.arrive().unwrap();
            arrivals.shatter(Broken::Panicked);
            arrivals.shatter(Broken::Left);
            let word = arrivals.word().load(Ordering::Relaxed);
            assert!(first.is_over(word) && next.is_over(word));
            assert_eq!(first.outcome(word), Ok(()), "crossed before the break");
            assert_eq!(next.outcome(word), Err(Broken::Panicked));
            assert_eq!(arrivals.give_up(first), Ok(()));
            assert_eq!(arrivals.give_up(next), Err(Broken::Panicked), "the first reason stays");
        }
    }

    #[test]
    fn arrivals_at_a_broken_word_leave_no_trace() {
        let arrivals = Arrivals::new(1_000);
        let waits = arrivals.arrive().unwrap();
        assert_eq!(arrivals.give_up(waits), Err(Broken::TimedOut));
        let word = arrivals.word().load(Ordering::Relaxed);
        for _ in 0..(1 << PHASE_SHIFT) + 1 {
            assert!(arrivals.arrive().is_err());
        }
        assert_eq!(arrivals.word().load(Ordering::Relaxed), word);
        assert_eq!(waits.outcome(word), Err(Broken::TimedOut));
    }
}
