//! The central barrier: one word counts who has come, and says when all have.
//!
//! Why not two words, a count and a sense that is reversed: then a member reads the sense and counts itself in two steps, and one that has never
//! waited before can read a sense from long ago. One word tells both in one step, and between two members it needs one line less. Why not always this:
//! each arrival takes the line away from all who watch it.
//!
//! ```text
//! word     phase (15 bits) | arrived (15 bits) | reason (2 bits)
//!
//! from              to                who               meaning
//! (p, a, whole)     (p, a+1, whole)   an arrival        a+1 members have come
//! (p, n, whole)     (p+1, 0, whole)   the last arrival  phase p is crossed
//! (p, a, whole)     (p, a, reason)    anybody, once     phase p is broken, and all after it
//! ```
//!
//! # Invariants
//!
//! 1. The phase moves only while the word is whole, so a phase is crossed or broken, and the word's modification order says which.
//! 2. `arrived` is at most the number of members but for strangers: threads beyond that number, who may come while the last one is about to move the
//!    phase. Their arrival is wiped out with the count, and they arrive anew.
//! 3. While a member waits in phase p, the phase is p or p + 1: 15 bits of it are enough.
//!
//! # Orderings
//!
//! An arrival is AcqRel: it publishes what the member did, and the last one sees what all did. The last one moves the phase with Release; a waiter's
//! look has Acquire.
//!
//! Source: the sense-reversing barrier of Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors", TOCS
//! 1991, section 3.1, with the sense in the word of the count.

use core::fmt;
use core::time::Duration;

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::topology::CachePadded;
use machine::wait::{Patient, WaitPolicy, wait_until_deadline};

use super::{Barrier, Broken, Crossing, MOST_MEMBERS, REASON_BITS, WrongSize};

/// One arrival.
const ONE: u32 = 1 << REASON_BITS;
const COUNT_BITS: u32 = 15;
/// One phase.
const PHASE: u32 = ONE << COUNT_BITS;

/// A barrier in one word, which members need no names for.
///
/// | | |
/// | --- | --- |
/// | cache misses to cross | one for each arrival, one more for each waiter at the end; each arrival costs each waiter one |
/// | size | a line |
/// | more threads than processors | as its wait policy: [`Waiter`](super::Waiter)s and `wait` spin, then yield, then sleep in steps |
///
/// ```
/// use stanchion_gang::barrier::Central;
///
/// let barrier = Central::new(4)?;
/// let leaders = std::thread::scope(|scope| {
///     let members: Vec<_> =
///         (0..4).map(|_| scope.spawn(|| barrier.wait().unwrap().is_leader())).collect();
///     members.into_iter().map(|member| member.join().unwrap()).filter(|&leads| leads).count()
/// });
/// assert_eq!(leaders, 1);
/// # Ok::<(), stanchion_gang::WrongSize>(())
/// ```
pub struct Central {
    word: CachePadded<AtomicU32>,
    members: u32,
}

impl Central {
    /// A barrier for so many members.
    ///
    /// # Errors
    ///
    /// [`WrongSize`] if that is 0 or more than [`MOST_MEMBERS`].
    pub fn new(members: usize) -> Result<Self, WrongSize> {
        let members = WrongSize::check(members, MOST_MEMBERS)?;
        Ok(Self { word: CachePadded::new(AtomicU32::fresh(0)), members })
    }

    /// Waits for the others.
    ///
    /// # Errors
    ///
    /// [`Broken`] if it is.
    pub fn wait(&self) -> Result<Crossing, Broken> {
        self.wait_until(&mut <Patient>::start(), Deadline::NEVER)
    }

    /// Waits for the others, but breaks the barrier if they have not come within `timeout`.
    ///
    /// # Errors
    ///
    /// [`Broken`] if it is.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Crossing, Broken> {
        self.wait_until(&mut <Patient>::start(), Deadline::after(timeout))
    }

    fn wait_until(
        &self,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        loop {
            // AcqRel: pairs with itself in the other members, and with the Release of the last one of the phase before.
            let before = self.word.fetch_add(ONE, Ordering::AcqRel);
            if let Some(why) = Broken::in_word(before) {
                return Err(why);
            }
            let arrived = before / ONE % (1 << COUNT_BITS) + 1;
            if arrived == self.members {
                return self.cross(before);
            }
            // Acquire: pairs with the Release of `cross`.
            let seen = wait_until_deadline(
                &*self.word,
                Ordering::Acquire,
                |word| is_over(before, word),
                policy,
                deadline,
            );
            let seen = match seen {
                Some(seen) => seen,
                None => self.give_up(before),
            };
            if before / PHASE == seen / PHASE {
                return Err(
                    Broken::in_word(seen).expect("a phase that is over without moving is broken")
                );
            }
            if arrived < self.members {
                return Ok(Crossing::FOLLOWER);
            }
            // One too many for that phase: it counts in the next.
        }
    }

    /// Moves the phase on: the caller is the last of it.
    fn cross(&self, mut before: u32) -> Result<Crossing, Broken> {
        let next = (before / PHASE).wrapping_add(1).wrapping_mul(PHASE);
        before = before.wrapping_add(ONE);
        loop {
            // Release: pairs with the Acquire of those who wait, and with the arrivals of the next phase. It also passes on what the other members
            // published, which this thread has acquired by its arrival.
            match self.word.compare_exchange_weak(
                before,
                next,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Crossing::LEADER),
                Err(now) => {
                    if let Some(why) = Broken::in_word(now) {
                        return Err(why);
                    }
                    // A stranger has come (Invariant 2).
                    before = now;
                }
            }
        }
    }

    /// Breaks the phase of `before`, unless it is over; what the word is then.
    #[cold]
    fn give_up(&self, before: u32) -> u32 {
        // Acquire: pairs with the Release of `cross`, if the phase is over after all.
        let mut word = self.word.load(Ordering::Acquire);
        while !is_over(before, word) {
            let broken = word | Broken::TimedOut as u32;
            // Relaxed: that a barrier is broken publishes nothing. Acquire: as above.
            match self.word.compare_exchange_weak(
                word,
                broken,
                Ordering::Relaxed,
                Ordering::Acquire,
            ) {
                Ok(_) => return broken,
                Err(now) => word = now,
            }
        }
        word
    }
}

/// Whether the phase that `before` belongs to is crossed or broken, as `word` tells.
#[inline]
fn is_over(before: u32, word: u32) -> bool {
    before / PHASE != word / PHASE || Broken::in_word(word).is_some()
}

impl Barrier for Central {
    type Place = ();

    fn with_members(members: usize) -> Result<Self, WrongSize> {
        Self::new(members)
    }

    fn members(&self) -> usize {
        self.members as usize
    }

    fn place(&self, index: usize) -> Self::Place {
        assert!(index < self.members(), "member {index} of a barrier for {}", self.members);
    }

    #[inline]
    fn wait_at(
        &self,
        (): &mut Self::Place,
        policy: &mut impl WaitPolicy,
        deadline: Deadline,
    ) -> Result<Crossing, Broken> {
        self.wait_until(policy, deadline)
    }

    fn shatter(&self, why: Broken) {
        // Relaxed: that a barrier is broken publishes nothing; what counts is the order of the word's own values.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            Broken::in_word(word).is_none().then_some(word | why as u32)
        });
    }

    fn broken(&self) -> Option<Broken> {
        // Relaxed: a hint.
        Broken::in_word(self.word.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Central {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: a hint.
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Central")
            .field("members", &self.members)
            .field("arrived", &(word / ONE % (1 << COUNT_BITS)))
            .field("broken", &Broken::in_word(word))
            .finish()
    }
}
