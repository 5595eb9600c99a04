//! The counts of accesses: of a thread, of a word, or of a run.

use super::{Done, Kind};
use crate::Time;
use serde::{Deserialize, Serialize};

/// The accesses of a thread, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accesses {
    /// Shared accesses, of every kind.
    pub all: u64,
    /// Those that the processor's own cache could not satisfy: transactions.
    pub misses: u64,
    /// Reads among them.
    pub read_misses: u64,
    /// Those with a line that came from another processor's cache.
    pub transfers: u64,
    /// Atomic read-modify-writes, also failed ones.
    pub exchanges: u64,
    /// Copies in other caches that were invalidated.
    pub invalidations: u64,
    /// The time that they queued for the bus, their line or their memory.
    pub queued: Time,
    /// The time that they occupied the bus, a link or a memory.
    pub occupied: Time,
}

impl Accesses {
    #[inline]
    pub(crate) fn add(&mut self, kind: Kind, done: &Done) {
        self.all += 1;
        self.misses += u64::from(!done.hit);
        self.read_misses += u64::from(!done.hit && kind == Kind::Read);
        self.transfers += u64::from(done.transfer);
        self.exchanges += u64::from(kind == Kind::Exchange);
        self.invalidations += u64::from(done.invalidated);
        self.queued += done.queued;
        self.occupied += done.occupied;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.all += other.all;
        self.misses += other.misses;
        self.transfers += other.transfers;
        self.exchanges += other.exchanges;
        self.invalidations += other.invalidations;
        self.queued += other.queued;
        self.occupied += other.occupied;
    }

    /// Returns the counts for each of `count` acquisitions, items, or other things that the program
    /// did so often.
    ///
    /// ```
    /// use stanchion_simulator::Accesses;
    /// let accesses = Accesses { all: 30, transfers: 15, ..Default::default() };
    /// assert_eq!(accesses.per(10).transfers, 1.5);
    /// ```
    ///
    /// # Panics
    ///
    /// If `count` is 0.
    #[must_use]
    pub fn per(&self, count: u64) -> Rates {
        assert!(count > 0, "accesses for each of 0 times");
        let each = |sum: u64| sum as f64 / count as f64;
        Rates {
            all: each(self.all),
            misses: each(self.misses),
            transfers: each(self.transfers),
            exchanges: each(self.exchanges),
            invalidations: each(self.invalidations),
        }
    }
}

/// [`Accesses`] for each time that something was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Shared accesses.
    pub all: f64,
    /// Transactions.
    pub misses: f64,
    /// Lines that came from another processor's cache.
    pub transfers: f64,
    /// Atomic read-modify-writes.
    pub exchanges: f64,
    /// Copies in other caches that were invalidated.
    pub invalidations: f64,
}
