//! Slot ownership: one word of each worker, which decides which thread may use the worker's slot
//! when the worker may be stuck in the kernel.
//!
//! A worker that runs a thread may block anywhere: in a system call, in a page fault. Another
//! thread then takes its slot, and another worker goes on with the threads that are ready there.
//! That must not happen while the worker is in the middle of the slot's queues. So the worker says
//! which of the two it is in, and the taker asks by an exchange. Either the worker sees that the
//! slot is gone before it touches it, or the taker sees that the slot is in use.
//!
//! `THREAD` names the slot. A taker has found the worker by its slot. By the time of the exchange
//! the worker may have lost that slot, and run on another. Without the name the taker would take
//! this one, and believe that it has the first.
//!
//! Why not a flag and a fence on each side: the exchange costs the worker 6 ns while it has the
//! cache line, and says both at once.
//!
//! - `SCHEDULER`. The worker: owns a slot, and is in the scheduler, perhaps asleep there. Changed
//!   by: the worker, to `THREAD`, or to `IDLE` or `WAITING` when it has given the slot away.
//! - `THREAD`. The worker: owns a slot, and runs a thread. Changed by: the worker, to `SCHEDULER`;
//!   a taker, to `LOST`.
//! - `LOST`. The worker: runs a thread, and owns no slot any more. Changed by: the worker, to
//!   `IDLE` or `WAITING`; or to `SCHEDULER`, if it takes an overcommitted or a vacant slot.
//! - `IDLE`. The worker: owns no slot, has nothing to run, and sleeps. Changed by: a giver, to
//!   `SCHEDULER`; a thread that readies a bound thread of it, to `WAITING`.
//! - `WAITING`. The worker: owns no slot, has ready threads that only it can run, and sleeps.
//!   Changed by: a giver, to `SCHEDULER`.
//! - `ENDED`. The worker: is to end. Final.
//!
//! ```text
//!                leave                    take                   rest
//!  SCHEDULER ◄──────────► THREAD ──────────────────► LOST ──────────────────┐
//!      ▲  │      enter                                                      ▼
//!      │  └──────────────────────── rest ─────────────────────► IDLE ──► WAITING
//!      │                                                          │ thread   │
//!      ├────────────────────────── give ──────────────────────────┴──────────┘
//!      └────────────────────────── give ◄─────────────────────── LOST
//! ```
//!
//! The last line is the worker itself: it comes back without a slot, and finds one that is
//! overcommitted or vacant.
//!
//! # Invariants
//!
//! 1. A slot is used by the worker that has `SCHEDULER` in its word, and by no other. The thread
//!    that moves a word to `LOST` has the slot until it gives it to a worker.
//! 2. The word moves to `IDLE` and `WAITING` under the lock of `idle_workers.rs`. A giver takes the
//!    worker out of its list under that lock, and moves the word to `SCHEDULER` later.
//!
//! # Orderings
//!
//! - leave: `SCHEDULER` to `THREAD`. Ordering: Release. Partner: the taker's Acquire exchange:
//!   what was done on the slot.
//! - enter: `THREAD` to `SCHEDULER`. Ordering: Relaxed. Partner: none: no other thread has had the
//!   slot.
//! - take: `THREAD` to `LOST`. Ordering: Acquire. Partner: the Release of leave.
//! - give: to `SCHEDULER`. Ordering: Release. Partner: the Acquire load of the worker that wakes
//!   up.

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::clock::Deadline;
use stanchion_machine::park;

const SCHEDULER: u32 = 0;
const THREAD: u32 = 1;
const LOST: u32 = 2;
const IDLE: u32 = 3;
const WAITING: u32 = 4;
const ENDED: u32 = 5;

/// The bits of the state. Above them, in `THREAD` only, is the slot.
const STATE: u32 = 7;

fn thread_on(slot: usize) -> u32 {
    THREAD | (slot as u32) << STATE.count_ones()
}

/// The word of one worker.
pub struct Ownership(AtomicU32);

/// The reason for which a worker without a slot is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WokenFor {
    /// It owns a slot.
    Slot,
    /// It is to end.
    End,
}

impl Ownership {
    /// Returns the word of a worker that owns a slot.
    pub fn with_slot() -> Self {
        Self(AtomicU32::fresh(SCHEDULER))
    }

    /// Returns the word of a worker that owns none.
    pub fn idle() -> Self {
        Self(AtomicU32::fresh(IDLE))
    }

    /// Says that the worker goes on in a thread, and owns this slot.
    #[inline]
    pub fn leave(&self, slot: usize) {
        // Release: see the header.
        self.0.store(thread_on(slot), Ordering::Release);
    }

    /// Says that the worker comes back from a thread. Returns whether it still owns this slot, its
    /// last one.
    #[inline]
    pub fn enter(&self, slot: usize) -> bool {
        // Relaxed both ways: on success no other thread has had the slot. On failure nothing is
        // read that the taker wrote.
        self.0
            .compare_exchange(thread_on(slot), SCHEDULER, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes this slot from the worker. Returns whether the caller has it now.
    pub fn take(&self, slot: usize) -> bool {
        // Acquire: pairs with the Release of `leave`.
        self.0.compare_exchange(thread_on(slot), LOST, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns whether the worker runs a thread on a slot, as far as is known.
    pub(crate) fn is_in_thread(&self) -> bool {
        // Relaxed: `take` decides.
        self.0.load(Ordering::Relaxed) & STATE == THREAD
    }

    /// Returns whether the worker runs a thread, on a slot or without, as far as is known.
    pub(crate) fn has_thread(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.0.load(Ordering::Relaxed) & STATE, THREAD | LOST)
    }

    /// Returns whether the slot was taken. Called by the worker, before it rests.
    pub(crate) fn is_lost(&self) -> bool {
        // Relaxed: `enter` has failed because of it, or the worker has given its slot away itself.
        self.0.load(Ordering::Relaxed) == LOST
    }

    /// Returns whether the worker owns a slot and runs no thread there, or is about to rest, as far
    /// as is known.
    pub(crate) fn is_in_scheduler(&self) -> bool {
        // Relaxed: the caller looks whether anything has changed meanwhile (`reports/stall.rs`).
        self.0.load(Ordering::Relaxed) == SCHEDULER
    }

    /// Returns whether the worker sleeps without a slot and without ready threads, as far as is
    /// known.
    pub(crate) fn is_idle(&self) -> bool {
        // Relaxed: a caller that must not miss it has a fence before (`idle_workers.rs`).
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// Returns whether the worker sleeps without a slot and waits for one, as far as is known.
    pub(crate) fn is_waiting(&self) -> bool {
        // Relaxed: as for `is_idle`.
        self.0.load(Ordering::Relaxed) == WAITING
    }

    /// Says that the worker will sleep without a slot. Called under the lock of `idle_workers.rs`.
    pub fn rest(&self, waits: bool) {
        // Relaxed: the lock orders it, and the fence of a thread that looks without the lock.
        self.0.store(if waits { WAITING } else { IDLE }, Ordering::Relaxed);
    }

    /// Gives the worker a slot, and wakes it.
    pub fn give(&self) {
        // Release: pairs with the Acquire of `sleep`.
        self.0.store(SCHEDULER, Ordering::Release);
        park::wake_one(&self.0);
    }

    /// Ends the worker.
    pub fn end(&self) {
        // Relaxed: a worker that ends reads nothing of what was done before, except under locks.
        self.0.store(ENDED, Ordering::Relaxed);
        park::wake_one(&self.0);
    }

    /// Sleeps until the worker owns a slot or is to end.
    pub fn sleep(&self) -> WokenFor {
        loop {
            // Acquire: pairs with the Release of `give`.
            match self.0.load(Ordering::Acquire) {
                SCHEDULER => return WokenFor::Slot,
                ENDED => return WokenFor::End,
                seen => {
                    park::wait(&self.0, seen, Deadline::NEVER);
                }
            }
        }
    }
}
