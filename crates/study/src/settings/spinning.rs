//! A program whose locks spin and block, and the strategies that it is run with.

use std::collections::BTreeMap;

/// A machine, and the seed of what a program makes up.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// How many processors there are.
    pub processors: usize,
    /// The seed of what a program makes up.
    pub seed: u64,
    /// Whether each thread stays on one processor.
    pub pinned: bool,
    /// What an instruction takes on a simulated machine.
    pub instruction_ns: u64,
    /// What it takes to carry a disk of Hanoi.
    pub carry_ns: u64,
    /// What it takes to draw something of it.
    pub draw_ns: u64,
    /// Locks over which the objects of Regsim are spread.
    pub buckets: usize,
}

/// Nanoseconds for which to spin, by the name of the lock.
pub type Thresholds = BTreeMap<String, u64>;

/// How many strategies take part.
pub const ENTRANTS: usize = 11;
