//! "Please do not preempt me": asked by a thread that others would have to wait for, and honoured for a bounded time.
//!
//! A thread that is preempted inside a critical section holds everybody up for whole time slices. It can say beforehand that it would rather not be:
//! the scheduler reads the request when the slice is over, and lets the thread stay for a little while. A thread that has stayed so gives its
//! processor up as soon as it takes the request back.
//!
//! Why a pair of calls and not a guard: a lock asks in `lock` and thanks in `unlock`, and its guard is `lock_api`'s. Why a count in memory and no
//! system call: a critical section lasts a hundred nanoseconds, and nearly none meets the end of a slice.
//!
//! | machine | who honours it | for how long | [`keep`] and [`thank`] cost |
//! | --- | --- | --- | --- |
//! | real, a member of `multiprogramming` | its pseudo-scheduler | its limit, a tenth of its quantum unless told otherwise | two writes to a thread-local count: 1.0 ns the pair |
//! | real, Linux 7.0 with the slice extension | the kernel | 5 µs to 50 µs, as the system is set up | two more writes to a byte, and a read |
//! | real, else | nobody | | the count |
//! | loom | nobody: an algorithm must be right when nobody does | | nothing; requests and thanks are held against each other |
//! | simulated | the scheduler | the machine's `grace` | two writes to a line of the thread's own |
//!
//! [`means`] says which it is. `cargo run --release -p stanchion-machine --example costs` prints what the pair costs.
//!
//! A request changes nothing about who blocks: a thread that sleeps or yields gives its processor away as ever.
//!
//! # Invariants
//!
//! 1. Requests belong to the thread that made them, and are taken back there. So the guard of a lock that asks is not `Send`.
//! 2. A slice is extended once: who is still inside when the extension is over is preempted there. Use it for speed, never for correctness.
//!
//! Source: Edler, Lipkis and Schonberg, "Process management for highly parallel Unix systems", 1988; Michael and Scott 1997, section 2.

use crate::backend;

/// Who honours the requests of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Means {
    /// A scheduler that reads the count: the simulated machine's, or a pseudo-scheduler that the thread has joined.
    Scheduler,
    /// The kernel, by extending the slice of a thread that asks.
    SliceExtension,
    /// Nobody. On the real machine `kernel::slice_extension` says why the kernel does not.
    Nobody,
}

/// Asks that the calling thread not be preempted, until [`thank`]. Requests nest: all of them must be taken back.
///
/// A thread's first request in a process finds out whether the kernel has the slice extension, and switches it on for the thread (one system call,
/// once where it is missing).
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

/// Takes back the last request of the calling thread. If that was the only one and the slice has ended meanwhile, the thread gives way here; says
/// whether it did, when it has a processor again.
///
/// A thread that has no request takes nothing back on the real machine.
///
/// # Panics
///
/// Under loom and simulated, if the thread has no request: an algorithm has lost count.
#[inline]
pub fn thank() -> bool {
    backend::preemption::thank()
}

/// How many requests of the calling thread are open.
#[must_use]
pub fn requests() -> u32 {
    backend::preemption::requests()
}

/// Who honours the requests of the calling thread.
///
/// ```
/// use stanchion_machine::preemption::{Means, means};
/// match means() {
///     Means::Nobody => println!("nobody: {:?}", stanchion_machine::kernel::slice_extension()),
///     honoured => println!("{honoured:?}"),
/// }
/// ```
#[must_use]
pub fn means() -> Means {
    backend::preemption::means()
}
