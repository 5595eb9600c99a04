//! What a runtime has done so far.

use core::fmt;
use core::time::Duration;

use crate::stats::histogram::Latencies;
use crate::stats::upcalls::Upcall;

/// Counts since the runtime was made, from [`Runtime::metrics`](crate::Runtime::metrics); each of
/// them right, but not all from one moment. Its `Display` is some lines for people.
///
/// A thread that is spawned, runs and ends is counted without an atomic operation that others could
/// contend for, and no clock is read for it. Upcalls and hand-overs read it, some 40 ns beside a
/// switch of the kernel's.
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
    /// How often each upcall came, in the order of [`Upcall::ALL`]. A block that nobody looked at
    /// while it lasted is not counted.
    pub upcalls: [u64; 4],
    /// How long after each upcall's cause the runtime knew of it, in the order of [`Upcall::ALL`];
    /// see [`latency`](Self::latency).
    pub latencies: [Latencies; 4],
    /// How often a processor was given to another kernel thread, because the first was blocked and
    /// something was ready.
    pub handovers: u64,
    /// Hand-overs that did not pay, of [`handovers`](Self::handovers): the blocked kernel thread
    /// was back within 15 µs. If they are many, blocks are too short to be worth a hand-over.
    pub false_handovers: u64,
    /// How often a thread back from a block went on at once, because a processor was idle, though
    /// its kernel thread had lost its own. The other times it waited for a processor.
    pub returns_at_once: u64,
    /// Blocks that kept ready threads waiting until their end, because the runtime had started all
    /// kernel threads that it may have, or the system refused one. Each block counts once. If it is
    /// not 0, raise [`spare_kernel_threads`](crate::RuntimeBuilder::spare_kernel_threads).
    pub blocks_without_spare: u64,
    /// How long hand-overs took, from the look that found a kernel thread blocked while something
    /// was ready, until another one ran in its place: what a block costs the threads that are ready
    /// beside it.
    pub handover_latencies: Latencies,
    /// Time for which processors were idle because of blocked kernel threads, while something was
    /// ready: at most the run time times the processors. It has what
    /// [`handover_latencies`](Self::handover_latencies) count, and blocks that were over before a
    /// hand-over. It has not the time before a look finds the block ([`latency`](Self::latency) of
    /// [`Upcall::Blocked`]), nor what other programs took.
    pub processor_time_lost: Duration,
    /// How many of its processors it uses now: fewer than it has, if it is
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
    /// How often that upcall came.
    #[must_use]
    pub fn upcalls(&self, upcall: Upcall) -> u64 {
        self.upcalls[upcall as usize]
    }

    /// How long after an upcall's cause the runtime knew of it. For [`Upcall::ProcessorAdded`] from
    /// when a kernel thread was given a slot until it went on there; for the others from when the
    /// kernel switched the thread, by the time in its record, so not where there are no
    /// [records](crate::Tier::Records).
    ///
    /// A kernel thread that was away, and finds its slot gone, tells of its own return: from when
    /// it was last switched in.
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
            "hand-overs: {} ({}), {} for blocks of less than 15 µs; {} returns at once; {} blocks without a spare kernel thread; {:.1?} of processor time lost to blocks",
            self.handovers,
            self.handover_latencies,
            self.false_handovers,
            self.returns_at_once,
            self.blocks_without_spare,
            self.processor_time_lost
        )
    }
}
