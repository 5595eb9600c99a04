//! The upcalls, and the number of times that each has come.
//!
//! The kernel of the paper calls up: it starts a fresh context on the processor in question, which
//! runs the user-level scheduler. Linux writes a record. So the upcall is made by the thread that
//! reads the record: a worker at its next scheduling point, or the monitor, which the record wakes.
//!
//! - [`Blocked`](Upcall::Blocked). The paper's: the kernel has blocked a thread, its processor is
//!   free. Here: the record says that a worker left its processor, in the middle of a thread.
//! - [`Unblocked`](Upcall::Unblocked). The paper's: it can go on. Here: the worker runs again:
//!   another thread finds it back, or it comes to a scheduling point itself, perhaps to find its
//!   slot gone.
//! - [`Preempted`](Upcall::Preempted). The paper's: a processor was taken. Here: the record says
//!   so: the worker's thread goes on when the kernel lets it.
//! - [`ProcessorAdded`](Upcall::ProcessorAdded). The paper's: a processor was given. Here: a
//!   worker was given a slot.
//!
//! Each is counted once, by the thread that finds it first (`detection/observed.rs`). `Unblocked`
//! comes once for each `Blocked`. So it does not come for a thread that has said by
//! [`blocking`](crate::blocking()) that it will block, and has given its slot away. Two blocks
//! between which no thread looked are counted as one.
//!
//! On a simulated machine a record is the switch itself, so the counts are exact: the upcall
//! happened at that nanosecond, to that worker. The paper's kernel also calls up at once, on an
//! activation of its own that takes the place of the blocked one (`os/activations.rs` of the
//! simulator). Here, as on Linux, a worker that looks has to run first, or the monitor has to be
//! woken.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, table II.

use stanchion_machine::atomic::{AtomicU64, Fresh, Ordering};

use super::histogram::{Histogram, Latencies};

/// An upcall: what the kernel has told a runtime.
///
/// ```
/// use stanchion_activations::{Runtime, Upcall};
///
/// let runtime = Runtime::new(2)?;
/// runtime.run(|| ());
/// for upcall in Upcall::ALL {
///     println!("{upcall:?}: {}", runtime.metrics().upcalls(upcall));
/// }
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Upcall {
    /// A kernel thread waits in the kernel, in the middle of a user-level thread.
    Blocked,
    /// The kernel thread is back.
    Unblocked,
    /// A processor was taken from a kernel thread that could have gone on.
    Preempted,
    /// A kernel thread has been given a processor slot.
    ProcessorAdded,
}

impl Upcall {
    /// All upcalls.
    pub const ALL: [Self; 4] =
        [Self::Blocked, Self::Unblocked, Self::Preempted, Self::ProcessorAdded];
}

/// The number of times that each upcall has come. Any thread raises these counts.
pub struct UpcallCounts([AtomicU64; 4]);

impl UpcallCounts {
    /// Counts an upcall.
    pub fn count(&self, upcall: Upcall) {
        // AcqRel: pairs with that of `assignments`. For all else it is a statistic.
        self.0[upcall as usize].fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often a worker has been given a slot. A worker counts that before it takes a
    /// thread there.
    pub fn assignments(&self) -> u64 {
        // An exchange, though it changes nothing, as in `ParkedSlots::count`. Acquire: pairs with
        // the Release of `count`: which worker it was, and that it has a slot. Release: pairs with
        // the Acquire of the next `count`: the caller has read nothing that the worker writes after
        // that.
        self.0[Upcall::ProcessorAdded as usize].fetch_add(0, Ordering::AcqRel)
    }

    pub(crate) fn get(&self, upcall: Upcall) -> u64 {
        // Relaxed: a statistic.
        self.0[upcall as usize].load(Ordering::Relaxed)
    }
}

impl Default for UpcallCounts {
    fn default() -> Self {
        Self(core::array::from_fn(|_| AtomicU64::fresh(0)))
    }
}

/// The upcalls of a runtime, and other rare events. Any thread raises these counts.
#[derive(Default)]
pub(crate) struct UpcallCounters {
    /// The number of each upcall.
    pub(crate) upcalls: UpcallCounts,
    /// The time from each upcall's cause until it was counted.
    latencies: [Histogram; 4],
    /// Slots that were taken from a blocked worker.
    pub(crate) handoffs: Counter,
    /// Hand-offs after which the worker was back too soon.
    pub(crate) false_handoffs: Counter,
    /// Blocks for which there was no spare worker.
    pub(crate) unreplaced: Counter,
    /// Workers that were back from a block, had lost their slot, and went on at once.
    pub(crate) returns_at_once: Counter,
}

/// A count that any thread raises, seldom.
pub(crate) struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::fresh(0))
    }
}

impl Counter {
    pub(crate) fn increment(&self) {
        // Relaxed: a statistic.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: a statistic.
        self.0.load(Ordering::Relaxed)
    }
}

impl UpcallCounters {
    /// Counts an upcall, so many nanoseconds after its cause, if that is known.
    pub(crate) fn count(&self, upcall: Upcall, latency: Option<u64>) {
        self.upcalls.count(upcall);
        if let Some(nanos) = latency {
            self.latencies[upcall as usize].count(nanos);
        }
    }

    pub(crate) fn latencies(&self, upcall: Upcall) -> Latencies {
        self.latencies[upcall as usize].read()
    }
}
