//! Reports which help for locks the kernel offers, and why not if it does not: restartable
//! sequences and the time-slice extension.
//!
//! With the slice extension (Linux 7.0), a thread in a critical section can ask for a few more µs
//! before it is preempted. The extension needs `rseq` to be registered with a structure of more
//! than 32 bytes, which glibc does from 2.41. [`stanchion_machine::preemption`] uses the extension
//! where it exists.

use std::fmt;

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

impl std::error::Error for Missing {}

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
/// match stanchion_study::survey::kernel::rseq() {
///     Ok(rseq) => println!("{rseq}"),
///     Err(missing) => println!("{missing}"),
/// }
/// ```
#[cfg(all(target_os = "linux", not(miri)))]
pub fn rseq() -> Result<Rseq, Missing> {
    /// `AT_RSEQ_FEATURE_SIZE`, Linux 6.3.
    const FEATURE_SIZE: libc::c_ulong = 27;
    // SAFETY: looks a name up among the loaded libraries; the name ends with a zero.
    let registered = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()) };
    if registered.is_null() {
        return Err(Missing::NotRegistered);
    }
    // SAFETY: glibc defines the name as an `unsigned int` that does not change after start-up.
    let registered = unsafe { registered.cast::<u32>().read() };
    if registered == 0 {
        return Err(Missing::NotRegistered);
    }
    // SAFETY: a look-up that answers 0 for what it does not know.
    let kernel = unsafe { libc::getauxval(FEATURE_SIZE) };
    Ok(Rseq { registered, kernel: u32::try_from(kernel).unwrap_or(u32::MAX) })
}

/// Returns whether the calling thread could ask for the time-slice extension. It switches nothing
/// on.
///
/// # Errors
///
/// [`Missing`], if it could not.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn slice_extension() -> Result<(), Missing> {
    /// `PR_RSEQ_SLICE_EXTENSION` and its `GET`, Linux 7.0.
    const SLICE_EXTENSION: libc::c_int = 79;
    const GET: libc::c_ulong = 1;
    const NOTHING: libc::c_ulong = 0;
    // SAFETY: only asks, and no argument is a pointer.
    let answer = unsafe { libc::prctl(SLICE_EXTENSION, GET, NOTHING, NOTHING, NOTHING) };
    if answer >= 0 {
        return rseq().map(|_| ());
    }
    Err(why_no_extension(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)))
}

/// Interprets the answers of the kernel.
#[cfg(all(target_os = "linux", not(miri)))]
fn why_no_extension(errno: i32) -> Missing {
    /// The kernel's own ENOTSUPP, which the C library does not know.
    const ENOTSUPP: i32 = 524;
    match errno {
        libc::EINVAL | libc::ENOSYS => {
            Missing::OldKernel { errno, needs: "Linux 7.0 with CONFIG_RSEQ_SLICE_EXTENSION" }
        }
        libc::ENXIO => Missing::NotRegistered,
        libc::EOPNOTSUPP | ENOTSUPP => Missing::SwitchedOff,
        errno => Missing::Other { errno },
    }
}

/// Returns [`Missing::NotLinux`]: only Linux has restartable sequences.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn rseq() -> Result<Rseq, Missing> {
    Err(Missing::NotLinux { os: std::env::consts::OS })
}

/// Returns [`Missing::NotLinux`]: only Linux has the extension.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn slice_extension() -> Result<(), Missing> {
    Err(Missing::NotLinux { os: std::env::consts::OS })
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn each_answer_of_the_kernel_has_its_reason() {
        for (errno, says) in [
            (libc::EINVAL, "Linux 7.0"),
            (libc::ENXIO, "glibc 2.35"),
            (524, "rseq_slice_ext=on"),
            (libc::EPERM, "error 1"),
        ] {
            let message = format!("{}", why_no_extension(errno));
            assert!(message.contains(says), "{message}");
        }
    }

    #[test]
    fn the_extension_is_had_only_with_rseq() {
        if slice_extension().is_ok() {
            assert!(rseq().unwrap().kernel > 32);
        }
        if let Ok(rseq) = rseq() {
            assert!(rseq.registered >= 20, "the first version had 20 bytes: {rseq}");
        }
    }

    #[test]
    fn the_machine_honours_requests_as_the_kernel_says() {
        use stanchion_machine::preemption::{Means, means};
        let here = std::thread::spawn(means).join().unwrap();
        match slice_extension() {
            Err(_) => assert_eq!(here, Means::None),
            Ok(()) => assert_ne!(here, Means::Scheduler),
        }
    }
}
