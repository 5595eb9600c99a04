//! Why there is no stack, and what would mend it.

/// Why there is no stack, and what would mend it. Stacks that there are stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Not on this machine.
    #[error("stacks need the memory protection of a Unix system; this is {os}")]
    Unsupported {
        /// What it is.
        os: &'static str,
    },
    /// No machine has so much.
    #[error("a stack of {asked} bytes: ask for at most {most}")]
    TooLarge {
        /// How much was asked for, in bytes.
        asked: usize,
        /// How much there can be, in bytes.
        most: usize,
    },
    /// The process has as many mappings as the system lets it have.
    #[error(
        "the process has used up its {limit} memory mappings (vm.max_map_count): each stack with protected guards takes two. Run on Linux 6.13 or later, which installs guards without mappings, \
         or raise the limit (`sysctl vm.max_map_count={}`), or have fewer threads at a time", limit.saturating_mul(4)
    )]
    Mappings {
        /// The setting.
        limit: usize,
    },
    /// The process may not have so much address space. An eighth of what it may have is left to the
    /// rest of the program: an allocator that finds none aborts.
    #[error(
        "no address space for {bytes} bytes of stacks: the process may have {limit} bytes, an eighth of which is left to all else; raise RLIMIT_AS (`ulimit -v`), or ask for smaller stacks or fewer threads at a time"
    )]
    AddressSpace {
        /// How much was asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The system has no more memory to promise.
    #[error(
        "the system refuses {bytes} bytes for stacks: ask for smaller stacks or fewer threads at a time, or let it promise more than it has (vm.overcommit_memory is not 2)"
    )]
    Memory {
        /// How much was asked for.
        bytes: usize,
    },
    /// Anything else.
    #[error("{call} failed with error {errno}")]
    Other {
        /// The system call.
        call: &'static str,
        /// What it answered.
        errno: i32,
    },
}
