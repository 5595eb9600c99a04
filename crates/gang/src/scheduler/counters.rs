//! Statistics of the slot scheduler.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

/// A number that any thread increases.
pub(crate) struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::fresh(0))
    }
}

impl Counter {
    pub(crate) fn add(&self, more: u64) {
        // Relaxed: statistics.
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn clear(&self) {
        // Relaxed: statistics.
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: statistics.
        self.0.load(Ordering::Relaxed)
    }
}

/// The counts of a scheduler. Any thread writes them.
#[derive(Default)]
pub(crate) struct Counters {
    /// Turns that ended because their quantum was over.
    pub(crate) rotations_by_quantum: Counter,
    /// Turns that ended because no member of the slot was active.
    pub(crate) rotations_by_idle: Counter,
    /// Members that gave up their processor, slept, and came back.
    pub(crate) switches: Counter,
    /// Members that were evicted from their processor.
    pub(crate) overstays: Counter,
    /// Interruptions that could not be sent, because the program has taken the signal.
    pub(crate) refused_interruptions: Counter,
    /// Processors times nanoseconds, of turns that had an end.
    pub(crate) processor_time_ns: Counter,
    /// The part of it in which the table had no member for the processor.
    pub(crate) lost_ns: Counter,
}
