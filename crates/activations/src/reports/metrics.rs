//! The metrics of a runtime: counts since it was made.

use core::fmt;
use core::time::Duration;

use super::held_up;
use crate::runtime::state::RuntimeState;
use crate::stats::histogram::Latencies;
use crate::stats::upcalls::Upcall;

/// Counts since the runtime was made, from [`Runtime::metrics`](crate::Runtime::metrics). Each of
/// them is right, but they are not all from one moment. Its `Display` is some lines for people.
///
/// A thread that is spawned, runs and ends is counted without an atomic operation that others
/// could contend for, and no clock is read for it. Upcalls and hand-offs read a clock, some 40 ns
/// beside a switch of the kernel's.
///
/// ```
/// use stanchion_activations::{Runtime, Upcall};
///
/// let runtime = Runtime::new(2)?;
/// runtime.run(|| std::thread::sleep(std::time::Duration::from_millis(1)));
/// let metrics = runtime.metrics();
/// assert_eq!(metrics.spawned, 1);
/// println!("{} blocks, {}", metrics.upcalls(Upcall::Blocked), metrics.latency(Upcall::Blocked));
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
    /// The number of times that each upcall came, in the order of [`Upcall::ALL`]. A block that no
    /// thread looked at while it lasted is not counted.
    pub upcalls: [u64; 4],
    /// The time from each upcall's cause until the runtime knew of it, in the order of
    /// [`Upcall::ALL`]; see [`latency`](Self::latency).
    pub latencies: [Latencies; 4],
    /// The number of times that a processor was given to another kernel thread, because the first
    /// was blocked and a thread was ready.
    pub handoffs: u64,
    /// The hand-offs that did not pay, of [`handoffs`](Self::handoffs): the blocked kernel thread
    /// was back within 15 µs. If they are many, blocks are too short to be worth a hand-off.
    pub false_handoffs: u64,
    /// The number of times that a thread back from a block went on at once, because a processor was
    /// idle, though its kernel thread had lost its own. The other times it waited for a processor.
    pub returns_at_once: u64,
    /// Blocks that kept ready threads waiting until their end, because the runtime had started all
    /// kernel threads that it may have, or the system refused one. Each block counts once. If it is
    /// not 0, raise [`spare_kernel_threads`](crate::RuntimeBuilder::spare_kernel_threads).
    pub blocks_without_spare: u64,
    /// The duration of hand-offs, from the look that found a kernel thread blocked while a thread
    /// was ready, until another kernel thread ran in its place. That is the price of a block for
    /// the threads that are ready beside it.
    pub handoff_latencies: Latencies,
    /// The time for which processors were idle because of blocked kernel threads, while a thread
    /// was ready: at most the run time times the processors. It includes the time that
    /// [`handoff_latencies`](Self::handoff_latencies) count, and blocks that were over before a
    /// hand-off. It does not include the time before a look finds the block
    /// ([`latency`](Self::latency) of [`Upcall::Blocked`]), nor the time that other programs took.
    pub processor_time_lost: Duration,
    /// The processors that it uses now: fewer than it has, if it is
    /// [limited](crate::Runtime::limit_processors) or [shares](crate::Arbiter) them.
    pub processors: usize,
    /// Kernel threads that have been started to run threads, whether they are in use or not: one
    /// for each processor, and as many more as were needed at a time.
    pub kernel_threads: usize,
    /// Threads that are ready now and that any kernel thread could run: new ones, and such as
    /// migrate. Many of them for long means that there are too few processors, or that threads
    /// compute for long.
    pub ready: usize,
    /// Kernel threads that wait for a processor now, with ready threads that only they can run.
    /// Many of them for long means the same.
    pub waiting_kernel_threads: usize,
    /// Threads that are ready, and wait for a kernel thread that is blocked in the kernel: only it
    /// can run them. Which threads [share a kernel
    /// thread](crate#which-threads-share-a-kernel-thread).
    pub held_up: usize,
}

impl Metrics {
    /// Returns the number of times that this upcall came.
    #[must_use]
    pub fn upcalls(&self, upcall: Upcall) -> u64 {
        self.upcalls[upcall as usize]
    }

    /// Returns the time from an upcall's cause until the runtime knew of it.
    ///
    /// For [`Upcall::ProcessorAdded`] the cause is that a kernel thread is given a slot, and the
    /// runtime knows of it when that thread runs there. For the others the cause is the switch of
    /// the kernel thread, by the time in its record. So there are none where there are no
    /// [records](crate::Tier::Records).
    ///
    /// A kernel thread that was away, and finds its slot gone, counts its own return: from the time
    /// at which it was last switched in.
    #[must_use]
    pub fn latency(&self, upcall: Upcall) -> &Latencies {
        &self.latencies[upcall as usize]
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            spawned, ended, processors, kernel_threads, ready, waiting_kernel_threads, ..
        } = self;
        writeln!(
            f,
            "threads: {spawned} spawned, {ended} ended, {ready} ready; {kernel_threads} kernel threads on {processors} processors, {waiting_kernel_threads} of them waiting for one"
        )?;
        for upcall in Upcall::ALL {
            writeln!(f, "{upcall:?}: {} ({})", self.upcalls(upcall), self.latency(upcall))?;
        }
        write!(
            f,
            "hand-offs: {} ({}), {} for blocks of less than 15 µs; {} returns at once; {} blocks without a spare kernel thread; {:.1?} of processor time lost to blocks",
            self.handoffs,
            self.handoff_latencies,
            self.false_handoffs,
            self.returns_at_once,
            self.blocks_without_spare,
            self.processor_time_lost
        )
    }
}

/// Reads the metrics of a runtime.
pub(crate) fn metrics(runtime: &RuntimeState) -> Metrics {
    let (ended, created) = runtime.ended_and_created();
    let (counters, lost_time) = (&runtime.detection.counters, &runtime.detection.lost_time);
    Metrics {
        spawned: created,
        ended,
        upcalls: Upcall::ALL.map(|upcall| counters.upcalls.get(upcall)),
        latencies: Upcall::ALL.map(|upcall| counters.latencies(upcall)),
        handoffs: counters.handoffs.get(),
        false_handoffs: counters.false_handoffs.get(),
        returns_at_once: counters.returns_at_once.get(),
        blocks_without_spare: counters.unreplaced.get(),
        handoff_latencies: lost_time.handoffs.read(),
        processor_time_lost: Duration::from_nanos(lost_time.nanos()),
        processors: runtime.processors.limit.allowed(),
        kernel_threads: runtime.workers.started(),
        ready: runtime.ready.normal.len(),
        waiting_kernel_threads: runtime.processors.idle_workers.waiting(),
        held_up: held_up::count(runtime),
    }
}
