//! Requests not to be preempted for a moment. A thread makes one while other threads would have to
//! wait for it, and the scheduler honours it for a bounded time.
//!
//! If a thread is preempted inside a critical section, all threads that wait for the section lose
//! whole time slices. A thread can say beforehand that it should not be preempted. The scheduler
//! reads the request when the slice is over, and lets the thread stay for a little while. A thread
//! that has stayed in this way gives up its processor as soon as it takes the request back.
//!
//! Why a pair of calls and not a guard: a lock makes the request in `lock` and takes it back in
//! `unlock`, and the guard of such a lock is `lock_api`'s. Why a count in memory and no system
//! call: a critical section lasts a hundred nanoseconds, and almost none meets the end of a slice.
//!
//! What honours a request depends on the machine:
//!
//! - Real, attached to a scheduler inside the program (the module `scheduler`), such as the
//!   pseudo-scheduler of `stanchion-multiprogramming`: that scheduler, for its limit. [`keep`] and
//!   [`thank`] cost two writes to a thread-local count: 1.0 ns the pair.
//! - Real, Linux 7.0 with the slice extension: the kernel, for 5 µs to 50 µs, as the system is
//!   configured. The pair costs two more writes to a byte, and a read.
//! - Real, otherwise: nothing honours it. The pair costs the count.
//! - Loom: nothing honours it, because an algorithm must be right without that. The pair costs
//!   nothing. Requests and the calls that take them back are checked against each other.
//! - Simulated: the scheduler, for the machine's `grace`. The pair costs two writes to a line of
//!   the thread's own.
//!
//! [`means`] returns which case it is. `cargo run --release -p stanchion-machine --example costs`
//! prints what the pair costs.
//!
//! A request does not change how a thread blocks: a thread that sleeps or yields gives its
//! processor away as always.
//!
//! # Invariants
//!
//! 1. A request belongs to the thread that made it, and that thread takes it back. So the guard of
//!    a lock that makes requests is not `Send`.
//! 2. A slice is extended once. A thread that is still inside when the extension is over is
//!    preempted there. Use requests for speed, never for correctness.
//!
//! Source: Edler, Lipkis and Schonberg, "Process management for highly parallel Unix systems",
//! 1988; Michael and Scott 1997, section 2.

use crate::backend;

#[cfg(not(any(stanchion_loom, stanchion_simulated)))]
pub mod scheduler;

/// The mechanism that honours the requests of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Means {
    /// A scheduler that reads the count: the simulated machine's, or one inside the program that
    /// the thread is attached to.
    Scheduler,
    /// The kernel, by extending the slice of a thread that asks.
    SliceExtension,
    /// No mechanism does. On the real machine the command `stanchion machine` prints why the kernel
    /// does not.
    None,
}

/// Asks that the calling thread not be preempted, until [`thank`]. Requests nest: each of them must
/// be taken back.
///
/// The first request of a thread finds out whether the kernel has the slice extension. If so, it
/// switches the extension on for the thread, by one system call. If the kernel lacks it, the
/// process asks only once.
///
/// ```
/// use stanchion_machine::preemption;
/// preemption::keep();
/// // A critical section.
/// preemption::thank();
/// assert_eq!(preemption::requests(), 0);
/// ```
#[inline]
pub fn keep() {
    backend::preemption::keep();
}

/// Takes back the last request of the calling thread. If that was the only one and the slice has
/// ended meanwhile, the thread gives way here. Returns whether it did, once it has a processor
/// again.
///
/// On the real machine, a call without a request takes nothing back.
///
/// # Panics
///
/// Under loom and simulated, if the thread has no request: an algorithm has lost count.
#[inline]
pub fn thank() -> bool {
    backend::preemption::thank()
}

/// Returns how many requests of the calling thread are open.
#[must_use]
pub fn requests() -> u32 {
    backend::preemption::requests()
}

/// Returns which mechanism honours the requests of the calling thread.
///
/// ```
/// use stanchion_machine::preemption::{Means, means};
/// match means() {
///     Means::None => println!("a holder may be preempted at any point"),
///     honoured => println!("{honoured:?}"),
/// }
/// ```
#[must_use]
pub fn means() -> Means {
    backend::preemption::means()
}
