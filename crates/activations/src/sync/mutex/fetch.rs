//! Critical-section recovery: a waiter brings the preempted owner to its own processor.
//!
//! The owner's word names its kernel thread, so the mark is a number that is stored anyway: a section that nobody interrupts pays nothing for it.
//!
//! A owner that is being fetched may not leave its kernel thread to others before its affinity is its own again. So its release is a hand-over to
//! the one that fetched it. But it need not be running at all: a user-level thread may have parked with the lock, or have moved on, and its kernel
//! thread, which was preempted, runs something else. So the fetch is given up after [`LONGEST`], and then the mutex is as if nothing had been.
//!
//! | flags | meaning | left by |
//! | --- | --- | --- |
//! | `FETCHED` | a waiter has brought the owner's kernel thread to its processor | that waiter, giving up; the owner, by adding `DONE` |
//! | `FETCHED`, `DONE` | between two holders | that waiter, by putting its number there |
//!
//! # Invariants
//!
//! 1. Only one waiter adds `FETCHED` to a owner's number. It gives the affinity back before it takes the flag away.
//! 2. A owner that finds `FETCHED` stays in `unlock` until the flag is gone, without leaving its kernel thread. A owner that never unlocks, or
//!    unlocks on another kernel thread than the word names, is brought for [`LONGEST`] in vain; what that does is move a thread for so long.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, section 3.3; the protocol is that of `stanchion_spin::Recovering`, with a bound.

use core::time::Duration;

use machine::atomic::Ordering;
use machine::clock::Deadline;
use machine::presence::{self, Presence};
use machine::wait::{Patient, WaitPolicy, wait_until, wait_until_deadline};

use super::{ABSENT, DONE, FETCHED, FREE, HOLDER, NAMELESS, RawMutex, holder_in};

/// For how long a owner is waited for that was fetched.
const LONGEST: Duration = Duration::from_micros(200);

/// The two that meet at a fetch share a processor: each lets the other run at once, and sleeps if that does not help.
type Yielding = Patient<0>;

/// Where the owner that the word names is, as far as can be told.
pub(super) fn presence_of(word: u32) -> Presence {
    match holder_in(word) {
        // It has been given the lock and has not come for it yet.
        ABSENT => Presence::Blocked,
        FREE | NAMELESS => Presence::Unknown,
        number => presence::of(number as usize - 1),
    }
}

impl<P> RawMutex<P> {
    /// Brings the owner of `seen` here if it is still that, and waits until it has released the lock, which is then the caller's. `false` if it was
    /// not to be had so.
    #[cold]
    pub(super) fn fetch(&self, seen: u32, me: u32, awake: u32, deadline: Deadline) -> bool {
        if seen & FETCHED != 0 || holder_in(seen) == me {
            return false;
        }
        // Relaxed: publishes nothing; that the owner stays is Invariant 2.
        let mine =
            self.word.compare_exchange(seen, seen | FETCHED, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_err() {
            return false;
        }
        if let Some(here) = presence::pull(holder_in(seen) as usize - 1) {
            let until = Deadline::after(LONGEST).min(deadline);
            // Relaxed: what takes the lock below acquires.
            wait_until_deadline(
                &self.word,
                Ordering::Relaxed,
                |word| word & DONE != 0,
                &mut Yielding::start(),
                until,
            );
            // Before the flag goes: Invariant 1.
            drop(here);
        }
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let done = word & DONE != 0;
            let next = if done {
                (word & !(HOLDER | FETCHED | DONE | awake)) | me
            } else {
                word & !FETCHED
            };
            // Acquire: pairs with the Release of `hand_over`, if it is done; Release: the end of the pull, to the owner that waits for it.
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return done,
                Err(now) => word = now,
            }
        }
    }

    /// The release of a owner that was fetched. `false` if the fetch was given up meanwhile.
    #[cold]
    pub(super) fn hand_over(&self, seen: u32) -> bool {
        let mut word = seen;
        while word & FETCHED != 0 {
            // Release: pairs with the Acquire of `fetch`.
            match self.word.compare_exchange(
                word,
                word | DONE,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let mine = holder_in(word) | DONE;
                    // Acquire: pairs with the Release of `fetch`: the affinity has been given back.
                    let gone = |now: u32| now & (HOLDER | DONE) != mine;
                    wait_until(&self.word, Ordering::Acquire, gone, &mut Yielding::start());
                    return true;
                }
                Err(now) => word = now,
            }
        }
        false
    }
}
