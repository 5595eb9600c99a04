//! What a runtime has done so far.

use core::fmt;
use core::time::Duration;

use crate::latency::Latencies;
use crate::upcall::Upcall;

/// Counts since the runtime was made, from [`Runtime::metrics`](crate::Runtime::metrics); each of them right, but not all from one moment. Its `Display` is
/// some lines for people.
///
/// A thread that is spawned, runs and ends is counted without an atomic operation that others could contend for, and no clock is read for it. Upcalls and
/// hand-overs read it, some 40 ns beside a switch of the kernel's.
///
/// ```
/// use stanchion_activations::{Runtime, Upcall};
///
/// let runtime = Runtime::new(2)?;
/// runtime.run(|| std::thread::sleep(std::time::Duration::from_millis(1)));
/// let metrics = runtime.metrics();
/// assert_eq!(metrics.spawned, 1);
/// println!("told of {} blocks, {}", metrics.upcalls(Upcall::Blocked), metrics.latency(Upcall::Blocked));
/// println!("{metrics}");
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Threads that were spawned, whether they have ended or not.
    pub spawned: u64,
    /// Threads that have ended.
    pub ended: u64,
    /// How often each upcall came, in the order of [`Upcall::ALL`]. A block that nobody looked at while it lasted is not counted.
    pub upcalls: [u64; 4],
    /// How long after each upcall's cause the runtime knew of it, in the order of [`Upcall::ALL`]; see [`latency`](Self::latency).
    pub latencies: [Latencies; 4],
    /// Seats taken from kernel threads that were stuck.
    pub handovers: u64,
    /// Those of them whose kernel thread was back within 15 µs, before another can have begun.
    pub false_handovers: u64,
    /// How often a kernel thread that came back to find its seat gone went on at once, because a processor was idle. Each time there was one kernel
    /// thread more for the kernel to choose from than processors, until one found nothing to do.
    pub surplus: u64,
    /// Hand-overs for which there was no kernel thread left: raise [`spare_threads`](crate::RuntimeBuilder::spare_threads).
    pub vain_handovers: u64,
    /// How long hand-overs took, from the look that found a kernel thread blocked while something was ready, until another ran on its seat: the runtime's
    /// patience, and a wake-up.
    pub handover_latencies: Latencies,
    /// Seat-time lost to blocked kernel threads while something was ready, of all seats together: what [`handover_latencies`](Self::handover_latencies) count,
    /// and blocks that were over, or nothing ready any more, before a seat was taken. Without the time before a look finds the block
    /// ([`latency`](Self::latency) of [`Upcall::Blocked`]), and without what preempted ones lose, whose processors others have.
    pub seat_time_lost: Duration,
    /// How many of its processors it uses: fewer than it has, if it is [limited](crate::Runtime::limit_processors) or [shares](crate::Arbiter) them.
    pub processors: usize,
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

    /// How long after an upcall's cause the runtime knew of it. For [`Upcall::ProcessorAdded`] from when a kernel thread was given a seat until it went on
    /// there; for the others from when the kernel switched the thread, by the time in its record, so not where there are no
    /// [records](crate::Tier::Records).
    ///
    /// A kernel thread that was away, and finds its seat gone, tells of its own return: from when it was last switched in.
    #[must_use]
    pub fn latency(&self, upcall: Upcall) -> &Latencies {
        &self.latencies[upcall as usize]
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spawned, ended, processors, carriers, ready, waiting_carriers, .. } = self;
        writeln!(
            f,
            "threads: {spawned} spawned, {ended} ended, {ready} ready; {carriers} kernel threads on {processors} processors, {waiting_carriers} of them waiting for a seat"
        )?;
        for upcall in Upcall::ALL {
            writeln!(f, "{upcall:?}: {} ({})", self.upcalls(upcall), self.latency(upcall))?;
        }
        write!(
            f,
            "hand-overs: {} ({}), {} false, {} in vain; {} went on beside others; {:.1?} of seat-time lost to blocks",
            self.handovers,
            self.handover_latencies,
            self.false_handovers,
            self.vain_handovers,
            self.surplus,
            self.seat_time_lost
        )
    }
}
