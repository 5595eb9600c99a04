//! How a gang ends: as its members mean to, or before.
//!
//! Why a word beside the barrier, which can be broken for a reason itself: members look at the word
//! where they do not wait, and it says which member it was. Members that sleep at the barrier are
//! woken when it is broken. Why those that sleep because their slot is off are not: they run only
//! in their turn, and learn it then.
//!
//! ```text
//! ended   0, or why (2 bits) and by which member        left   0, or 1 + the first member that has returned        done   0, then 1
//!
//! a member returns an error, panics; somebody cancels     ended = why, unless it is set;  the barrier is broken
//! a member returns its result                             left = it, unless it is set;    the barrier is broken: nobody may wait for it
//! the last member has counted itself out                  done = 1
//! ```
//!
//! # Invariants
//!
//! 1. `ended` is set once: who was first says why the gang ended.
//! 2. `ended` and `left` are set before the barrier is broken, so who finds it broken can say why.
//!
//! # Orderings
//!
//! A barrier that is broken publishes nothing, so Invariant 2 takes fences: Release before breaking
//! it, Acquire after finding it broken. `done` is stored with Release and loaded with Acquire: who
//! sees it sees the results.

use machine::atomic::{AtomicU32, Fresh, Ordering, fence};
use machine::clock::Deadline;
use machine::park;

use crate::barrier::{Barrier, Broken, Central};
use crate::error::Ended;

const CODE_BITS: u32 = 2;
const CANCELLED: u32 = 1;
const PANICKED: u32 = 2;
const LEFT: u32 = 3;

/// The barrier of a gang, and how it ends.
pub struct Completion {
    pub barrier: Central,
    ended: AtomicU32,
    left: AtomicU32,
    done: AtomicU32,
}

impl Completion {
    pub fn new(members: usize) -> Self {
        Self {
            barrier: Central::with_members(members).expect("as many as there are seats at most"),
            ended: AtomicU32::fresh(0),
            left: AtomicU32::fresh(0),
            done: AtomicU32::fresh(0),
        }
    }

    /// Ends the gang, unless it has ended: its members learn it when they look.
    pub fn end(&self, why: Ended) {
        let word = match why {
            Ended::Cancelled => CANCELLED,
            Ended::Panicked { member } => PANICKED | (member as u32) << CODE_BITS,
            Ended::Left { member } => LEFT | (member as u32) << CODE_BITS,
        };
        // Relaxed: the fence orders it before the breaking (Invariant 2); a member that looks early
        // looks again.
        let _ = self.ended.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
        self.break_barrier(if matches!(why, Ended::Panicked { .. }) {
            Broken::Panicked
        } else {
            Broken::Left
        });
    }

    /// A member has returned: nobody may wait for it any more. Phases that it was in stay crossed.
    pub fn leave(&self, member: usize) {
        // Relaxed: as above.
        let _ =
            self.left.compare_exchange(0, member as u32 + 1, Ordering::Relaxed, Ordering::Relaxed);
        self.break_barrier(Broken::Left);
    }

    fn break_barrier(&self, why: Broken) {
        // Release: pairs with the fence of `reason`.
        fence(Ordering::Release);
        self.barrier.break_with(why);
    }

    /// Whether the gang has ended.
    #[inline]
    pub fn check(&self) -> Result<(), Ended> {
        // Relaxed: who ends it publishes nothing with it.
        match self.ended.load(Ordering::Relaxed) {
            0 => Ok(()),
            word => Err(Self::decode(word)),
        }
    }

    #[cold]
    fn decode(word: u32) -> Ended {
        let member = (word >> CODE_BITS) as usize;
        match word & ((1 << CODE_BITS) - 1) {
            CANCELLED => Ended::Cancelled,
            PANICKED => Ended::Panicked { member },
            _ => Ended::Left { member },
        }
    }

    /// Why the barrier is broken, which the caller has found.
    #[cold]
    pub fn reason(&self) -> Ended {
        // Acquire: pairs with the fence of `break_barrier`.
        fence(Ordering::Acquire);
        self.check().err().unwrap_or_else(|| {
            // Relaxed: as above.
            let left = self.left.load(Ordering::Relaxed);
            Ended::Left { member: left.saturating_sub(1) as usize }
        })
    }

    /// All members have ended, and nobody but handles and scopes has a share of the closure.
    pub fn set_done(&self) {
        // Release: pairs with the Acquire of `is_done`.
        self.done.store(1, Ordering::Release);
        park::wake_all(&self.done);
    }

    pub fn is_done(&self) -> bool {
        // Acquire: pairs with the Release above: the results are there.
        self.done.load(Ordering::Acquire) != 0
    }

    /// Sleeps until all members have ended.
    pub fn wait(&self) {
        while !self.is_done() {
            park::wait(&self.done, 0, Deadline::NEVER);
        }
    }
}
