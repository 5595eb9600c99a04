//! Settings of a program with locks that spin and block, and of its spin strategies.

use std::collections::BTreeMap;

/// A machine, and the seed of a program's random data.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of processors.
    pub processors: usize,
    /// The seed of a program's random data.
    pub seed: u64,
    /// True if each thread stays on one processor.
    pub pinned: bool,
    /// Nanoseconds of an instruction on a simulated machine.
    pub instruction_ns: u64,
    /// Nanoseconds to carry a disk of Hanoi.
    pub carry_ns: u64,
    /// Nanoseconds to draw a change of its display.
    pub draw_ns: u64,
    /// The number of locks over which the objects of Regsim are spread.
    pub buckets: usize,
}

/// Nanoseconds to spin for, by the name of the lock.
pub type Thresholds = BTreeMap<String, u64>;

/// The number of strategies.
pub const ENTRANTS: usize = 11;
