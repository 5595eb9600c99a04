//! The choices of the builder for an executor.

use std::time::Duration;

use stanchion_machine::control::Refused;

use crate::matrix::Alternates;
use crate::switching::Switching;

/// The settings of an executor, which do not change.
pub(crate) struct Settings {
    /// The number of virtual processors.
    pub(crate) processors: usize,
    /// The most slots.
    pub(crate) slots: usize,
    /// The choice of members for processors that a slot leaves empty.
    pub(crate) alternates: Alternates,
    /// The length of a turn while several slots take turns.
    pub(crate) quantum: Duration,
    /// The time for which a member may overstay before it is evicted.
    pub(crate) grace_ns: u64,
    /// The time for which a member spins at a barrier.
    pub(crate) spin_ns: u64,
    /// The way in which members are taken off their processors.
    pub(crate) switching: Switching,
    /// Why `switching` is not the mode that was asked for, if it is not.
    pub(crate) refused: Option<Refused>,
    /// The CPUs that threads are pinned to, by virtual processor. Empty if they are not pinned.
    pub(crate) cpus: Vec<usize>,
    /// The size of the threads' stacks, in bytes.
    pub(crate) stack_size: Option<usize>,
}
