//! Critical-section recovery: a waiter brings the preempted holder to its own processor.
//!
//! The word names the kernel thread of the holder. That is a number that is stored anyway, so a
//! section that is not interrupted pays nothing for it.
//!
//! A holder that is being fetched must not leave its kernel thread to others before its affinity
//! is its own again. So its release is a hand-over to the waiter that fetched it. But it need not
//! be running at all: a user-level thread may have parked with the lock, or may have moved, and
//! its kernel thread, which was preempted, runs another one. So the fetch is given up after
//! [`LONGEST`], and then the mutex is as if nothing had been.
//!
//! - `FETCHED`. Meaning: a waiter has brought the holder's kernel thread to its processor. Changed
//!   by: that waiter, which gives up; the holder, which adds `DONE`.
//! - `FETCHED`, `DONE`. Meaning: between two holders. Changed by: that waiter, which puts its
//!   number there.
//!
//! # Invariants
//!
//! 1. Only one waiter adds `FETCHED` to a holder's number. It gives the affinity back before it
//!    clears the flag.
//! 2. A holder that finds `FETCHED` stays in `unlock` until the flag is gone, without leaving its
//!    kernel thread. If a holder never unlocks, or unlocks on another kernel thread than the word
//!    names, the kernel thread is brought for [`LONGEST`] in vain. That only moves a thread for so
//!    long.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, section 3.3; the protocol is that of
//! `stanchion_spin::Recovering`, with a bound.

use core::time::Duration;

use stanchion_machine::atomic::Ordering;
use stanchion_machine::clock::Deadline;
use stanchion_machine::presence::{self, Presence};
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until, wait_until_deadline};

use super::{ABSENT, DONE, FETCHED, FREE, HOLDER, NAMELESS, RawMutex, holder_in};

/// The longest wait for a holder that was fetched.
const LONGEST: Duration = Duration::from_micros(200);

/// The wait policy of the two threads of a fetch. They share a processor: each lets the other run
/// at once, and sleeps if that does not help.
type Yielding = Patient<0>;

/// Returns the presence of the holder that the word names, as far as it can be observed.
pub(super) fn presence_of(word: u32) -> Presence {
    match holder_in(word) {
        // A waiter has been given the lock, and has not come for it yet.
        ABSENT => Presence::Blocked,
        FREE | NAMELESS => Presence::Unknown,
        number => presence::of(number as usize - 1),
    }
}

impl<P> RawMutex<P> {
    /// Brings the holder of `seen` here, if it is still the holder, and waits until it has released
    /// the lock, which is then the caller's. Returns `false` if that was in vain.
    #[cold]
    pub(super) fn fetch(&self, seen: u32, me: u32, awake: u32, deadline: Deadline) -> bool {
        if seen & FETCHED != 0 || holder_in(seen) == me {
            return false;
        }
        // Relaxed: publishes nothing; that the holder stays is Invariant 2.
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
            // Acquire: pairs with the Release of `hand_over`, if it is done. Release: the end of
            // the pull, for the holder that waits for it.
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return done,
                Err(now) => word = now,
            }
        }
    }

    /// Releases the lock of a holder that was fetched. Returns `false` if the fetch was given up
    /// meanwhile.
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
