//! A name to count waits under, for programs that measure waits themselves.

use super::distribution::{Distribution, Observation};
use super::table::{self, Target};

/// A name in the table, to which any number of threads add waits at any time. It is not tied to a
/// lock: it is for a program that measures the waits of locks of other crates.
///
/// Adding takes no lock, allocates nothing and calls no other code: some 20 to 100 ns.
///
/// ```
/// use stanchion_competitive::waits::{Observation, Record};
/// let record = Record::register("pthread mutex at main+0x40");
/// record.add(&Observation { length_ns: 2_000, blocked: true, ..Observation::default() });
/// assert_eq!(record.waits().count(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The counts of the name in the table.
    target: Target,
}

impl Record {
    /// Finds the name, or takes a free one. Beyond [`NAMES`](super::NAMES) of them, waits that are
    /// added are counted as [`OTHERS`](super::OTHERS). Takes a microsecond or so, and allocates
    /// nothing.
    #[must_use]
    pub fn register(name: &str) -> Self {
        Self { target: Target::shared(name) }
    }

    /// Counts one wait.
    #[inline]
    pub fn add(self, wait: &Observation) {
        let (counters, writers) = self.target.counters();
        counters.add(wait, table::unit(), writers);
    }

    /// Returns the waits that were added under this name, without those that locks with a slot of
    /// their own have counted under it.
    #[must_use]
    pub fn waits(self) -> Distribution {
        Distribution::reconcile(table::unit(), self.target.counters().0.read())
    }

    /// The record as a number that is not 0, for keeping it in an atomic word.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.target.to_bits()
    }

    /// Returns the record with `bits` as its [`to_bits`](Self::to_bits), or `None` for 0 and for
    /// bits that no record can give. If the record was not registered yet, waits that are added to
    /// it are counted under the name that comes to have its slot.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match Target::from_bits(bits) {
            Some(target) if target.is_shared() => Some(Self { target }),
            _ => None,
        }
    }
}
