//! The wait of a thread for its turn on a peg: a letter under a lock, and a word to sleep
//! on.
//!
//! This is the condition variable of a monitor, for one waiter. The lock is of the kind that is
//! being studied. The sleeping is done on a word of its own, because a thread that waits for
//! another to *do* something waits too long to spin.
//!
//! ```text
//! word                 moved by                              meaning
//! even n -> n + 2      a thread that wakes, under the lock   a letter has come
//! n -> n | 1           any thread, any number of times       a thread is gone: no letter will come
//! ```
//!
//! # Invariants
//!
//! 1. A thread that is to be woken has asked for it, under the lock of a peg, and waits for that
//!    before it asks again. So at most one letter is on the way.
//! 2. The word is read under the lock when there is no letter. A letter that comes later changes
//!    the word, so sleeping on the value that was read misses none ([`stanchion_machine::park`]).
//!
//! # Orderings
//!
//! All are `Relaxed`. The lock passes a letter on. Its message, that a step has been made, is read
//! under the lock of the peg. The word only tells when to look. The word alone tells that no letter
//! will come, and carries no data.

use crate::named::{Ledger, Locksmith, Named};
use crate::pace::{Pace, SECTION};
use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicU32, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::{park, wait};

/// The bit of the word that is set once a thread is gone.
const BROKEN: u32 = 1;

/// The time for which a thread looks before it sleeps, in nanoseconds. It is less than the cost of
/// going to sleep: the threads are many, and another one has use for the processor.
const SPIN_NS: u64 = 2_000;

/// Another thread is gone, and what this one waits for will never come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken;

/// The data under the lock.
#[derive(Debug, Default)]
struct Letter {
    /// Set when a letter has come. Written by the thread that wakes, cleared by the waiter.
    come: bool,
    /// Set while the waiter sleeps, or is about to. Written by the waiter.
    asleep: bool,
}

/// One thread's.
pub(super) struct Post<L> {
    /// The letter.
    letter: Named<L, Letter>,
    /// The word to sleep on. Written by threads that wake, and by a thread that is gone.
    word: AtomicU32,
    /// The pace of a simulated machine.
    pace: Pace,
}

impl<L: RawMutex> Post<L> {
    pub(super) fn new(thread: usize, pace: Pace, locks: &mut Locksmith<'_, L>) -> Self {
        Self {
            letter: locks.lock(format!("post {thread}"), Letter::default()),
            word: AtomicU32::new(0),
            pace,
        }
    }

    /// Waits for a letter, and takes it.
    pub(super) fn wait(&self, ledger: &mut Ledger) -> Result<(), Broken> {
        loop {
            let seen = {
                let mut letter = ledger.lock(&self.letter);
                stanchion_machine::write(&*letter);
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
            // From now on a thread that wakes knows that this one sleeps. If a letter has come by
            // now, the word has changed (Invariant 2).
            ledger.lock(&self.letter).asleep = true;
            park::wait(&self.word, seen, Deadline::NEVER);
        }
    }

    /// Sends the letter that was asked for.
    pub(super) fn send(&self, ledger: &mut Ledger) {
        let asleep = {
            let mut letter = ledger.lock(&self.letter);
            stanchion_machine::write(&*letter);
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
