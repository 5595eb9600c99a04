//! The kernel's accounts of a thread of this process: times, state and system call.
//!
//! Linux keeps them in `/proc/self/task/TID/{schedstat,stat,syscall}`. The time on a processor is
//! that of the thread's CPU clock, which is exact at the moment of the reading. That of `schedstat`
//! is up to a tick old. Other systems tell nothing.

mod calls;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use elsewhere as backend;
#[cfg(target_os = "linux")]
use linux as backend;

pub(crate) use self::calls::name;
pub(crate) use backend::{blocked_in, read, this_thread};

/// The state of a thread at a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "other systems tell none"))]
pub(crate) enum Activity {
    /// On a processor.
    Running,
    /// Could run, and has no processor; or was stopped by a signal or a debugger.
    Ready,
    /// Waits for something.
    Blocked,
}

/// The kernel's counts of a thread at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The moment, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
    /// Time on a processor so far, in nanoseconds.
    pub(crate) running: u64,
    /// Finished waits for a processor so far, in nanoseconds.
    pub(crate) ready: u64,
    /// The state at that moment.
    pub(crate) activity: Activity,
}

/// The place in which a thread waits, as far as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BlockedIn {
    /// A system call of this number.
    SystemCall(i64),
    /// The kernel, outside a system call: a page fault, for example.
    Kernel,
    /// The kernel does not tell.
    Unknown,
}
