//! Reports which help for locks the kernel offers, and why not if it does not: restartable
//! sequences and the time-slice extension.
//!
//! With the slice extension (Linux 7.0), a thread in a critical section can ask for a few more µs
//! before it is preempted. The extension needs `rseq` to be registered with a structure of more
//! than 32 bytes, which glibc does from 2.41. [`preemption`](crate::preemption) uses the extension
//! where it exists. A program can call the functions of this module before it chooses a lock.

use core::fmt;

/// The registration with the kernel for restartable sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rseq {
    /// Bytes of the structure that the C library registered for each thread.
    pub registered: u32,
    /// Bytes that the kernel can fill. It is 0 before Linux 6.3, which does not report the number.
    pub kernel: u32,
}

/// The reason why a feature of the kernel cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// Only Linux has it.
    NotLinux {
        /// The operating system that the program runs on.
        os: &'static str,
    },
    /// The C library has not registered restartable sequences.
    NotRegistered,
    /// The kernel does not have the feature.
    OldKernel {
        /// The error that the kernel returned.
        errno: i32,
        /// The versions or options that are needed.
        needs: &'static str,
    },
    /// The kernel has it, but it is switched off.
    SwitchedOff,
    /// Any other error.
    Other {
        /// The error that the call returned.
        errno: i32,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLinux { os } => write!(f, "only Linux has this; the program runs on {os}"),
            Self::NotRegistered => f.write_str(
                "the C library has not registered restartable sequences: glibc 2.35 or \
                 newer does, unless GLIBC_TUNABLES has glibc.pthread.rseq=0",
            ),
            Self::OldKernel { errno, needs } => {
                write!(f, "the kernel is too old or built without it (error {errno}): {needs}")
            }
            Self::SwitchedOff => {
                f.write_str("switched off when the kernel was started: boot with rseq_slice_ext=on")
            }
            Self::Other { errno } => write!(f, "prctl failed with error {errno}"),
        }
    }
}

impl core::error::Error for Missing {}

impl fmt::Display for Rseq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes registered, the kernel fills {}", self.registered, self.kernel)
    }
}

/// Returns the registration of this process's threads for restartable sequences.
///
/// # Errors
///
/// [`Missing`], if there is none.
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

/// Returns whether the calling thread could ask for the time-slice extension. It switches nothing
/// on.
///
/// # Errors
///
/// [`Missing`], if it could not.
pub fn slice_extension() -> Result<(), Missing> {
    crate::backend::kernel::slice_extension()
}
