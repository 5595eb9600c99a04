//! The reasons why the kernel's switch records cannot be had.

use core::fmt;

/// The reason why switch records cannot be had, and what would mend it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// Only Linux has them.
    Unsupported {
        /// The operating system that the program runs on.
        os: &'static str,
    },
    /// The kernel was built without perf events, or is too old to record switches (4.3).
    NoPerfEvents {
        /// The error that the kernel returned.
        errno: i32,
    },
    /// The system's policy forbids perf events to ordinary users.
    Paranoid {
        /// The policy in force.
        level: i32,
    },
    /// Something between this process and the kernel forbids the call, usually a container's
    /// seccomp filter or a security module.
    Filtered {
        /// The error that the call returned.
        errno: i32,
    },
    /// The user has no locked memory left for one more ring.
    MemoryLimit {
        /// The policy in force, in KiB for each processor; 0 if it cannot be read.
        mlock_kb: u64,
        /// This process's limit, in KiB.
        memlock_kb: u64,
    },
    /// No file descriptor left: one is needed while a ring is made.
    Descriptors {
        /// The error that the call returned.
        errno: i32,
    },
    /// The thread has no [`index`](crate::thread::index): too many threads have one, or the thread
    /// is in its last destructors.
    NoIndex,
    /// The program itself has declined switch records
    /// ([`presence::decline`](crate::presence::decline)).
    Declined,
    /// The records did not match what the threads did.
    Untrustworthy {
        /// The mismatch that was found.
        what: &'static str,
    },
    /// Any other error.
    Other {
        /// The system call.
        call: &'static str,
        /// The error number that it returned.
        errno: i32,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { os } => {
                write!(f, "only Linux has switch records; this program runs on {os}")
            }
            Self::NoPerfEvents { errno } => write!(
                f,
                "the kernel has no switch records (perf_event_open: error {errno}): Linux \
                 4.3 with CONFIG_PERF_EVENTS is needed"
            ),
            Self::Paranoid { level } => write!(
                f,
                "kernel.perf_event_paranoid is {level} and forbids perf events to this \
                 user: set it to 2 or less (sysctl), or grant CAP_PERFMON"
            ),
            Self::Filtered { errno } => write!(
                f,
                "perf_event_open is forbidden to this process (error {errno}) although \
                 kernel.perf_event_paranoid would allow it: permit it in the container's \
                 seccomp profile"
            ),
            Self::MemoryLimit { mlock_kb, memlock_kb } => write!(
                f,
                "no locked memory left for another ring: raise kernel.perf_event_mlock_kb \
                 (now {mlock_kb} KiB for each processor) or RLIMIT_MEMLOCK (now \
                 {memlock_kb} KiB)"
            ),
            Self::Descriptors { errno } => write!(
                f,
                "no file descriptor left to make a ring with (error {errno}): raise \
                 RLIMIT_NOFILE"
            ),
            Self::NoIndex => write!(
                f,
                "this thread has no index: {} threads have one, or it is in its last \
                 destructors",
                crate::thread::INDICES
            ),
            Self::Declined => f.write_str("this program has declined switch records"),
            Self::Untrustworthy { what } => {
                write!(f, "the kernel's switch records are not to be trusted: {what}")
            }
            Self::Other { call, errno } => write!(f, "{call} failed with error {errno}"),
        }
    }
}

impl core::error::Error for Refused {}
