//! Who is inside a push, so that a queue can be closed behind the last one.
//!
//! A queue that is closed and looks empty is at its end only if no push is still on its way: one that was let in before the closing may link its
//! value later. Why not a lock or one counter for the pushes: every push would write one more line that all others write.
//! Here each thread counts on one of a few lines, and asymmetric barriers order that with the closing, which is rare.
//!
//! ```text
//! push                                   close, and pops afterwards
//! ----                                   --------------------------
//! (1) inside += 1                        (a) state = CLOSING
//! (2) light()                            (b) heavy()
//! (3) state still OPEN? else leave       (c) state = CLOSED
//! (4) push                               (d) state = CLOSED, and nobody inside? then the queue's next look decides
//! (5) inside -= 1
//! (6) light(); not OPEN: tell the pops
//! ```
//!
//! # Nobody is overlooked
//!
//! Either (3) sees CLOSING, and nothing is pushed; or (d), which comes after (b), sees (1), and waits for (5), after which the value is there. A push
//! whose (6) sees OPEN has its (5) seen by (d); any other tells the pops to look again.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | (1), (3) and (a) | Relaxed | ordered by `light` and `heavy` |
//! | (5) leave | Release | (d), Acquire: the value is in the queue |
//! | (c) | Release | (d), Acquire: the barrier has been passed |

use crossbeam_utils::CachePadded;
use machine::asymmetric;
use machine::atomic::{AtomicU8, AtomicUsize, Ordering};
use machine::thread;

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// Lines to count on.
const LINES: usize = 8;

pub(super) struct Gate {
    state: AtomicU8,
    inside: [CachePadded<AtomicUsize>; LINES],
}

/// Somebody is inside, until [`Gate::leave`].
pub(super) struct Pass(usize);

impl Gate {
    pub(super) const fn new() -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            inside: [const { CachePadded::new(AtomicUsize::new(0)) }; LINES],
        }
    }

    /// Goes in, whether it is open or not: see [`is_open`](Self::is_open).
    pub(super) fn enter(&self) -> Pass {
        let line = thread::index().unwrap_or(0) % LINES;
        // Relaxed: ordered by `light`.
        self.inside[line].fetch_add(1, Ordering::Relaxed);
        asymmetric::light();
        Pass(line)
    }

    /// Whether it has not begun to close. Who is inside and sees that is waited for.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: ordered by `light`, or a hint.
        self.state.load(Ordering::Relaxed) == OPEN
    }

    /// Goes out; says whether the pops must be told, since it is not open any more.
    pub(super) fn leave(&self, pass: Pass) -> bool {
        // Release: pairs with the Acquire of `is_drained`.
        self.inside[pass.0].fetch_sub(1, Ordering::Release);
        asymmetric::light();
        !self.is_open()
    }

    /// Lets nobody in any more; says whether this call was the first.
    pub(super) fn close(&self) -> bool {
        // Relaxed: ordered by `heavy`.
        let first =
            self.state.compare_exchange(OPEN, CLOSING, Ordering::Relaxed, Ordering::Relaxed);
        // Whoever comes second does the rest too: it must be done when it returns.
        asymmetric::heavy();
        // Release: pairs with the Acquire of `is_drained`.
        self.state.store(CLOSED, Ordering::Release);
        first.is_ok()
    }

    /// Whether it is closed and nobody is inside: what was pushed can be found, and nothing more comes.
    pub(super) fn is_drained(&self) -> bool {
        // Acquire: pairs with the Release of `close`.
        self.state.load(Ordering::Acquire) == CLOSED
            // Acquire: pairs with the Release of `leave`.
            && self.inside.iter().all(|line| line.load(Ordering::Acquire) == 0)
    }
}
