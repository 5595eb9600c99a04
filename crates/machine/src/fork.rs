//! Which process of a family of forks this is.
//!
//! A child of `fork` starts with a copy of its parent's memory and with one thread. What the memory
//! says of the parent's other threads is wrong there: they do not sleep, hold or watch anything in
//! the child. A structure that lists threads therefore remembers the [`generation`] in which it
//! was written. If the generation is another one by now, the structure forgets its threads.
//!
//! Why not repair everything in a handler of `pthread_atfork`: the handler would have to know every
//! such structure, it would need the locks that guard them, and those may be held by threads that
//! the child does not have.

use crate::backend;

/// Whether there are children that go on with a copy of their parent's memory: on Unix systems.
pub const POSSIBLE: bool = backend::fork::POSSIBLE;

/// Returns a number, at least 1, that differs between this process and all processes it was forked
/// from.
///
/// Costs two loads once it is known, or a system call where the system wipes no page. The first
/// call of a process maps a page. It neither allocates nor opens a file.
///
/// | system | how a child is found out |
/// | --- | --- |
/// | Linux 4.14 and later | the kernel wipes a page in it (`MADV_WIPEONFORK`) |
/// | other Unix systems, and where the kernel refuses that | by `getpid` |
/// | elsewhere, under loom, simulated | there is no fork |
///
/// By `getpid`, a child has the number of an ancestor if that one has ended and the system has gone
/// round its numbers once since.
///
/// ```
/// use stanchion_machine::fork::generation;
/// assert!(generation() >= 1);
/// assert_eq!(generation(), generation());
/// ```
#[inline]
#[must_use]
pub fn generation() -> u32 {
    backend::fork::generation()
}
