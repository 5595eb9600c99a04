//! The word of the barriers that count arrivals: how many members have arrived since the beginning,
//! whether a member sleeps, and why the barrier broke.
//!
//! An arrival takes a number. The arrival that takes the last number of a phase has crossed the
//! phase by that very step. Why not count down, reverse a sense and start again, as the papers do:
//! that is a second write. A thread beyond the number of members, which only such barriers can
//! have, would count itself between the two writes. Here its number is one of the next phase.
//!
//! ```text
//! whole    0 (2 bits)    | arrivals (61 bits)                                 | asleep (1 bit)
//! broken   reason (2)    | phase that broke (41) | refused, leaving (20)      | asleep (1)
//!
//! from       to                    by              meaning
//! (a, s)     (a+1, s)              an arrival      if members divide a+1, the phase is crossed
//! (a, 0)     (a, 1)                a sleeper       wake it when the phase is over
//! (a, 1)     (a, 0)                a last arrival  it wakes all sleepers after this
//! (a, s)     (reason, phase, 0, 0) any, once       the phase of a is broken, and all after it
//! (r,p,g,s)  (r,p,g+1,s) and back  a late arrival  arrives, sees the reason, leaves
//! ```
//!
//! # Sleepers
//!
//! Members that have spun in vain sleep on the wake epoch, a word beside this one. A futex has 32
//! bits, and each arrival would wake the members that sleep on the word itself. Why a bit in the
//! word and not a count of sleepers beside it: the last arrival finds the bit in the value that it
//! replaces. A count would cost each crossing a fence between its arrival and its look at the
//! count.
//!
//! ```text
//! sleeper                                  last arrival, or the thread that breaks the barrier
//! -------                                  ---------------------------------------------------
//! (1) read the wake epoch                  (a) the phase is over; was `asleep` set?
//! (2) is the phase over?                   (b)   clear it
//! (3) set `asleep`; is the phase over?     (c)   increase the wake epoch
//! (4) sleep while it is as in (1)          (d)   wake all
//! ```
//!
//! No wake-up is lost. If (a) comes before (3), then (3) finds the phase over. Otherwise the bit
//! that (3) has set is found by (a), or the (b) of an earlier phase has cleared it in between.
//! Either way there is a (c) after it. By the orderings below (1) has not read what that (c)
//! writes. So (4) does not sleep, or sleeps before (d). A sleeper that is woken too early begins
//! again at (1).
//!
//! # Invariants
//!
//! 1. The arrivals of a whole word only grow. A phase is crossed by its last arrival or broken by
//!    the one write of a reason, and the word's modification order says which.
//! 2. The phase that broke does not change any more: fewer than 2^20 threads are on their way out
//!    at one time ([`MOST_MEMBERS`] says how many threads there can be).
//! 3. 2^61 arrivals take 73 years at one each nanosecond. The phase that broke is compared within
//!    2^41.
//! 4. The bit `asleep` is the lowest, and an arrival adds 2. So no comparison of arrivals and no
//!    division by them has to remove it.
//!
//! # Orderings
//!
//! An arrival is AcqRel: it publishes what the member did, and the last one sees what all did. A
//! waiter's look is Acquire and pairs with the arrivals of all others. Each is a read-modify-write,
//! so the last one's value carries on what those before released. (c) is Release and (1) Acquire: a
//! sleeper that has read what (c) wrote does (3) after (b), so its bit stays.

use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park::{self, Woken};
use stanchion_machine::topology::CachePadded;

use super::interface::{Broken, Crossing, MOST_MEMBERS, WrongSize};

/// The bit of a word for which a member sleeps.
const ASLEEP: u64 = 1;
/// An arrival, or a late arrival that is refused.
const ONE: u64 = 2;
const REASON_SHIFT: u32 = 62;
/// The smallest word that is not whole.
const BROKEN: u64 = 1 << REASON_SHIFT;
/// The position of the phase that broke.
const PHASE_SHIFT: u32 = 21;
const PHASE_MASK: u64 = (1 << (REASON_SHIFT - PHASE_SHIFT)) - 1;

/// The arrivals at a barrier, and its sleepers.
pub(super) struct ArrivalWord {
    /// The two words, in a line of their own.
    words: CachePadded<Words>,
    /// The arrivals of a phase, as the word counts them.
    step: u64,
}

struct Words {
    /// See the head of the file. Written by arrivals, sleepers, and a thread that breaks it.
    word: AtomicU64,
    /// Counts how often sleepers were woken. They sleep on it; the thread that wakes them writes
    /// it.
    wake_epoch: AtomicU32,
}

/// One arrival, of a thread that now waits or has crossed.
#[derive(Clone, Copy)]
pub(super) struct Arrival {
    /// The number of its phase.
    phase: u64,
    /// The word at the end of the phase, if no member sleeps.
    end: u64,
    /// True if it has crossed the phase.
    last: bool,
}

impl Arrival {
    /// Returns whether it has crossed the phase for all.
    #[inline]
    pub(super) fn is_last(&self) -> bool {
        self.last
    }

    /// Returns the number of its phase.
    #[inline]
    pub(super) fn phase(&self) -> u64 {
        self.phase
    }

    /// Returns whether the phase is crossed or broken, by `word`.
    #[inline]
    pub(super) fn is_over(&self, word: u64) -> bool {
        // A reason is in the highest bits, and `end` is even (Invariant 4).
        word >= self.end
    }

    /// Returns which of the two, by a `word` that says that it is over.
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

impl ArrivalWord {
    /// Creates the word of a barrier for so many members.
    pub(super) fn for_members(members: usize) -> Result<Self, WrongSize> {
        Ok(Self::after(0, WrongSize::check(members, MOST_MEMBERS)?))
    }

    /// Creates the word as it is after so many phases.
    fn after(phases: u64, members: u32) -> Self {
        let step = u64::from(members) * ONE;
        let words =
            Words { word: AtomicU64::fresh(phases * step), wake_epoch: AtomicU32::fresh(0) };
        Self { words: CachePadded::new(words), step }
    }

    pub(super) fn members(&self) -> usize {
        (self.step / ONE) as usize
    }

    /// Returns the word to spin on, with Acquire.
    #[inline]
    pub(super) fn word(&self) -> &AtomicU64 {
        &self.words.word
    }

    /// Arrives, and unless this is the last arrival, waits for the others by `wait`. That returns a
    /// word that says that the phase is over, or `None` if it is not over at the deadline.
    #[inline]
    pub(super) fn cross(
        &self,
        wait: impl FnOnce(Arrival) -> Option<u64>,
    ) -> Result<Crossing, Broken> {
        let arrival = self.arrive()?;
        if arrival.is_last() {
            return Ok(Crossing::LEADER);
        }
        match wait(arrival) {
            Some(word) => arrival.outcome(word)?,
            None => self.give_up(arrival)?,
        }
        Ok(Crossing::FOLLOWER)
    }

    /// Arrives. If it is the last, crosses the phase and wakes the members that sleep.
    #[inline]
    pub(super) fn arrive(&self) -> Result<Arrival, Broken> {
        // AcqRel: Release pairs with the looks of the others and with the Acquire of the phase's
        // last arrival, which is this one's if it is that.
        let before = self.words.word.fetch_add(ONE, Ordering::AcqRel);
        if before >= BROKEN {
            return Err(self.refused(before));
        }
        let phase = before / self.step;
        let end = (phase + 1) * self.step;
        let last = before + ONE >= end;
        if last && before & ASLEEP != 0 {
            self.wake_crossed();
        }
        Ok(Arrival { phase, end, last })
    }

    #[cold]
    fn refused(&self, before: u64) -> Broken {
        // Relaxed: keeps Invariant 2, publishes nothing.
        self.words.word.fetch_sub(ONE, Ordering::Relaxed);
        reason(before).expect("only a reason makes a word so great")
    }

    /// Sleeps until the phase of `arrival` is over, and returns a word that says so; `None` if it
    /// is not over at `deadline`.
    #[cold]
    pub(super) fn sleep(&self, arrival: Arrival, deadline: Deadline) -> Option<u64> {
        let Words { word, wake_epoch } = &*self.words;
        loop {
            // Acquire: pairs with the Release of `wake` (see "Orderings").
            let closed = wake_epoch.load(Ordering::Acquire);
            // Acquire: pairs with the arrivals of all others.
            let mut now = word.load(Ordering::Acquire);
            if !arrival.is_over(now) && now & ASLEEP == 0 {
                // Acquire: as above.
                now = word.fetch_or(ASLEEP, Ordering::Acquire);
            }
            if arrival.is_over(now) {
                return Some(now);
            }
            if park::wait(wake_epoch, closed, deadline) == Woken::TimedOut {
                return None;
            }
        }
    }

    /// Wakes the members that sleep, after the arrival that has crossed their phase.
    #[cold]
    fn wake_crossed(&self) {
        // Relaxed: the Release of `wake` comes after it.
        self.words.word.fetch_and(!ASLEEP, Ordering::Relaxed);
        self.wake();
    }

    /// Wakes all members that sleep. Called after the write by which their bit has gone.
    #[cold]
    fn wake(&self) {
        // Release: pairs with the Acquire of `sleep`.
        self.words.wake_epoch.fetch_add(1, Ordering::Release);
        park::wake_all(&self.words.wake_epoch);
    }

    /// Breaks the phase of `arrival`, unless it is over. Returns its outcome.
    #[cold]
    pub(super) fn give_up(&self, arrival: Arrival) -> Result<(), Broken> {
        // Acquire: as a waiter's look, if the phase is over after all.
        let mut word = self.words.word.load(Ordering::Acquire);
        while !arrival.is_over(word) {
            let broken = self.broken_at(word, Broken::TimedOut);
            // Relaxed: a break publishes nothing. Acquire: as above.
            match self.words.word.compare_exchange_weak(
                word,
                broken,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(before) => {
                    self.wake_if_asleep(before);
                    return Err(Broken::TimedOut);
                }
                Err(now) => word = now,
            }
        }
        arrival.outcome(word)
    }

    /// Breaks the phase that arrivals now belong to, unless a phase is broken already.
    pub(super) fn break_with(&self, why: Broken) {
        // Relaxed: a break publishes nothing. What counts is the order of the word's own values.
        let before = self.words.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            (word < BROKEN).then(|| self.broken_at(word, why))
        });
        if let Ok(before) = before {
            self.wake_if_asleep(before);
        }
    }

    /// Wakes the members that sleep, if there are any, after `before` was replaced by a reason.
    fn wake_if_asleep(&self, before: u64) {
        if before & ASLEEP != 0 {
            self.wake();
        }
    }

    /// Returns the word that breaks the phase of `word`, in which no member sleeps.
    fn broken_at(&self, word: u64, why: Broken) -> u64 {
        let phase = (word / self.step) & PHASE_MASK;
        (u64::from(why as u32) << REASON_SHIFT) | (phase << PHASE_SHIFT)
    }

    /// Returns the reason if it is broken.
    pub(super) fn broken(&self) -> Option<Broken> {
        // Relaxed: a hint.
        reason(self.words.word.load(Ordering::Relaxed))
    }

    /// Returns how many members have arrived in the current phase: a hint, and 0 when it is broken.
    pub(super) fn arrived(&self) -> u64 {
        // Relaxed: a hint.
        let word = self.words.word.load(Ordering::Relaxed);
        if word < BROKEN { word % self.step / ONE } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_of_any_number_is_told_from_its_neighbours() {
        for phases in [0, 1, PHASE_MASK - 1, PHASE_MASK, PHASE_MASK + 1] {
            let arrivals = ArrivalWord::after(phases, 2);
            let first = arrivals.arrive().unwrap();
            assert!(!first.is_last() && !first.is_over(arrivals.word().load(Ordering::Relaxed)));
            assert!(arrivals.arrive().unwrap().is_last());
            let next = arrivals.arrive().unwrap();
            arrivals.break_with(Broken::Panicked);
            arrivals.break_with(Broken::Left);
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
        let arrivals = ArrivalWord::for_members(1_000).unwrap();
        let waits = arrivals.arrive().unwrap();
        assert_eq!(arrivals.give_up(waits), Err(Broken::TimedOut));
        let word = arrivals.word().load(Ordering::Relaxed);
        for _ in 0..(1 << 20) + 1 {
            assert!(arrivals.arrive().is_err());
        }
        assert_eq!(arrivals.word().load(Ordering::Relaxed), word);
        assert_eq!(waits.outcome(word), Err(Broken::TimedOut));
    }

    #[test]
    fn a_sleepers_bit_changes_no_count_and_no_phase() {
        let arrivals = ArrivalWord::after(5, 3);
        arrivals.words.word.fetch_or(ASLEEP, Ordering::Relaxed);
        let first = arrivals.arrive().unwrap();
        let second = arrivals.arrive().unwrap();
        assert!(!first.is_over(arrivals.word().load(Ordering::Relaxed)));
        assert_eq!((arrivals.arrived(), second.phase()), (2, 5));
        let last = arrivals.arrive().unwrap();
        let word = arrivals.word().load(Ordering::Relaxed);
        assert!(last.is_last() && first.is_over(word) && word & ASLEEP == 0);
        assert_eq!(
            arrivals.words.wake_epoch.load(Ordering::Relaxed),
            1,
            "the last one has woken them"
        );
        arrivals.words.word.fetch_or(ASLEEP, Ordering::Relaxed);
        let next = arrivals.arrive().unwrap();
        assert_eq!(next.phase(), 6);
        assert_eq!(arrivals.give_up(next), Err(Broken::TimedOut));
        assert_eq!(arrivals.words.wake_epoch.load(Ordering::Relaxed), 2);
        assert_eq!(first.outcome(arrivals.word().load(Ordering::Relaxed)), Ok(()));
    }
}
