//! What the kernel tells, and how often it has.
//!
//! The kernel of the paper calls up: it starts a fresh context on the processor in question, which
//! runs the user-level scheduler. Linux writes a record. So the upcall is made by whoever looks: a
//! worker at its next scheduling point, or the monitor, whom the record wakes.
//!
//! | upcall | the paper's | here |
//! | --- | --- | --- |
//! | [`Blocked`](Upcall::Blocked) | the kernel has blocked a thread, its processor is free | the record says that a worker left its processor, in the middle of a thread |
//! | [`Unblocked`](Upcall::Unblocked) | it can go on | it runs again: a look finds it back, or it comes to a scheduling point itself, perhaps to find its slot gone |
//! | [`Preempted`](Upcall::Preempted) | a processor was taken | the record says so: its thread goes on when the kernel lets it |
//! | [`ProcessorAdded`](Upcall::ProcessorAdded) | a processor was given | a worker was given a slot |
//!
//! Each is told once, by whoever finds it first (`note.rs`): `Unblocked` once for each `Blocked`,
//! and so not of who has said by [`blocking`](crate::blocking()) that it will block, and has given
//! its slot away. Two blocks between which nobody looked are told as one.
//!
//! On a simulated machine a record is the switch itself, so what is told is exact: it happened at
//! that nanosecond, to that worker. The paper's kernel also tells at once, on an activation of its
//! own that takes the place of the one that has blocked (`os/activations.rs` of the simulator);
//! here, as on Linux, a worker that looks has to run first, or the monitor to be woken.
//!
//! Source: Anderson, Bershad, Lazowska and Levy 1992, table II.

use machine::atomic::{AtomicU64, Fresh, Ordering};

use crate::stats::histogram::{Histogram, Latencies};

/// What the kernel has told a runtime.
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
    /// It is back.
    Unblocked,
    /// A processor was taken from a kernel thread that could have gone on.
    Preempted,
    /// A kernel thread has been given a slot.
    ProcessorAdded,
}

impl Upcall {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Blocked, Self::Unblocked, Self::Preempted, Self::ProcessorAdded];
}

/// How often each has come.
#[derive(Default)]
pub(crate) struct Counters {
    upcalls: [AtomicU64; 4],
    latencies: [Histogram; 4],
    pub(crate) handovers: Counter,
    pub(crate) false_handovers: Counter,
    /// Blocks for which there was no spare worker.
    pub(crate) unreplaced: Counter,
    pub(crate) overcommit: Counter,
}

/// A number that anybody raises, seldom.
pub(crate) struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::fresh(0))
    }
}

impl Counter {
    pub(crate) fn raise(&self) {
        // Relaxed: a statistic.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn wake(&self, upcall: Upcall, latency: Option<u64>) {
        // AcqRel: pairs with that of `assignments`; for all else it is a statistic.
        self.upcalls[upcall as usize].fetch_add(1, Ordering::AcqRel);
        if let Some(nanos) = latency {
            self.latencies[upcall as usize].note(nanos);
        }
    }

    /// How often a worker has been given a slot, and has not taken a thread there before it said
    /// so.
    pub(crate) fn assignments(&self) -> u64 {
        // An exchange, though it changes nothing, as in `ParkedSlots::count`. Acquire: pairs with the
        // Release of `tell`: who it was, and that he has a slot. Release: pairs with the Acquire of
        // the next `tell`: what the caller has read until now is not of what is taken after that.
        self.upcalls[Upcall::ProcessorAdded as usize].fetch_add(0, Ordering::AcqRel)
    }

    pub(crate) fn latencies(&self, upcall: Upcall) -> Latencies {
        self.latencies[upcall as usize].read()
    }

    pub(crate) fn told(&self, upcall: Upcall) -> u64 {
        self.upcalls[upcall as usize].load(Ordering::Relaxed)
    }
}
