//! The completion of a gang: as its members mean to, or early.
//!
//! Why a word beside the barrier, which can be broken for a reason itself: members read the word
//! where they do not wait, and it says which member it was. Members that sleep at the barrier are
//! woken when it is broken. Members that sleep because their slot is off are not woken: they run
//! only in their turn, and learn it then.
//!
//! ```text
//! ended   0, or the reason (2 bits) and the member
//! left    0, or 1 + the first member that returned
//! done    0, then 1
//!
//! a member returns an error or      ended = the reason, unless it is set;
//! panics, a thread cancels          then the barrier is broken
//!
//! a member returns its result       left = the member, unless it is set; then the barrier
//!                                   is broken, so that no member waits for it
//!
//! the last member is counted out    done = 1
//! ```
//!
//! # Invariants
//!
//! 1. `ended` is set once: the first reason says why the gang ended.
//! 2. `ended` and `left` are set before the barrier is broken. So a thread that finds the barrier
//!    broken finds the reason.
//!
//! # Orderings
//!
//! Breaking the barrier publishes nothing, so Invariant 2 takes fences: Release before breaking it,
//! Acquire after finding it broken. `done` is stored with Release and loaded with Acquire: a thread
//! that sees it sees the results.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering, fence};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

use crate::barrier::{Barrier, Broken, Central};
use crate::error::Ended;

const CODE_BITS: u32 = 2;
const CANCELLED: u32 = 1;
const PANICKED: u32 = 2;
const LEFT: u32 = 3;

/// The barrier of a gang, and how the gang ends.
pub struct Completion {
    /// The barrier at which the members meet.
    pub barrier: Central,
    /// Why the gang ended early. Written once, by any thread.
    ended: AtomicU32,
    /// The first member that has returned. Written by it.
    left: AtomicU32,
    /// 1 if all members have ended. Written by the last member's thread; joiners sleep on it.
    done: AtomicU32,
}

impl Completion {
    /// Creates the completion of a gang that runs.
    pub fn new(members: usize) -> Self {
        Self {
            barrier: Central::with_members(members).expect("a gang has at most 256 members"),
            ended: AtomicU32::fresh(0),
            left: AtomicU32::fresh(0),
            done: AtomicU32::fresh(0),
        }
    }

    /// Ends the gang early, unless it has ended. Its members learn it when they check.
    pub fn end(&self, why: Ended) {
        let word = match why {
            Ended::Cancelled => CANCELLED,
            Ended::Panicked { member } => PANICKED | (member as u32) << CODE_BITS,
            Ended::Left { member } => LEFT | (member as u32) << CODE_BITS,
        };
        // Relaxed: the fence of `break_barrier` orders it before the breaking (Invariant 2). A
        // member that checks early checks again.
        let _ = self.ended.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
        self.break_barrier(if matches!(why, Ended::Panicked { .. }) {
            Broken::Panicked
        } else {
            Broken::Left
        });
    }

    /// Records that `member` has returned, so that no member waits for it any more. Phases that it
    /// took part in stay crossed.
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

    /// Returns an error if the gang has ended early.
    #[inline]
    pub fn check(&self) -> Result<(), Ended> {
        // Relaxed: the thread that ends it publishes nothing with it.
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

    /// Returns why the barrier is broken. Called by a thread that has found it broken.
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

    /// Records that all members have ended, and that only handles and scopes still have a reference
    /// to the closure.
    pub fn set_done(&self) {
        // Release: pairs with the Acquire of `is_done`.
        self.done.store(1, Ordering::Release);
        park::wake_all(&self.done);
    }

    /// Returns whether all members have ended.
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
