//! What the kernel could do for a lock, and if not, why: restartable sequences and the time-slice extension.
//!
//! The slice extension (Linux 7.0) lets a thread in a critical section ask for a few µs more before it is preempted. It needs `rseq` to be registered
//! with a structure of more than 32 bytes, which glibc does from 2.41. [`preemption`](crate::preemption) uses it where it is there: these
//! are questions that a program can ask before it chooses a lock.

use core::fmt;

/// What is registered with the kernel for restartable sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rseq {
    /// Bytes of the structure that the C library registered for each thread.
    pub registered: u32,
    /// Bytes that the kernel knows how to fill; 0 before Linux 6.3, which does not say.
    pub kernel: u32,
}

/// Why something cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Missing {
    /// Only Linux has it.
    #[error("only Linux has this; the program runs on {os}")]
    NotLinux {
        /// What it runs on.
        os: &'static str,
    },
    /// The C library has not registered restartable sequences.
    #[error(
        "the C library has not registered restartable sequences: glibc 2.35 or newer does, unless GLIBC_TUNABLES has glibc.pthread.rseq=0"
    )]
    NotRegistered,
    /// The kernel has no such thing.
    #[error("the kernel is too old or built without it (error {errno}): {needs}")]
    OldKernel {
        /// What the kernel answered.
        errno: i32,
        /// What would have it.
        needs: &'static str,
    },
    /// It is there, but switched off.
    #[error("switched off when the kernel was started: boot with rseq_slice_ext=on")]
    SwitchedOff,
    /// Anything else.
    #[error("prctl failed with error {errno}")]
    Other {
        /// What the call answered.
        errno: i32,
    },
}

impl fmt::Display for Rseq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes registered, the kernel fills {}", self.registered, self.kernel)
    }
}

/// Whether restartable sequences are registered for the threads of this process.
///
/// # Errors
///
/// Why not.
///
/// ```
/// match stanchion_machine::kernel::rseq() {
///     Ok(rseq) => println!("{rseq}"),
///     Err(missing) => println!("{missing}"),
/// }
/// ```
pub fn rseq() -> Result<Rseq, Missing> {
    crate::backend::kernel::rseq()
}

/// Whether the calling thread could ask for the time-slice extension. Only asks; switches nothing on.
///
/// # Errors
///
/// Why not.
pub fn slice_extension() -> Result<(), Missing> {
    crate::backend::kernel::slice_extension()
}
