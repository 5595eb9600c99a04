//! The scheduler's side of requests, for a scheduler inside the program. The real machine only.
//!
//! Such a scheduler interrupts its threads, by a signal for instance. The handler calls [`lend`] to
//! find out whether the thread has asked to stay. A thread that was lent time, and that takes its
//! last request back, calls the function that it passed to [`attach`]. The function stops the
//! thread. Once the thread has been stopped, or need not stop any more, it is [settled](settle).
//!
//! Each function is about the calling thread. [`lend`], [`is_lent`] and [`settle`] are
//! async-signal-safe if the thread has called [`requests`](super::requests) before.

use crate::backend::preemption as backend;

/// Names a scheduler for the calling thread, until [`detach`]. `give_way` stops the thread if it
/// still runs on lent time, and returns whether it did. A thread has one scheduler: a second call
/// replaces the first.
///
/// `give_way` runs where the thread takes its last request back, such as at the end of a lock's
/// release. So it keeps `errno` and does not panic. It [settles](settle) before it takes a lock
/// that asks not to be preempted: the release of that lock would call it again.
pub fn attach(give_way: fn() -> bool) {
    backend::attach(give_way);
}

/// Ends what [`attach`] began, and settles what the thread was lent.
pub fn detach() {
    backend::detach();
}

/// Lets the calling thread stay although its slice is over, if it has asked and does not stay
/// already. Returns whether it may stay.
#[must_use]
pub fn lend() -> bool {
    backend::lend()
}

/// Returns whether the calling thread runs on lent time.
#[must_use]
pub fn is_lent() -> bool {
    backend::is_lent()
}

/// Records that the calling thread has given way, or that no other thread wants its processor any
/// more.
pub fn settle() {
    backend::settle();
}
