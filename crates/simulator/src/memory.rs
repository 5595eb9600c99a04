//! Memory systems: when is an access done, and what did it take?
//!
//! A memory system is a plain state machine. The run hands it the accesses of all processors in the order in which they are *issued* (their
//! `at` never decreases), and an access takes effect in that order: what it invalidates is invalid for every access issued later. Its
//! time may lie far in the future, when it had to queue for the bus or its line. So contention is nowhere put in: it is what queueing makes of it.

use crate::Time;

/// A line of memory: a number that is the same on every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u64);

/// What an access does to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Read,
    Write,
    /// An atomic read-modify-write, also one that fails.
    Exchange,
}

/// One access of a processor to a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) at: Time,
    pub(crate) processor: usize,
    pub(crate) line: Line,
    pub(crate) kind: Kind,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// When the processor goes on.
    pub(crate) at: Time,
    /// Whether it was satisfied by the processor's own cache, without a transaction.
    pub(crate) hit: bool,
    /// Whether the line came from another processor's cache.
    pub(crate) transfer: bool,
    /// How many copies in other caches were invalidated.
    pub(crate) invalidated: u32,
    /// How long it waited for the bus, its line or its memory.
    pub(crate) queued: Time,
    /// How long it occupied the bus, link or module.
    pub(crate) occupied: Time,
}
