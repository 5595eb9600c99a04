//! What a runtime has done so far.

use crate::upcall::Upcall;

/// Counts since the runtime was made, from [`Runtime::metrics`](crate::Runtime::metrics); each of them right, but not all from one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Threads that were spawned, and that have ended.
    pub spawned: u64,
    /// Threads that have ended.
    pub ended: u64,
    /// How often each upcall came, in the order of [`Upcall::ALL`]. A block that nobody looked at while it lasted is not counted.
    pub upcalls: [u64; 4],
    /// Seats taken from kernel threads that were stuck.
    pub handovers: u64,
    /// Those of them whose kernel thread was back within 50 µs.
    pub false_handovers: u64,
    /// Hand-overs for which there was no kernel thread left: raise [`spare_threads`](crate::RuntimeBuilder::spare_threads).
    pub vain_handovers: u64,
    /// Kernel threads that have been started to carry threads.
    pub carriers: usize,
    /// Threads that are ready and that any kernel thread could run.
    pub ready: usize,
    /// Kernel threads with ready threads of their own that wait for a seat.
    pub waiting_carriers: usize,
}

impl Metrics {
    /// How often that upcall came.
    #[must_use]
    pub fn upcalls(&self, upcall: Upcall) -> u64 {
        self.upcalls[upcall as usize]
    }
}
