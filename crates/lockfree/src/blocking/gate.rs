//! Counts the pushes that are on their way, so that a queue can be closed behind the last one.
//!
//! A queue that is closed and looks empty is at its end only if no push is on its way: a push that
//! was let in before the closing may link its value later. Why not a lock or one counter for the
//! pushes: every push would write one more line that all others write. Here each thread counts on
//! one of a few lines. [`CLOSE`] orders that with the closing, which is rare.
//!
//! ```text
//! push                                close, and pops afterwards
//! ----                                --------------------------
//! (1) inside += 1                     (a) state = CLOSING
//! (2) light()                         (b) heavy()
//! (3) state still OPEN? else leave    (c) state = CLOSED
//! (4) push                            (d) state = CLOSED, and inside = 0? the next look decides
//! (5) inside -= 1
//! (6) light(); not OPEN: tell the pops
//! ```
//!
//! # No push is overlooked
//!
//! A push passes [`CLOSE`], a [`Handshake`], twice: with (1), and with (5). Either (3) sees
//! CLOSING, and nothing is pushed. Or (d), which comes after (b), sees (1) and waits for (5), after
//! which the value is there. If (6) sees OPEN, then (d) sees (5). Else the push tells the pops to
//! look again.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | (1), (3) and (a) | Relaxed | ordered by `CLOSE` |
//! | (5) leave | Release | (d), Acquire: the value is in the queue |
//! | (c) | Release | (d), Acquire: the barrier has been passed |

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU8, AtomicUsize, Ordering};
use stanchion_machine::handshake::{Handshake, Reach};
use stanchion_machine::thread;

/// A push that counts itself in or out against the closing: the push sees that the gate closes, or
/// the threads that look for the last push see the count. Any thread may push.
const CLOSE: Handshake = Handshake::new("Gate::inside", "Gate::state", Reach::AllThreads);

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// Lines to count on.
const LINES: usize = 8;

/// A gate that pushes pass, open until it is closed.
pub(super) struct Gate {
    /// OPEN, then CLOSING, then CLOSED. Written by the threads that close.
    state: AtomicU8,
    /// The pushes inside, counted on the line of the pushing thread. Only the sum means something.
    inside: [CachePadded<AtomicUsize>; LINES],
}

/// One push inside: the number of the line that counts it, until [`Gate::leave`].
pub(super) struct Pass(usize);

impl Gate {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            inside: [const { CachePadded::new(AtomicUsize::new(0)) }; LINES],
        }
    }

    /// Counts a push in, whether the gate is open or not: see [`is_open`](Self::is_open).
    pub(super) fn enter(&self) -> Pass {
        let line = thread::index().unwrap_or(0) % LINES;
        // Relaxed: ordered by `CLOSE`.
        self.inside[line].fetch_add(1, Ordering::Relaxed);
        CLOSE.light();
        Pass(line)
    }

    /// Returns whether the gate has not begun to close. The pops wait for a push that is inside and
    /// sees that.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: ordered by `CLOSE`, or a hint.
        self.state.load(Ordering::Relaxed) == OPEN
    }

    /// Counts a push out. Returns whether the push must tell the pops, since the gate is not open
    /// any more.
    pub(super) fn leave(&self, pass: Pass) -> bool {
        // Release: pairs with the Acquire of `is_drained`.
        self.inside[pass.0].fetch_sub(1, Ordering::Release);
        CLOSE.light();
        !self.is_open()
    }

    /// Lets no push in any more. Returns whether this call was the first.
    pub(super) fn close(&self) -> bool {
        // Relaxed: ordered by `CLOSE`.
        let first =
            self.state.compare_exchange(OPEN, CLOSING, Ordering::Relaxed, Ordering::Relaxed);
        // A second caller does the rest too: the gate must be closed when it returns.
        CLOSE.heavy();
        // Release: pairs with the Acquire of `is_drained`.
        self.state.store(CLOSED, Ordering::Release);
        first.is_ok()
    }

    /// Returns whether the gate is closed and no push is inside: what was pushed can be found, and
    /// nothing more comes.
    pub(super) fn is_drained(&self) -> bool {
        // Acquire: pairs with the Release of `close`.
        self.state.load(Ordering::Acquire) == CLOSED
            // Acquire: pairs with the Release of `leave`.
            && self.inside.iter().all(|line| line.load(Ordering::Acquire) == 0)
    }
}
