//! A thread that stops for ever, at an exact access: it shows what the others can do without it.
//!
//! Why not a very long preemption: its end would have to be waited for or cut off, and a thread
//! that waits for the stopped one would look slow, not stuck. A frozen thread is no reason for a
//! run to go on. When all others have ended the run has come to its end. When they cannot go on
//! without it the run fails as a deadlock or at its limit, with the waiting threads and what they
//! wait for.
//!
//! # Invariants
//!
//! 1. A thread is frozen at a call of the simulator, as the earliest of all, so every access before
//!    has been done, and none after.
//! 2. A frozen thread is `Blocked`, no event is announced for it, and `rouse` passes it by: its
//!    coroutine is never resumed.
//! 3. A wake-up that it was on its way to wait for is spent on it, as the kernel would spend it on
//!    a thread that is stopped by a signal.

use crate::ThreadId;
use crate::world::{outside, with};

/// Runs `body`. The running thread makes at most `accesses` shared accesses in it: when it calls
/// the simulator after the last of them it is frozen. It keeps its locks and loses its processor.
/// To the others it looks preempted, for good. If `body` ends before, its result comes back, and
/// nothing has happened.
///
/// ```
/// use stanchion_simulator::inside::{self, Kind};
/// use stanchion_simulator::{Simulation, machines, os::freeze};
///
/// let run = Simulation::new(machines::modern(2)).run(|| {
///     let victim = inside::spawn(None, None, Box::new(|| {
///         let word = 0_u64;
///         freeze::after(2, || {
///             inside::access((&raw const word).cast(), Kind::Read);
///             inside::access((&raw const word).cast(), Kind::Write);
///             inside::access((&raw const word).cast(), Kind::Write);
///             unreachable!("it is frozen before that one");
///         })
///     }));
///     freeze::wait(victim)
/// })?;
/// assert!(run.result, "it is frozen, and the run ends without it");
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
pub fn after<R>(accesses: u64, body: impl FnOnce() -> R) -> R {
    /// Also when `body` unwinds.
    struct Limited;
    impl Drop for Limited {
        fn drop(&mut self) {
            with(|world, id| world.kernel.thread_mut(id).accesses_left = u64::MAX);
        }
    }

    with(|world, id| world.kernel.thread_mut(id).accesses_left = accesses)
        .unwrap_or_else(|| outside("os::freeze::after"));
    let _limited = Limited;
    body()
}

/// Returns whether `thread` is frozen.
///
/// # Panics
///
/// If the run has not made so many threads.
#[must_use]
pub fn is_frozen(thread: ThreadId) -> bool {
    with(|world, _| world.kernel.thread(thread).frozen)
        .unwrap_or_else(|| outside("os::freeze::is_frozen"))
}

/// Waits until `thread` is frozen or has ended; whether it is frozen. Looks every 100 ns.
///
/// # Panics
///
/// If the run has not made so many threads.
pub fn wait(thread: ThreadId) -> bool {
    while !is_frozen(thread) && !crate::inside::has_ended(thread) {
        crate::inside::sleep(100);
    }
    is_frozen(thread)
}
