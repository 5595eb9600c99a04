//! The phase word: decides a phase, crossed or broken, for barriers that count somewhere else.
//!
//! ```text
//! word     phase (29 bits) | asleep (1 bit) | reason (2 bits)
//!
//! from             to                   by               meaning
//! (p, 0, whole)    (p, 1, whole)        a sleeper        wake it when the phase is over
//! (p, s, whole)    (p+1, 0, whole)      one member       all have arrived: phase p is crossed
//! (p, s, whole)    (p, 0, reason)       any, once        phase p is broken, and all after it
//! ```
//!
//! `spin_then_sleep.rs` says how sleepers are woken.
//!
//! # Invariants
//!
//! 1. A phase is crossed or broken: both are an exchange of the same value.
//! 2. While a member waits in phase p, the phase is p or p + 1, since the next cannot be crossed
//!    without it. So 29 bits of it are enough.
//! 3. A member that replaces a value with the bit `asleep` wakes the members that sleep.
//!
//! # Orderings
//!
//! Crossing is Release: the member that crosses has acquired what all members released when they
//! arrived, and passes it on. A waiter's look is Acquire. A break publishes nothing.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::WaitPolicy;

use super::interface::Broken;
use super::spin_then_sleep::{ASLEEP, sleep_while, spin_then_sleep, wake_if_asleep};

/// The number of a phase, as the word has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase(u32);

/// One phase. The bits below it are the reason and the sleepers.
const ONE: u32 = ASLEEP << 1;

impl Phase {
    pub(super) const FIRST: Self = Self(0);
    /// The last phase before the number wraps around, for tests.
    #[cfg(test)]
    pub(super) const LAST: Self = Self(!(ONE - 1));

    /// Returns the phase after it.
    #[inline]
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(ONE))
    }

    /// Returns whether its number is odd. That alternates from phase to phase, across the wrap too.
    #[inline]
    pub(super) fn is_odd(self) -> bool {
        self.0 & ONE != 0
    }

    /// Returns the outcome of the phase, by a word that is not the phase's own.
    #[inline]
    fn outcome(self, word: u32) -> Result<(), Broken> {
        match Broken::in_word(word) {
            Some(why) if Self::of(word) == self => Err(why),
            _ => Ok(()),
        }
    }

    fn of(word: u32) -> Self {
        Self(word & !(ONE - 1))
    }
}

/// The word that decides phases. Members write it.
pub(super) struct PhaseWord(CachePadded<AtomicU32>);

impl PhaseWord {
    /// Creates the word as it is before `phase`.
    pub(super) fn before(phase: Phase) -> Self {
        Self(CachePadded::new(AtomicU32::fresh(phase.0)))
    }

    /// Returns the current phase, or the one that broke: a hint.
    pub(super) fn phase(&self) -> Phase {
        // Relaxed: a hint.
        Phase::of(self.0.load(Ordering::Relaxed))
    }

    /// Returns the reason if a phase is broken. It never misses a break that the caller itself has
    /// seen, but may miss others.
    #[inline]
    pub(super) fn broken(&self) -> Option<Broken> {
        // Relaxed: a break publishes nothing.
        Broken::in_word(self.0.load(Ordering::Relaxed))
    }

    /// Crosses the phase for all, unless it is broken. Called by one member, when all have arrived.
    #[inline]
    pub(super) fn cross(&self, phase: Phase) -> Result<(), Broken> {
        // Release: pairs with the Acquire of `wait`.
        let crossed =
            self.0.compare_exchange(phase.0, phase.next().0, Ordering::Release, Ordering::Relaxed);
        match crossed {
            Ok(_) => Ok(()),
            Err(word) if word == phase.0 | ASLEEP => self.cross_and_wake(phase),
            Err(word) => phase.outcome(word),
        }
    }

    /// Crosses as [`cross`](Self::cross), when a member sleeps.
    #[cold]
    fn cross_and_wake(&self, phase: Phase) -> Result<(), Broken> {
        let before = phase.0 | ASLEEP;
        // Release: as in `cross`.
        let crossed =
            self.0.compare_exchange(before, phase.next().0, Ordering::Release, Ordering::Relaxed);
        match crossed {
            Ok(before) => {
                wake_if_asleep(&self.0, before);
                Ok(())
            }
            Err(word) => phase.outcome(word),
        }
    }

    /// Waits until the phase is over, and returns its outcome; `None` if it is not at `deadline`.
    #[inline]
    pub(super) fn wait(
        &self,
        phase: Phase,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Option<Result<(), Broken>> {
        // Acquire, in there: pairs with the Release of `cross`.
        let seen = spin_then_sleep(
            &*self.0,
            |word| word & !ASLEEP != phase.0,
            policy,
            deadline,
            || sleep_while(&self.0, phase.0, deadline),
        );
        seen.map(|word| phase.outcome(word))
    }

    /// Breaks the phase, unless it is over. Returns its outcome, and whether that is the caller's.
    #[cold]
    pub(super) fn give_up(&self, phase: Phase) -> (Result<(), Broken>, bool) {
        let broken = phase.0 | Broken::TimedOut as u32;
        // Relaxed: a break publishes nothing. Acquire: as in `wait`, if the phase is crossed after
        // all.
        let gave_up = self.0.fetch_update(Ordering::Relaxed, Ordering::Acquire, |word| {
            (word & !ASLEEP == phase.0).then_some(broken)
        });
        match gave_up {
            Ok(before) => {
                wake_if_asleep(&self.0, before);
                (Err(Broken::TimedOut), true)
            }
            Err(word) => (phase.outcome(word), false),
        }
    }

    /// Breaks the current phase. Returns whether none was broken before.
    pub(super) fn break_with(&self, why: Broken) -> bool {
        // Relaxed: a break publishes nothing.
        let broken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            Broken::in_word(word).is_none().then_some(word & !ASLEEP | why as u32)
        });
        if let Ok(before) = broken {
            wake_if_asleep(&self.0, before);
        }
        broken.is_ok()
    }
}
