//! The reasons why a stack cannot be made, and what would mend each.

/// The reason why a stack cannot be made, and what would mend it. Existing stacks stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// Stacks are not supported on this machine.
    #[error("stacks need the memory protection of a Unix system; this is {os}")]
    Unsupported {
        /// The operating system that the program runs on.
        os: &'static str,
    },
    /// No machine has that much memory.
    #[error("a stack of {asked} bytes: ask for at most {most}")]
    TooLarge {
        /// The size asked for, in bytes.
        asked: usize,
        /// The largest possible size, in bytes.
        most: usize,
    },
    /// The process has as many mappings as the system lets it have.
    #[error(
        "the process has used up its {limit} memory mappings (vm.max_map_count): each stack with protected guards takes two. Run on Linux 6.13 or later, which installs guards without mappings, \
         or raise the limit (`sysctl vm.max_map_count={}`), or have fewer threads at a time", limit.saturating_mul(4)
    )]
    Mappings {
        /// The value of the setting.
        limit: usize,
    },
    /// The process may not have that much address space. An eighth of its limit is left to the rest
    /// of the program, because an allocator that finds no address space aborts.
    #[error(
        "no address space for {bytes} bytes of stacks: the process may have {limit} bytes, an eighth of which is left to all else; raise RLIMIT_AS (`ulimit -v`), or ask for smaller stacks or fewer threads at a time"
    )]
    AddressSpace {
        /// The number of bytes asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The system has no more memory to promise.
    #[error(
        "the system refuses {bytes} bytes for stacks: ask for smaller stacks or fewer threads at a time, or let it promise more than it has (vm.overcommit_memory is not 2)"
    )]
    Memory {
        /// The number of bytes asked for.
        bytes: usize,
    },
    /// Any other error.
    #[error("{call} failed with error {errno}")]
    Other {
        /// The system call.
        call: &'static str,
        /// The error number that it returned.
        errno: i32,
    },
}
