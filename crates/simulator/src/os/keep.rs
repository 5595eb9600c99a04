//! Not to be preempted for a while: "a process may request that the kernel not preempt it because
//! it is holding a lock, and the kernel will honor the request up to a pre-defined time limit".
//!
//! Why not ask the kernel each time: the request is a count in memory that the scheduler reads, so
//! a critical section costs two writes to a line that only its thread uses, and no call.
//!
//! | the slice ends while | then |
//! | --- | --- |
//! | the count is 0 | the thread is preempted |
//! | it is not | the thread is warned, and stays for a while |
//! | it is not, and the grace is over | the thread is preempted: a breach |
//!
//! A warned thread stays for the machine's [`grace`](crate::machine::Scheduling::grace). If its
//! count returns to 0 after a warning, it gives its processor up at once: it has been lent time
//! that others wait for.
//!
//! # Invariants
//!
//! 1. A slice has one grace: the warning stands until the thread is taken off, or until its slice
//!    is renewed because no thread waits for the processor.
//! 2. The warning is set by the end of a slice only, and only for a thread with a count that is not
//!    0.
//!
//! Source: Edler, Lipkis and Schonberg, "Process management for highly parallel Unix systems",
//! 1988; Michael and Scott 1997, section 2.

use crate::ThreadId;
use crate::inside::{self, Kind};
use crate::world::{outside, suspend, synchronize, with};

/// Asks that the running thread not be preempted, until [`end`]. Requests nest. Costs one write to
/// a line of the thread's own.
///
/// A thread that spins, computes or reads and writes keeps its processor. A thread that blocks
/// gives it up as ever.
///
/// ```
/// use stanchion_simulator::{Simulation, machines, os::keep};
///
/// Simulation::new(machines::challenge()).run(|| {
///     keep::begin();
///     // A critical section.
///     let gave_way = keep::end();
///     assert!(!gave_way, "no other thread wanted the processor");
/// })?;
/// # Ok::<(), stanchion_simulator::Failure>(())
/// ```
pub fn begin() {
    write();
    with(|world, id| world.kernel.thread_mut(id).keep.depth += 1);
}

/// Takes back the last request of the running thread. If that was the only one, and its slice has
/// ended meanwhile, the processor goes to a waiting thread. Returns whether it did, when the thread
/// has a processor again. Costs one write.
///
/// # Panics
///
/// If there is no request.
pub fn end() -> bool {
    write();
    let before = with(|world, id| {
        let thread = world.kernel.thread_mut(id);
        assert!(
            thread.keep.depth > 0,
            "{id} took back a request not to be preempted that it had not made"
        );
        thread.keep.depth -= 1;
        (thread.keep.depth == 0 && thread.keep.warned).then_some(thread.statistics.preemptions)
    });
    let Some(Some(before)) = before else { return false };
    synchronize();
    let leaves = with(|world, id| {
        let kernel = &mut world.kernel;
        kernel.thread(id).keep.warned && kernel.end_slice(id)
    });
    if leaves == Some(true) {
        suspend();
    }
    with(|world, id| world.kernel.thread(id).statistics.preemptions > before).unwrap_or(false)
}

/// Returns whether the running thread's slice has ended, and it stays on sufferance: it should come
/// to a safe point soon. Costs a read.
#[must_use]
pub fn is_warned() -> bool {
    touch(Kind::Read);
    with(|world, id| world.kernel.thread(id).keep.warned).unwrap_or(false)
}

/// Returns the number of open requests of the running thread. Free.
///
/// # Panics
///
/// Outside a run.
#[must_use]
pub fn requests() -> u32 {
    with(|world, id| world.kernel.thread(id).keep.depth)
        .unwrap_or_else(|| outside("the requests not to be preempted"))
}

fn write() {
    touch(Kind::Write);
}

/// An access of the count.
fn touch(kind: Kind) {
    if !inside::is_running() {
        outside("a request not to be preempted");
    }
    synchronize();
    with(|world, id| world.kernel.access_word(id, word(id), kind));
}

/// The identity of a word of the system's that a thread has for itself, on a page of its own: no
/// word of a program has bits 63 and 62.
fn word(id: ThreadId) -> u64 {
    0b11 << 62 | (id.index() as u64) << 12
}
