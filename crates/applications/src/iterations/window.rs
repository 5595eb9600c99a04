//! The window in which iterations count: from some time after the last thread has started, for so
//! long.
//!
//! > To prevent situations in which the starting conditions cause the system to settle into a
//! > scheduling pattern that affects synchronization performance, a set of skewing threads is
//! > generated at the outset. [...] Thus they terminate early in the measurement, and serve to
//! > cause the different processors to start asynchronously.
//!
//! The skewing threads are the caller's; the window opens after them.

use core::time::Duration;

use stanchion_machine::atomic::{AtomicU64, AtomicUsize, Fresh, Ordering};
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::topology::CachePadded;

/// A span of time that begins when all threads have started.
#[derive(Debug)]
pub struct Window {
    /// The time that all others are counted from.
    origin: Ticks,
    /// The time from the last start to the opening, in nanoseconds.
    settle: u64,
    /// The length of the window, in nanoseconds.
    length: u64,
    /// Threads that are still to start.
    awaited: CachePadded<AtomicUsize>,
    /// Nanoseconds after the origin; for ever until all have started.
    opens: CachePadded<AtomicU64>,
}

impl Window {
    /// One that opens `settle` after the last of so many `threads` has started, and is `length`
    /// long.
    #[must_use]
    pub fn new(threads: usize, settle: Duration, length: Duration) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            origin: clock::now(),
            settle: nanos(settle),
            length: nanos(length),
            awaited: CachePadded::new(AtomicUsize::fresh(threads)),
            opens: CachePadded::new(AtomicU64::fresh(u64::MAX)),
        }
    }

    fn now(&self) -> u64 {
        clock::now().nanos_since(self.origin)
    }

    /// A thread has started.
    pub(super) fn started(&self) {
        // Relaxed: only the number counts, and what `opens` says is about time, not about memory.
        if self.awaited.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Relaxed: as above.
            self.opens.store(self.now() + self.settle, Ordering::Relaxed);
        }
    }

    /// Returns whether it has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        // Relaxed: as above.
        let opens = self.opens.load(Ordering::Relaxed);
        opens != u64::MAX && self.now() >= opens.saturating_add(self.length)
    }

    /// Returns whether it has opened and not ended.
    pub(super) fn is_open(&self) -> bool {
        // Relaxed: as above.
        let (opens, now) = (self.opens.load(Ordering::Relaxed), self.now());
        opens <= now && now - opens < self.length
    }

    /// Returns its length.
    #[must_use]
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.length)
    }
}
