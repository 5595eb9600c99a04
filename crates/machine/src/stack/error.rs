//! The reasons why a stack cannot be made, and what would mend each.

use core::fmt;

/// The reason why a stack cannot be made, and what would mend it. Existing stacks stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackError {
    /// Stacks are not supported on this machine.
    Unsupported {
        /// The operating system that the program runs on.
        os: &'static str,
    },
    /// No machine has that much memory.
    TooLarge {
        /// The size asked for, in bytes.
        asked: usize,
        /// The largest possible size, in bytes.
        most: usize,
    },
    /// The process has as many mappings as the system lets it have.
    Mappings {
        /// The value of the setting.
        limit: usize,
    },
    /// The process may not have that much address space. An eighth of its limit is left to the rest
    /// of the program, because an allocator that finds no address space aborts.
    AddressSpace {
        /// The number of bytes asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The system has no more memory to promise.
    Memory {
        /// The number of bytes asked for.
        bytes: usize,
    },
    /// Any other error.
    Other {
        /// The system call.
        call: &'static str,
        /// The error number that it returned.
        errno: i32,
    },
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported { os } => {
                write!(f, "stacks need the memory protection of a Unix system; this is {os}")
            }
            Self::TooLarge { asked, most } => {
                write!(f, "a stack of {asked} bytes: ask for at most {most}")
            }
            Self::Mappings { limit } => write!(
                f,
                "the process has used up its {limit} memory mappings (vm.max_map_count): \
                 each stack with protected guards takes two. Run on Linux 6.13 or later, \
                 which installs guards without mappings, or raise the limit (`sysctl \
                 vm.max_map_count={}`), or have fewer threads at a time",
                limit.saturating_mul(4)
            ),
            Self::AddressSpace { bytes, limit } => write!(
                f,
                "no address space for {bytes} bytes of stacks: the process may have \
                 {limit} bytes, an eighth of which is left to all else; raise RLIMIT_AS \
                 (`ulimit -v`), or ask for smaller stacks or fewer threads at a time"
            ),
            Self::Memory { bytes } => write!(
                f,
                "the system refuses {bytes} bytes for stacks: ask for smaller stacks or \
                 fewer threads at a time, or let it promise more than it has \
                 (vm.overcommit_memory is not 2)"
            ),
            Self::Other { call, errno } => write!(f, "{call} failed with error {errno}"),
        }
    }
}

impl core::error::Error for StackError {}
