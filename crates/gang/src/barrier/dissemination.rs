//! The dissemination barrier: in round k member i signals member i + 2ᵏ. After log₂ n rounds each
//! member knows of all.
//!
//! Why not the tree: there the signal goes up and comes down again. Here it goes everywhere at
//! once, which is the shortest way from the last arrival to all. Why not always this: a phase takes
//! n log₂ n signals, where the others have n, and no member is the one that sees all arrive.
//!
//! So no member decides that a phase is crossed. A member that is through could have left a barrier
//! that breaks for the others. Here the arrivals themselves decide. The signal of round 0 is the
//! member's arrival, made by an exchange. A member that breaks the barrier freezes these words. A
//! member that finds its word frozen has not arrived, and will not. When all are frozen they say
//! for ever which phases all had arrived in.
//!
//! ```text
//! flags[i][0]      arrivals of member i - 1 (29 bits) | asleep (1) | reason (2): frozen if not 0
//! flags[i][k > 0]  last phase in which member i - 2ᵏ signalled i (29 bits)
//!                  | 0 | not 0: look at the arrivals
//!
//! from          to              by              meaning
//! (p, 0, 0)     (p, 1, 0)       a sleeper       wake it when this member arrives
//! (p, s, 0)     (p+1, 0, 0)     its member      has arrived in phase p
//! (p, s, 0)     (p, 0, reason)  any             will never arrive in phase p
//! ```
//!
//! # Sleepers
//!
//! A member that has spun in vain, in whatever round, sleeps on the word of the first member that
//! has not arrived (see `spin_then_sleep.rs`). Then it sleeps on that of the next one, until all
//! have arrived. Why not on the flag that it waits for: the sender of round k > 0 stores the flag,
//! and would have to exchange it to find out about a sleeper. Once all have arrived, each member is
//! awake and on its way through the rounds, or about to wake up. So the rest of the wait is as
//! short as the system lets it be, and the member spins again.
//!
//! # Invariants
//!
//! 1. A phase is crossed by the last arrival of n, or broken by the first freezing of the word of a
//!    member that has not arrived in it. Both are an exchange of the same value of one word, and a
//!    frozen word does not change. So it is one or the other, for all.
//! 2. A member that gets through all rounds knows that all have arrived: the signal of round k came
//!    from a member that knew of the 2ᵏ before it.
//! 3. A member that waits in phase p finds p + 1 in a flag when it has been signalled, or p + 2 if
//!    the sender is ahead, else p. So 29 bits are enough.
//! 4. A member that breaks the barrier marks all flags afterwards. A sender may write over a mark:
//!    then the member that waits there has what it waited for. A member that finds a mark freezes
//!    all words itself, and reads them. If all had arrived, it goes on. The members that it would
//!    have signalled in later rounds find marks as well.
//! 5. A member that has reached its deadline freezes the word of a member that has not arrived. If
//!    all have arrived, there is nothing to break, and nothing to wait for but that the members on
//!    their way through the rounds get there. It goes on without a deadline: by Invariant 3 no
//!    member begins a phase before it has all signals of the last.
//! 6. The reason that all members get is that of member n - 1's word, flags\[0\]\[0\]. Each member
//!    freezes it before it returns a reason.
//! 7. Only words of arrivals get the bit of a sleeper. A member that replaces a value with it, by
//!    arriving or freezing, wakes the members that sleep.
//!
//! # Orderings
//!
//! An arrival and each later signal are Release, each look Acquire. So what each member did is
//! passed on along the rounds. A member that reads the arrivals instead reads all with Acquire,
//! frozen or not. Freezing and marking are read-modify-writes, so they carry on what the value
//! before them released.
//!
//! Source: Hensgen, Finkel and Manber, "Two Algorithms for Barrier Synchronization", IJPP 1988;
//! Mellor-Crummey and Scott, TOCS 1991, section 3.3. There flags alternate between two sets and two
//! senses; a number does for both. That it can break is ours.

use core::cell::Cell;
use core::fmt;

use stanchion_machine::atomic::{AtomicBool, AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::topology::CachePadded;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use super::interface::{Barrier, Broken, Crossing, MOST_MEMBERS, WrongSize};
use super::spin_then_sleep::{ASLEEP, sleep_while, spin_then_sleep, wake_if_asleep};

/// One arrival. The bits below it are the reason and the sleepers.
const ONE: u32 = ASLEEP << 1;

/// A barrier for members that each have a processor, and wait through [`Waiter`](super::Waiter)s.
/// Member 0 leads.
///
/// - To cross: each member sends log₂ of their number of signals, rounded up. Unless a member is
///   late, no line is written by two members in a phase.
/// - Size: a line for each member and round.
/// - To break: n log₂ n writes.
/// - A deadline may be exceeded for as long as a member that has arrived is kept from its
///   processor.
/// - With more threads than processors: as its wait policy. Each round waits for a member that may
///   have no processor.
/// - A long wait: where its wait policy would sleep, a member sleeps until all have arrived. It may
///   wake once for each member that is late, on average the logarithm of their number.
///
/// ```
/// use stanchion_gang::{Waiter, barrier::Dissemination};
///
/// let barrier = Dissemination::new(5)?;
/// std::thread::scope(|scope| {
///     for mut waiter in Waiter::all(&barrier) {
///         let is_first = waiter.index() == 0;
///         scope.spawn(move || assert_eq!(waiter.wait().unwrap().is_leader(), is_first));
///     }
/// });
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Dissemination {
    /// The flags that each member waits for, one for each round, one member after the other.
    /// Members write the flags of the members that they signal.
    flags: Box<[CachePadded<AtomicU32>]>,
    /// The number of rounds.
    rounds: usize,
    /// The number of members.
    members: usize,
    /// True if a thread has begun to mark the flags. Written by it.
    marked: AtomicBool,
}

/// The state of a member of a [`Dissemination`] barrier.
#[derive(Debug)]
pub struct DisseminationState {
    /// Which member it is.
    index: usize,
    /// In how many phases it has arrived, as its word counts them.
    arrivals: u32,
}

impl Dissemination {
    /// Creates a barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        Self::after(0, members)
    }

    fn after(arrivals: u32, members: usize) -> Result<Self, WrongSize> {
        WrongSize::check(members, MOST_MEMBERS)?;
        // A member that is alone still has a word to be frozen.
        let rounds = (members.next_power_of_two().ilog2() as usize).max(1);
        let flag = |_| CachePadded::new(AtomicU32::fresh(arrivals));
        let flags = (0..members * rounds).map(flag).collect();
        Ok(Self { flags, rounds, members, marked: AtomicBool::fresh(false) })
    }

    /// Returns the flag that member `index` waits for in `round`.
    #[inline]
    fn flag(&self, index: usize, round: usize) -> &AtomicU32 {
        &self.flags[index * self.rounds + round]
    }

    /// Returns the flag by which member `index` signals another in `round`.
    #[inline]
    fn signal(&self, index: usize, round: usize) -> &AtomicU32 {
        // Less than twice the number of members.
        let other = index + (1 << round);
        self.flag(if other < self.members { other } else { other - self.members }, round)
    }

    /// Returns the words of all arrivals.
    fn arrivals(&self) -> impl Iterator<Item = &AtomicU32> {
        (0..self.members).map(|index| self.flag(index, 0))
    }

    /// Arrives in the phase after `before` arrivals.
    #[inline]
    fn arrive(&self, index: usize, before: u32) -> Result<(), Broken> {
        let (word, after) = (self.signal(index, 0), before.wrapping_add(ONE));
        // Release: pairs with the Acquire of the waiter of round 0 and of members that read the
        // arrivals. Relaxed: the word says all.
        match word.compare_exchange(before, after, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(asleep) if asleep == before | ASLEEP => self.arrive_and_wake(word, before),
            Err(frozen) => Err(self.reason(frozen)),
        }
    }

    /// Arrives as [`arrive`](Self::arrive), when a member sleeps until this one does.
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

    /// Waits for the signal in `flag`, and returns the flag; `None` if there is none at `deadline`.
    #[inline]
    fn wait_for_signal(
        &self,
        flag: &AtomicU32,
        before: u32,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Option<u32> {
        let is_sent = |flag: u32| flag & !ASLEEP != before;
        let slept = Cell::new(None);
        // Acquire, in there: pairs with the Release of the arrival or of the signal.
        let signal = spin_then_sleep(flag, is_sent, policy, deadline, || {
            slept.set(Some(self.sleep(before, deadline)));
            None
        });
        match slept.get() {
            None => signal,
            Some(false) => None,
            // Acquire: as above. A new policy: the rest of the wait is short, and the old policy
            // would sleep.
            Some(true) => {
                let mut patient = <Patient>::start();
                wait_until_deadline(flag, Ordering::Acquire, is_sent, &mut patient, deadline)
            }
        }
    }

    /// Sleeps until all members have arrived in the phase after `before` arrivals, or a word is
    /// frozen; returns whether that was before `deadline`.
    #[cold]
    fn sleep(&self, before: u32, deadline: Deadline) -> bool {
        self.arrivals().all(|word| sleep_while(word, before, deadline).is_some())
    }

    /// Freezes the word, unless it is frozen. Returns the frozen word.
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

    /// Returns the reason that all members get, when a word is found `frozen` (Invariant 6).
    #[cold]
    fn reason(&self, frozen: u32) -> Broken {
        let why = Broken::in_word(frozen).expect("only freezing keeps a member from arriving");
        let decides = Self::freeze(self.flag(0, 0), why);
        Broken::in_word(decides).expect("it is frozen now")
    }

    /// Returns the outcome of the phase after `before` arrivals, to a member that has found `mark`
    /// (Invariant 4).
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
            // Relaxed: a break publishes nothing. If the phase is crossed, what the arrivals
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
                // Release: pairs with the Acquire of the member that waits for it.
                self.signal(index, round).store(after, Ordering::Release);
            }
            let flag = self.flag(index, round);
            let signal = loop {
                match self.wait_for_signal(flag, before, policy, deadline) {
                    Some(signal) => break signal,
                    // All have arrived.
                    None => self.give_up(before).map(|()| deadline = Deadline::NEVER)?,
                }
            };
            // The flag is marked: read the arrivals.
            if arrivals(signal) == before {
                self.resolve(before, signal)?;
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
        // Relaxed: the first thread does the rest, and no thread waits for that.
        if self.marked.swap(true, Ordering::Relaxed) {
            return;
        }
        for index in 0..self.members {
            for round in 1..self.rounds {
                // Relaxed: a member that finds the mark reads the arrivals.
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
