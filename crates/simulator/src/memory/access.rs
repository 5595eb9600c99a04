//! An access to a line, and its result.

use crate::Time;

/// A line of memory: a number that is the same on every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) u64);

/// The effect of an access on its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write, also one that fails.
    Exchange,
}

/// One access of a processor to a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The time when it is issued.
    pub(crate) at: Time,
    /// The processor that makes it.
    pub(crate) processor: usize,
    /// The line of its word.
    pub(crate) line: Line,
    /// Its effect on the word.
    pub(crate) kind: Kind,
}

/// The result of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// The time when the processor goes on.
    pub(crate) at: Time,
    /// The time when other caches see the write, so that a thread that spins there looks again:
    /// often before the writer goes on.
    pub(crate) reaches: Time,
    /// Set if the processor's own cache satisfied it, without a transaction.
    pub(crate) hit: bool,
    /// Set if the line came from another processor's cache.
    pub(crate) transfer: bool,
    /// The number of copies in other caches that were invalidated.
    pub(crate) invalidated: u32,
    /// The time that it waited for the bus, its line or its memory.
    pub(crate) queued: Time,
    /// The time that it occupied the bus, link or module.
    pub(crate) occupied: Time,
}

impl Done {
    pub(super) fn hit(at: Time) -> Self {
        Self {
            at,
            reaches: at,
            hit: true,
            transfer: false,
            invalidated: 0,
            queued: Time::ZERO,
            occupied: Time::ZERO,
        }
    }
}
