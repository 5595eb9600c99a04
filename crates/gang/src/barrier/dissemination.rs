//! The dissemination barrier: in round k member i tells member i + 2ᵏ, and after log₂ n rounds each
//! knows of all.
//!
//! Why not the tree: there the news goes up and comes down again, here it goes everywhere at once:
//! the shortest way from the last arrival to all. Why not always this: n log₂ n signals a phase,
//! where the others have n, and no member is the one that sees all come.
//!
//! So no member decides that a phase is crossed, and one that is through could have left a barrier
//! that breaks for the others. The arrivals themselves decide here. The signal of round 0 is the
//! member's arrival, made by an exchange. A member that breaks the barrier does it by freezing
//! these words: one that finds its word frozen has not arrived, and will not. When all are frozen
//! they say for ever which phases all had arrived in.
//!
//! ```text
//! flags[i][0]      arrivals of member i - 1 (29 bits) | asleep (1 bit) | reason (2 bits): frozen if not 0
//! flags[i][k > 0]  the last phase of which member i - 2ᵏ told i (29 bits) | 0 | not 0: look at the arrivals
//!
//! from          to              by                         meaning
//! (p, 0, 0)     (p, 1, 0)       a sleeper                  wake it when this member arrives (`spin_then_sleep.rs`)
//! (p, s, 0)     (p+1, 0, 0)     its member                 has arrived in phase p
//! (p, s, 0)     (p, 0, reason)  any                        will never arrive in phase p
//! ```
//!
//! # Sleepers
//!
//! A member that has watched in vain, in whatever round, sleeps on the word of the first member
//! that has not arrived, then on that of the next one, until all have arrived. Why not on the flag
//! that it waits for: the teller of round k > 0 stores it, and would have to exchange it to find
//! out about a sleeper. Once all have arrived, each member is awake and on its way through the
//! rounds, or about to wake up. So what is left of the wait is as short as the system lets it be,
//! and the member watches again.
//!
//! # Invariants
//!
//! 1. A phase is crossed by the last arrival of n, or broken by the first freezing of a word whose
//!    member has not arrived in it. Both are an exchange of the same value of one word, and a
//!    frozen word does not change: so it is one or the other, for all.
//! 2. Who comes through all rounds knows that all have arrived: what it was told in round k was
//!    told by one who knew of the 2ᵏ before it.
//! 3. A member that waits in phase p finds p + 1 or, if the teller is ahead, p + 2 in a flag when
//!    it has been told, else p. So 29 bits are enough.
//! 4. Who breaks the barrier marks all flags afterwards. A teller may write over a mark: then who
//!    waits there has what it waited for. One that finds a mark freezes all words itself, and asks
//!    them. If all had arrived, it goes on; those that it would have told in later rounds find
//!    marks as well.
//! 5. One whose deadline passes freezes the word of one that has not arrived. If all have, there is
//!    nothing to break, and nothing to wait for but that those on their way through the rounds get
//!    there: it goes on without deadline, for by Invariant 3 nobody begins a phase before it has
//!    been told all of the last.
//! 6. The reason that all are told is that of member n - 1's word, flags\[0\]\[0\], which each
//!    freezes before it says a reason.
//!
//! 7. Only words of arrivals get the bit of a sleeper. A member that replaces a value with it, by
//!    arriving or freezing, wakes the members that sleep.
//!
//! # Orderings
//!
//! An arrival and each later signal are Release, each look Acquire: so what each member did is
//! passed on along the rounds. Who asks the arrivals instead looks at all with Acquire, frozen or
//! not. Freezing and marking are read-modify-writes, so they carry on what the value before them
//! released.
//!
//! Source: Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 1988;
//! Mellor-Crummey and Scott, TOCS 1991, section 3.3. There flags alternate between two sets and two
//! senses; a number does for both. That it can break is ours.

use core::cell::Cell;
use core::fmt;

use machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::topology::CachePadded;
use machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use super::interface::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};
use super::spin_then_sleep::{ASLEEP, sleep_while, spin_then_sleep, wake_if_asleep};

/// One arrival. The bits below are those of the reason and of sleepers.
const ONE: u32 = ASLEEP << 1;

/// A barrier for members that each have a processor, and wait through [`Waiter`](super::Waiter)s.
/// Member 0 leads.
///
/// | | |
/// | --- | --- |
/// | to cross | log₂ of the members, rounded up, signals for each; no line is written by more than one in a phase, unless a member is late |
/// | size | a line for each member and round |
/// | to break | n log₂ n writes |
/// | deadline | may pass by as long as a member that has arrived is kept from its processor |
/// | more threads than processors | as its wait policy; each round waits for one that may have no processor |
/// | a long wait | where its wait policy would sleep, a member sleeps until all have arrived; it may wake once for each that is late, log of their number on average |
///
/// ```
/// use stanchion_gang::{Waiter, barrier::Dissemination};
///
/// let barrier = Dissemination::new(5)?;
/// std::thread::scope(|scope| {
///     for mut waiter in Waiter::all(&barrier) {
///         scope.spawn(move || assert_eq!(waiter.wait().unwrap().is_leader(), waiter.index() == 0));
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Dissemination {
    /// Those that each member waits for, one for each round, one member after the other.
    flags: Box<[CachePadded<AtomicU32>]>,
    rounds: usize,
    members: usize,
    /// Somebody marks the flags.
    marked: AtomicBool,
}

/// A member of a [`Dissemination`] barrier.
#[derive(Debug)]
pub struct DisseminationState {
    index: usize,
    /// In how many phases it has arrived, as its word says it.
    arrivals: u32,
}

impl Dissemination {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        Self::after(0, members)
    }

    fn after(arrivals: u32, members: usize) -> Result<Self, WrongSize> {
        WrongSize::check(members, MOST_MEMBERS)?;
        // One that is alone still has a word to be frozen.
        let rounds = (members.next_power_of_two().ilog2() as usize).max(1);
        let flag = |_| CachePadded::new(AtomicU32::fresh(arrivals));
        let flags = (0..members * rounds).map(flag).collect();
        Ok(Self { flags, rounds, members, marked: AtomicBool::fresh(false) })
    }

    /// What member `index` waits for in `round`.
    #[inline]
    fn flag(&self, index: usize, round: usize) -> &AtomicU32 {
        &self.flags[index * self.rounds + round]
    }

    /// What member `index` tells another by in `round`.
    #[inline]
    fn signal(&self, index: usize, round: usize) -> &AtomicU32 {
        // Less than twice as many.
        let other = index + (1 << round);
        self.flag(if other < self.members { other } else { other - self.members }, round)
    }

    /// The words of all arrivals.
    fn arrivals(&self) -> impl Iterator<Item = &AtomicU32> {
        (0..self.members).map(|index| self.flag(index, 0))
    }

    /// Arrives in the phase after so many.
    #[inline]
    fn arrive(&self, index: usize, before: u32) -> Result<(), Broken> {
        let (word, after) = (self.signal(index, 0), before.wrapping_add(ONE));
        // Release: pairs with the Acquire of the waiter of round 0 and of those that ask the
        // arrivals. Relaxed: the word says all.
        match word.compare_exchange(before, after, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(asleep) if asleep == before | ASLEEP => self.arrive_and_wake(word, before),
            Err(frozen) => Err(self.reason(frozen)),
        }
    }

    /// The same when a member sleeps until this one arrives.
    #[cold]
    fn arrive_and_wake(&self, word: &AtomicU32, before: u32) -> Result<(), Broken> {
        let (asleep, after) = (before | ASLEEP, before.wrapping_add(ONE));
        // Release, Relaxed: as in `arrive`.
        match word.compare_exchange(asleep, after, Ordering::Release, Ordering::Relaxed) {
            Ok(asleep) => {
                wake_if_asleep(word, asleep);
                Ok(())
            }
            Err(frozen) => Err(self.reason(frozen)),
        }
    }

    /// Waits until the member has been told by `flag`, and returns the flag; `None` if it has not
    /// been told at `deadline`.
    #[inline]
    fn wait_for_signal(
        &self,
        flag: &AtomicU32,
        before: u32,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Option<u32> {
        let is_told = |flag: u32| flag & !ASLEEP != before;
        let slept = Cell::new(None);
        // Acquire, in there: pairs with the Release of the arrival or of the signal.
        let told = spin_then_sleep(flag, is_told, policy, deadline, || {
            slept.set(Some(self.sleep(before, deadline)));
            None
        });
        match slept.get() {
            None => told,
            Some(false) => None,
            // Acquire: as above. A new policy: the rest of the wait is short, and the old one is
            // tired.
            Some(true) => {
                let mut patient = <Patient>::start();
                wait_until_deadline(flag, Ordering::Acquire, is_told, &mut patient, deadline)
            }
        }
    }

    /// Sleeps until all members have arrived in the phase after `before` arrivals, or a word is
    /// frozen; returns whether that was before `deadline`.
    #[cold]
    fn sleep(&self, before: u32, deadline: Deadline) -> bool {
        self.arrivals().all(|word| sleep_while(word, before, deadline).is_some())
    }

    /// Freezes the word, unless it is; returns what it then is.
    fn freeze(word: &AtomicU32, why: Broken) -> u32 {
        let frozen = |now| arrivals(now) | why as u32;
        // Acquire: pairs with the arrival, for `resolve`.
        let before = word.fetch_update(Ordering::Acquire, Ordering::Acquire, |now| {
            Broken::in_word(now).is_none().then(|| frozen(now))
        });
        match before {
            Ok(before) => {
                wake_if_asleep(word, before);
                frozen(before)
            }
            Err(frozen) => frozen,
        }
    }

    /// What all are told, if a word is found `frozen` (Invariant 6).
    #[cold]
    fn reason(&self, frozen: u32) -> Broken {
        let why = Broken::in_word(frozen).expect("only freezing keeps a member from arriving");
        let decides = Self::freeze(self.flag(0, 0), why);
        Broken::in_word(decides).expect("it is frozen now")
    }

    /// What became of the phase after `before` arrivals, for one that found `mark` (Invariant 4).
    #[cold]
    fn resolve(&self, before: u32, mark: u32) -> Result<(), Broken> {
        let why = self.reason(mark);
        let mut outcome = Ok(());
        for word in self.arrivals() {
            let frozen = Self::freeze(word, why);
            if arrivals(frozen) == before {
                outcome = Err(frozen);
            }
        }
        outcome.map_err(|frozen| self.reason(frozen))
    }

    /// Breaks the phase after `before` arrivals, unless all have arrived in it (Invariant 5).
    #[cold]
    fn give_up(&self, before: u32) -> Result<(), Broken> {
        let frozen = before | Broken::TimedOut as u32;
        for word in self.arrivals() {
            // Relaxed: that a barrier is broken publishes nothing. If it is not, what the arrivals
            // published comes along the rounds.
            let gave_up = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
                (now & !ASLEEP == before).then_some(frozen)
            });
            match gave_up {
                Ok(replaced) => {
                    wake_if_asleep(word, replaced);
                    self.break_with(Broken::TimedOut);
                    return Err(self.reason(frozen));
                }
                Err(now) if arrivals(now) == before => return Err(self.reason(now)),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns the arrivals of a word, without a reason or a sleeper.
#[inline]
fn arrivals(word: u32) -> u32 {
    word & !(ONE - 1)
}

impl Barrier for Dissemination {
    type MemberState = DisseminationState;

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.members
    }

    fn member_state(&self, index: usize) -> Self::MemberState {
        assert!(index < self.members, "member {index} of a barrier for {}", self.members);
        // Relaxed: the member has not arrived yet.
        let arrivals = arrivals(self.signal(index, 0).load(Ordering::Relaxed));
        DisseminationState { index, arrivals }
    }

    #[inline]
    fn wait_at(
        &self,
        state: &mut Self::MemberState,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        let DisseminationState { index, arrivals: before } = *state;
        let after = before.wrapping_add(ONE);
        self.arrive(index, before)?;
        let mut deadline = deadline;
        for round in 0..self.rounds {
            if round > 0 {
                // Release: pairs with the Acquire of who waits for it.
                self.signal(index, round).store(after, Ordering::Release);
            }
            let flag = self.flag(index, round);
            let told = loop {
                match self.wait_for_signal(flag, before, policy, deadline) {
                    Some(told) => break told,
                    // All have come.
                    None => self.give_up(before).map(|()| deadline = Deadline::NEVER)?,
                }
            };
            if arrivals(told) == before {
                self.resolve(before, told)?;
                break;
            }
        }
        state.arrivals = after;
        Ok(Crossing::of_leader(index == 0))
    }

    fn break_with(&self, why: Broken) {
        let why = self.reason(why as u32);
        for word in self.arrivals() {
            Self::freeze(word, why);
        }
        // Relaxed: whoever is first does the rest, and nobody waits for that.
        if self.marked.swap(true, Ordering::Relaxed) {
            return;
        }
        for index in 0..self.members {
            for round in 1..self.rounds {
                // Relaxed: who finds the mark asks the arrivals.
                self.flag(index, round).fetch_or(why as u32, Ordering::Relaxed);
            }
        }
    }

    fn broken(&self) -> Option<Broken> {
        // Relaxed: a hint.
        Broken::in_word(self.flag(0, 0).load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Dissemination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dissemination")
            .field("members", &self.members)
            .field("broken", &self.broken())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::barrier::tests::crosses;

    #[test]
    fn arrivals_wrap_around() {
        for members in [2, 3, 8, 23] {
            crosses(&Dissemination::after(!(ONE - 1), members).unwrap());
        }
    }
}
