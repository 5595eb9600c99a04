//! The reasons why a run has no memory.

use std::io;

/// Why a run has no memory.
#[derive(Debug, thiserror::Error)]
// Where there are no slots, only the kernel refuses.
#[cfg_attr(not(all(unix, target_pointer_width = "64", not(miri))), allow(dead_code))]
pub(crate) enum ArenaError {
    /// The kernel grants not even the smallest reservation.
    #[error(
        "no address space for simulated memory: {0} bytes were refused; is there a limit (ulimit -v)?"
    )]
    Refused(usize),
    /// Guards and layout are made for pages of 64 KiB at most.
    #[error("pages of {0} bytes: simulated memory needs pages of at most 64 KiB")]
    Pages(usize),
    /// Every slot is in use.
    #[error(
        "all {0} slots of simulated memory are in use: a slot is free again when the last value of its run is dropped, \
         and never after a run that failed"
    )]
    Taken(usize),
    /// A stack that no slot could hold.
    #[error("a stack of {0} bytes: a run has 4 GiB for all its memory")]
    Long(usize),
    /// The slot has no room for one more stack.
    #[error(
        "no room for stack {0}: a run has 4 GiB for all its memory; use smaller stacks or fewer threads"
    )]
    Stacks(usize),
    /// The kernel refuses the pages of a stack.
    #[error(
        "the kernel refuses the pages of stack {number}: {error}. A stack takes two of the process's mappings, and Linux allows \
         65,530 of them unless vm.max_map_count says otherwise"
    )]
    Kernel {
        /// The number of the run's stack, from 1.
        number: usize,
        /// The message of the system.
        error: io::Error,
    },
}
