//! The waits of a run's threads, by what they waited for.

use crate::barrier::MeetingWaits;
use crate::waits::Waits;

/// The waits of a run, by what the threads waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitStatistics {
    /// Locks of the buckets of objects: the values of the circuit.
    pub objects: Waits,
    /// The locks of the threads' lists: owners, and objects that are due.
    pub lists: Waits,
    /// The lock of the phase counter.
    pub phase: Waits,
    /// Not a lock: waits for the others at the end of a phase.
    pub barrier: Waits,
}

impl WaitStatistics {
    /// Adds what another thread has recorded.
    pub fn merge(&mut self, other: &WaitStatistics) {
        self.objects.merge(&other.objects);
        self.lists.merge(&other.lists);
        self.phase.merge(&other.phase);
        self.barrier.merge(&other.barrier);
    }

    /// All locks together, without the barrier.
    #[must_use]
    pub fn locks(&self) -> Waits {
        let mut all = self.objects.clone();
        all.merge(&self.lists);
        all.merge(&self.phase);
        all
    }
}

impl MeetingWaits for WaitStatistics {
    fn gathering(&mut self) -> &mut Waits {
        &mut self.phase
    }

    fn barrier(&mut self) -> &mut Waits {
        &mut self.barrier
    }
}
