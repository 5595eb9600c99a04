//! How a worker stands to its slot: one word, which settles who may use the slot when the worker
//! may be stuck in the kernel.
//!
//! A worker that runs a thread may block anywhere: in a system call, in a page fault. Another one
//! then takes its slot away and goes on with the threads that are ready there. It must not do so
//! while the worker is in the middle of the slot's queues. So the worker says which of the two it
//! is in, and the taker asks by exchanging: either the worker sees that the slot is gone before it
//! touches it, or the taker sees that it is in use.
//!
//! `THREAD` names the slot. A taker has found the worker by its slot, and by the time of the
//! exchange the worker may have lost that one, and run on another; it would take this one, and
//! believe that it has the first.
//!
//! Why not a flag and a fence on each side: the exchange costs the worker 6 ns where its line is
//! its own, and says both at once.
//!
//! | word | the worker | left by |
//! | --- | --- | --- |
//! | `SCHEDULER` | has a slot, and is in the scheduler, perhaps asleep there | itself, for `THREAD`, or `IDLE` or `WAITING` when it has given the slot away |
//! | `THREAD` | has a slot, and runs a thread | itself, for `SCHEDULER`; a taker, for `LOST` |
//! | `LOST` | runs a thread, and has no slot any more | itself, for `IDLE` or `WAITING` |
//! | `IDLE` | has no slot, and nothing to run: it sleeps | a giver, for `SCHEDULER`; who readies a thread of it, for `WAITING` |
//! | `WAITING` | has no slot; threads that only it can run are ready: it sleeps | a giver, for `SCHEDULER` |
//! | `ENDED` | is to end | nobody |
//!
//! # Invariants
//!
//! 1. A slot is used by the worker that stands `SCHEDULER` on it, and by nobody else. Who moves a
//!    word to `LOST` has the slot until it gives it on.
//! 2. Words move to and from `IDLE` and `WAITING` under the idle_workers's lock (`idle_workers.rs`).
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | leave: `SCHEDULER` to `THREAD` | Release | the taker's Acquire exchange: what was done on the slot |
//! | enter: `THREAD` to `SCHEDULER` | Relaxed | nobody: nobody else has had the slot |
//! | take: `THREAD` to `LOST` | Acquire | the Release of leave |
//! | give: to `SCHEDULER` | Release | the Acquire look of the worker that wakes up |

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;

const SCHEDULER: u32 = 0;
const THREAD: u32 = 1;
const LOST: u32 = 2;
const IDLE: u32 = 3;
const WAITING: u32 = 4;
const ENDED: u32 = 5;

/// The states' bits. Above them, in `THREAD` only, is the slot.
const STATE: u32 = 7;

fn user(slot: usize) -> u32 {
    THREAD | (slot as u32) << STATE.count_ones()
}

/// The word of one worker.
pub(crate) struct Ownership(AtomicU32);

/// What a worker that slept without a slot wakes up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// It has a slot.
    Slot,
    /// It is to end.
    End,
}

impl Ownership {
    /// Of a worker that has a slot.
    pub(crate) fn with_slot() -> Self {
        Self(AtomicU32::fresh(SCHEDULER))
    }

    /// Of one that has none.
    pub(crate) fn spare() -> Self {
        Self(AtomicU32::fresh(IDLE))
    }

    /// The worker goes on in a thread, with this slot.
    #[inline]
    pub(crate) fn leave(&self, slot: usize) {
        // Release: see the header.
        self.0.store(user(slot), Ordering::Release);
    }

    /// The worker comes back from a thread; whether it still has this slot, its last.
    #[inline]
    pub(crate) fn enter(&self, slot: usize) -> bool {
        // Relaxed both ways: on success nobody else has had the slot, on failure nothing is read
        // that the taker wrote.
        self.0.compare_exchange(user(slot), SCHEDULER, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Another one takes this slot; whether it has it now.
    pub(crate) fn take(&self, slot: usize) -> bool {
        // Acquire: pairs with the Release of `leave`.
        self.0.compare_exchange(user(slot), LOST, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Whether it runs a thread on a slot, as far as is known.
    pub(crate) fn is_in_thread(&self) -> bool {
        // Relaxed: `take` decides.
        self.0.load(Ordering::Relaxed) & STATE == THREAD
    }

    /// Whether it runs a thread, on a slot or without, as far as is known.
    pub(crate) fn has_thread(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.0.load(Ordering::Relaxed) & STATE, THREAD | LOST)
    }

    /// Whether its slot was taken. By the worker, before it rests.
    pub(crate) fn is_lost(&self) -> bool {
        // Relaxed: `enter` has failed because of it, or it has given its slot away itself.
        self.0.load(Ordering::Relaxed) == LOST
    }

    /// Whether it has a slot and runs no thread there, or is about to rest, as far as is known.
    pub(crate) fn is_in_scheduler(&self) -> bool {
        // Relaxed: who asks looks whether anything has changed meanwhile (`stall.rs`).
        self.0.load(Ordering::Relaxed) == SCHEDULER
    }

    /// Whether it sleeps without a slot and without threads, as far as is known.
    pub(crate) fn is_spare(&self) -> bool {
        // Relaxed: who must not miss it has a fence before (`idle_workers.rs`).
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// Whether it sleeps without a slot and wants one, as far as is known.
    pub(crate) fn is_wanting(&self) -> bool {
        // Relaxed: as for `is_spare`.
        self.0.load(Ordering::Relaxed) == WAITING
    }

    /// Under the idle_workers's lock: it will sleep without a slot.
    pub(crate) fn rest(&self, wanting: bool) {
        // Relaxed: the lock orders it, and the fence of whoever looks without.
        self.0.store(if wanting { WAITING } else { IDLE }, Ordering::Relaxed);
    }

    /// Gives it a slot, and wakes it.
    pub(crate) fn give(&self) {
        // Release: pairs with the Acquire of `sleep`.
        self.0.store(SCHEDULER, Ordering::Release);
        park::wake_one(&self.0);
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        // Relaxed: a worker that ends reads nothing of what was done before, but under locks.
        self.0.store(ENDED, Ordering::Relaxed);
        park::wake_one(&self.0);
    }

    /// Sleeps until it has a slot or is to end.
    pub(crate) fn sleep(&self) -> Woken {
        loop {
            // Acquire: pairs with the Release of `give`.
            match self.0.load(Ordering::Acquire) {
                SCHEDULER => return Woken::Slot,
                ENDED => return Woken::End,
                seen => {
                    park::wait(&self.0, seen, Deadline::NEVER);
                }
            }
        }
    }
}
