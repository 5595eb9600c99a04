//! Where a thread waits until it is told that its turn on a peg has come: a letter under a lock,
//! and a word to sleep on.
//!
//! This is the condition variable of a monitor, for one waiter. The lock is of the kind that is
//! being studied; the sleeping is done on a word of its own, because a thread that waits for
//! another to *do* something waits too long to spin.
//!
//! ```text
//! word                 who moves it                          meaning
//! even n -> n + 2      who rings, under the lock             a letter has come
//! n -> n | 1           anybody, any number of times          somebody is gone: nothing more will come
//! ```
//!
//! # Invariants
//!
//! 1. Who is to be rung has asked for it, under the lock of a peg, and waits for that before asking
//!    again: at most one letter is on the way.
//! 2. The word is read under the lock when there is no letter. A letter that comes later changes
//!    the word, so sleeping on the value that was read misses none ([`machine::park`]).
//!
//! # Orderings
//!
//! All are `Relaxed`. A letter is told by the lock, and what it says, that a step has been made, is
//! read under the lock of the peg; the word only says when to look. That nothing more will come is
//! told by the word alone and carries no data.

use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use lock_api::RawMutex;
use machine::atomic::{AtomicU32, Ordering};
use machine::clock::Deadline;
use machine::{park, wait};

/// Set in the word once somebody is gone.
const BROKEN: u32 = 1;

/// How long a thread looks before it sleeps, in nanoseconds. Less than what going to sleep costs:
/// the threads are many, and another has use for the processor.
const SPIN_NS: u64 = 2_000;

/// Another thread is gone, and what this one waits for will never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// What the lock guards.
#[derive(Debug, Default)]
struct Letter {
    come: bool,
    asleep: bool,
}

/// One thread's.
pub(super) struct Post<L> {
    letter: Named<L, Letter>,
    word: AtomicU32,
    pace: Pace,
}

impl<L: RawMutex> Post<L> {
    pub(super) fn new(who: usize, pace: Pace, locks: &mut Locksmith<'_, L>) -> Self {
        Self {
            letter: locks.lock(format!("post {who}"), Letter::default()),
            word: AtomicU32::new(0),
            pace,
        }
    }

    /// Waits for a letter, and takes it.
    pub(super) fn wait(&self, ledger: &mut Ledger) -> Result<(), Broken> {
        loop {
            let seen = {
                let mut letter = ledger.lock(&self.letter);
                machine::write(&*letter);
                self.pace.compute(SECTION);
                letter.asleep = false;
                if core::mem::take(&mut letter.come) {
                    return Ok(());
                }
                // Relaxed: see the header.
                self.word.load(Ordering::Relaxed)
            };
            if seen & BROKEN != 0 {
                return Err(Broken);
            }
            let changed = |word: u32| word != seen;
            // Relaxed: see the header.
            if wait::spin_for(&self.word, Ordering::Relaxed, changed, SPIN_NS).is_some() {
                continue;
            }
            // Who rings from now on knows that this thread sleeps; if somebody has rung by now, the
            // word is not what it was (Invariant 2).
            ledger.lock(&self.letter).asleep = true;
            park::wait(&self.word, seen, Deadline::NEVER);
        }
    }

    /// Sends the letter that was asked for.
    pub(super) fn ring(&self, ledger: &mut Ledger) {
        let asleep = {
            let mut letter = ledger.lock(&self.letter);
            machine::write(&*letter);
            self.pace.compute(SECTION);
            letter.come = true;
            // Relaxed: see the header. The last bit stays as it is.
            self.word.fetch_add(2, Ordering::Relaxed);
            letter.asleep
        };
        if asleep {
            park::wake_one(&self.word);
        }
    }

    /// Says that nothing more will come. Takes no lock: the lock may be what went wrong.
    pub(super) fn give_up(&self) {
        // Relaxed: see the header.
        self.word.fetch_or(BROKEN, Ordering::Relaxed);
        park::wake_all(&self.word);
    }
}
