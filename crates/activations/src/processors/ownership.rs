//! How a carrier stands to its seat: one word, which settles who may use the seat when the carrier
//! may be stuck in the kernel.
//!
//! A carrier that runs a thread may block anywhere: in a system call, in a page fault. Another one
//! then takes its seat away and goes on with the threads that are ready there. It must not do so
//! while the carrier is in the middle of the seat's queues. So the carrier says which of the two it
//! is in, and the taker asks by exchanging: either the carrier sees that the seat is gone before it
//! touches it, or the taker sees that it is in use.
//!
//! `USER` names the seat. A taker has found the carrier by its seat, and by the time of the
//! exchange the carrier may have lost that one, and run on another; it would take this one, and
//! believe that it has the first.
//!
//! Why not a flag and a fence on each side: the exchange costs the carrier 6 ns where its line is
//! its own, and says both at once.
//!
//! | word | the carrier | left by |
//! | --- | --- | --- |
//! | `RUNTIME` | has a seat, and is in the scheduler, perhaps asleep there | itself, for `USER`, or `SPARE` or `WANTING` when it has given the seat away |
//! | `USER` | has a seat, and runs a thread | itself, for `RUNTIME`; a taker, for `LOST` |
//! | `LOST` | runs a thread, and has no seat any more | itself, for `SPARE` or `WANTING` |
//! | `SPARE` | has no seat, and nothing to run: it sleeps | a giver, for `RUNTIME`; who readies a thread of it, for `WANTING` |
//! | `WANTING` | has no seat; threads that only it can run are ready: it sleeps | a giver, for `RUNTIME` |
//! | `ENDED` | is to end | nobody |
//!
//! # Invariants
//!
//! 1. A seat is used by the carrier that stands `RUNTIME` on it, and by nobody else. Who moves a
//!    word to `LOST` has the seat until it gives it on.
//! 2. Words move to and from `SPARE` and `WANTING` under the reserve's lock (`reserve.rs`).
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | leave: `RUNTIME` to `USER` | Release | the taker's Acquire exchange: what was done on the seat |
//! | enter: `USER` to `RUNTIME` | Relaxed | nobody: nobody else has had the seat |
//! | take: `USER` to `LOST` | Acquire | the Release of leave |
//! | give: to `RUNTIME` | Release | the Acquire look of the carrier that wakes up |

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::clock::Deadline;
use machine::park;

const RUNTIME: u32 = 0;
const USER: u32 = 1;
const LOST: u32 = 2;
const SPARE: u32 = 3;
const WANTING: u32 = 4;
const ENDED: u32 = 5;

/// The states' bits. Above them, in `USER` only, is the seat.
const STATE: u32 = 7;

fn user(seat: usize) -> u32 {
    USER | (seat as u32) << STATE.count_ones()
}

/// The word of one carrier.
pub(crate) struct Standing(AtomicU32);

/// What a carrier that slept without a seat wakes up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// It has a seat.
    Seat,
    /// It is to end.
    End,
}

impl Standing {
    /// Of a carrier that has a seat.
    pub(crate) fn seated() -> Self {
        Self(AtomicU32::fresh(RUNTIME))
    }

    /// Of one that has none.
    pub(crate) fn spare() -> Self {
        Self(AtomicU32::fresh(SPARE))
    }

    /// The carrier goes on in a thread, with this seat.
    #[inline]
    pub(crate) fn leave(&self, seat: usize) {
        // Release: see the header.
        self.0.store(user(seat), Ordering::Release);
    }

    /// The carrier comes back from a thread; whether it still has this seat, its last.
    #[inline]
    pub(crate) fn enter(&self, seat: usize) -> bool {
        // Relaxed both ways: on success nobody else has had the seat, on failure nothing is read
        // that the taker wrote.
        self.0.compare_exchange(user(seat), RUNTIME, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Another one takes this seat; whether it has it now.
    pub(crate) fn take(&self, seat: usize) -> bool {
        // Acquire: pairs with the Release of `leave`.
        self.0.compare_exchange(user(seat), LOST, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Whether it runs a thread on a seat, as far as is known.
    pub(crate) fn is_in_thread(&self) -> bool {
        // Relaxed: `take` decides.
        self.0.load(Ordering::Relaxed) & STATE == USER
    }

    /// Whether it runs a thread, on a seat or without, as far as is known.
    pub(crate) fn has_thread(&self) -> bool {
        // Relaxed: a hint.
        matches!(self.0.load(Ordering::Relaxed) & STATE, USER | LOST)
    }

    /// Whether its seat was taken. By the carrier, before it rests.
    pub(crate) fn is_lost(&self) -> bool {
        // Relaxed: `enter` has failed because of it, or it has given its seat away itself.
        self.0.load(Ordering::Relaxed) == LOST
    }

    /// Whether it has a seat and runs no thread there, or is about to rest, as far as is known.
    pub(crate) fn is_in_scheduler(&self) -> bool {
        // Relaxed: who asks looks whether anything has changed meanwhile (`stall.rs`).
        self.0.load(Ordering::Relaxed) == RUNTIME
    }

    /// Whether it sleeps without a seat and without threads, as far as is known.
    pub(crate) fn is_spare(&self) -> bool {
        // Relaxed: who must not miss it has a fence before (`reserve.rs`).
        self.0.load(Ordering::Relaxed) == SPARE
    }

    /// Whether it sleeps without a seat and wants one, as far as is known.
    pub(crate) fn is_wanting(&self) -> bool {
        // Relaxed: as for `is_spare`.
        self.0.load(Ordering::Relaxed) == WANTING
    }

    /// Under the reserve's lock: it will sleep without a seat.
    pub(crate) fn rest(&self, wanting: bool) {
        // Relaxed: the lock orders it, and the fence of whoever looks without.
        self.0.store(if wanting { WANTING } else { SPARE }, Ordering::Relaxed);
    }

    /// Gives it a seat, and wakes it.
    pub(crate) fn give(&self) {
        // Release: pairs with the Acquire of `sleep`.
        self.0.store(RUNTIME, Ordering::Release);
        park::wake_one(&self.0);
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        // Relaxed: a carrier that ends reads nothing of what was done before, but under locks.
        self.0.store(ENDED, Ordering::Relaxed);
        park::wake_one(&self.0);
    }

    /// Sleeps until it has a seat or is to end.
    pub(crate) fn sleep(&self) -> Called {
        loop {
            // Acquire: pairs with the Release of `give`.
            match self.0.load(Ordering::Acquire) {
                RUNTIME => return Called::Seat,
                ENDED => return Called::End,
                seen => {
                    park::wait(&self.0, seen, Deadline::NEVER);
                }
            }
        }
    }
}
