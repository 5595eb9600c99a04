//! Tells a forked child from its parent.
//!
//! A child of `fork` starts with a copy of its parent's memory and with one thread. What the memory
//! says of the parent's other threads is wrong there: they do not sleep, hold or watch anything in
//! the child. A structure that lists threads therefore remembers the [`generation`] in which it was
//! written. If the generation has changed, the structure forgets its threads.
//!
//! Why not repair everything in a handler of `pthread_atfork`: the handler would have to know every
//! such structure, it would need the locks that guard them, and those may be held by threads that
//! the child does not have.

use crate::backend;

/// True where a child process can continue with a copy of its parent's memory: on Unix systems.
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
/// By `getpid`, a child can get the number of an ancestor. That happens if the ancestor has ended
/// and the system has since gone through all its process numbers once.
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
