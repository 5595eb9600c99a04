//! Building a runtime.

use std::sync::Arc;
use std::time::Duration;

use stanchion_machine::topology;
use stanchion_threadpool::Strategy;
use stanchion_threadpool::strategy::WorkStealing;

use super::error::BuildError;
use super::runtime::Runtime;
use crate::processors::arbiter::Arbiter;
use crate::processors::overcommit;
use crate::queues::ready::{ReadyQueue, StrategyQueue};
use crate::runtime::state::{RuntimeState, Settings};
use crate::thread::stacks::{Size, Stacks};
use crate::upcalls::monitor;
use crate::worker::scheduler_loop;

/// The most processors of a runtime.
const MOST_PROCESSORS: usize = 1_024;

/// The default size of a stack: twice what the hungriest of common crates takes in a debug build
/// (`examples/stack_needs`). A model's stacks are memory, and where addresses have 32 bits they are
/// scarce.
const STACK_SIZE: usize = if cfg!(any(stanchion_loom, stanchion_simulated)) {
    64 << 10
} else if cfg!(target_pointer_width = "64") {
    1 << 20
} else {
    128 << 10
};

/// The most spare kernel threads of a runtime: more have no number
/// (`stanchion_machine::thread::index`), and the kernel would not be asked where they are.
const MOST_SPARES: usize = stanchion_machine::thread::INDICES;

/// The default time for which an idle processor spins before it sleeps.
const IDLE_SPIN: Duration = Duration::from_micros(20);

/// The default number of kernel threads beyond one for each processor.
const SPARES: usize = 1_024;

impl Runtime {
    /// Returns a runtime of so many processors, 0 for as many as the process may use, and otherwise
    /// with the defaults of [`RuntimeBuilder`].
    ///
    /// # Errors
    ///
    /// [`BuildError`].
    pub fn new(processors: usize) -> Result<Self, BuildError> {
        Self::builder().processors(processors).build()
    }

    /// Returns a builder.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::new()
    }
}

/// A builder of runtimes: sets the properties of a [`Runtime`], then builds it.
///
/// ```
/// use std::time::Duration;
///
/// use stanchion_activations::Runtime;
/// use stanchion_threadpool::strategy::LocalReadyQueue;
///
/// let runtime = Runtime::builder()
///     .processors(2)
///     .spare_kernel_threads(16)
///     .stack_size(128 * 1024)
///     .idle_spin(Duration::from_micros(5))
///     .pinned(true)
///     .activations(true)
///     .trace(10_000)
///     .strategy::<LocalReadyQueue>()
///     .build()?;
/// assert_eq!(runtime.processors(), 2);
/// assert!(runtime.capabilities().pinned);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
#[must_use = "a builder builds nothing before `build`"]
pub struct RuntimeBuilder {
    /// The processors; 0 for as many as the process may use.
    processors: usize,
    /// The kernel threads beyond one for each processor.
    spares: usize,
    /// The bytes of a stack.
    stack_size: usize,
    /// The time for which an idle worker spins.
    idle_spin: Duration,
    pinned: bool,
    activations: bool,
    /// The events of each worker that are kept.
    trace: Option<usize>,
    arbiter: Option<Arbiter>,
    /// Makes the ready queue, for so many slots, of which so many are always there.
    queue: fn(usize, usize) -> Box<dyn ReadyQueue>,
}

fn queue<S: Strategy>(slots: usize, active: usize) -> Box<dyn ReadyQueue> {
    Box::new(StrategyQueue::<S>::new(slots, active))
}

impl RuntimeBuilder {
    fn new() -> Self {
        Self {
            processors: 0,
            spares: SPARES,
            stack_size: STACK_SIZE,
            idle_spin: IDLE_SPIN,
            pinned: false,
            activations: true,
            trace: None,
            arbiter: None,
            queue: queue::<WorkStealing>,
        }
    }

    /// Sets the number of processors; 0, the default, for as many as the process may use.
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// Sets the number of kernel threads that there may be beyond one for each processor; 1,024 by
    /// default. None is started before it is needed. At most 16,384: [`build`](Self::build) refuses
    /// more.
    ///
    /// One stands in for each kernel thread that blocks. A thread that has begun and waits needs
    /// one as well, unless it is [of a quick kind](crate#which-threads-share-a-kernel-thread). If
    /// there are no more, processors wait for blocked kernel threads, and threads that wait share
    /// kernel threads.
    pub fn spare_kernel_threads(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// Sets the size of a thread's stack in bytes, rounded up to pages, 16 KiB at least. By default
    /// 1 MiB; 128 KiB where addresses have 32 bits.
    ///
    /// The part that a thread has not touched costs address space, and 2 KiB of page tables for a
    /// thread that has begun on a stack of 1 MiB. In a debug build `regex` takes up to 384 KiB,
    /// `serde_json` 192, `flate2` 384, `toml` 256; a quarter of that in a release build (`cargo run
    /// --manifest-path examples/stack_needs/Cargo.toml`). Where address space is limited (`ulimit
    /// -v`), smaller stacks make room for more threads.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = bytes;
        self
    }

    /// Sets the time for which an idle processor spins before it sleeps; 20 µs by default.
    pub fn idle_spin(mut self, time: Duration) -> Self {
        self.idle_spin = time;
        self
    }

    /// Sets whether each processor of the runtime is one of the machine, on which its kernel
    /// threads stay. By default they do not.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Sets whether other threads go on when one blocks in the kernel without having announced it.
    /// By default they do. Switched off, it leaves user-level threads on plain kernel threads.
    ///
    /// Switched on, each kernel thread takes 8 KiB of locked memory (16 KiB while it is watched),
    /// and some 1.3 µs more for each time that it leaves and takes its processor. One more kernel
    /// thread sleeps while no thread blocks. The runtime takes two file descriptors, and one for
    /// each kernel thread that is watched, up to an eighth of `RLIMIT_NOFILE` for all runtimes
    /// together.
    pub fn activations(mut self, activations: bool) -> Self {
        self.activations = activations;
        self
    }

    /// Records what runs where and the upcalls, up to so many events for each kernel thread, for
    /// [`Runtime::trace`]. It costs some 50 ns for each time that a thread begins, continues or
    /// waits.
    pub fn trace(mut self, events: usize) -> Self {
        self.trace = Some(events);
        self
    }

    /// ReferenceCount the machine's processors with other runtimes, of this or other processes.
    pub fn arbiter(mut self, arbiter: Arbiter) -> Self {
        self.arbiter = Some(arbiter);
        self
    }

    /// Sets the strategy that manages ready threads, any of `stanchion_threadpool`; work stealing
    /// by default.
    pub fn strategy<S: Strategy>(mut self) -> Self {
        self.queue = queue::<S>;
        self
    }

    /// Builds the runtime. Starts one kernel thread for each processor, and one that monitors those
    /// that block.
    ///
    /// # Errors
    ///
    /// Returns a [`BuildError`] for too many processors or spare kernel threads, no room for
    /// stacks of that size, [`pinned`](Self::pinned) together with an [`arbiter`](Self::arbiter),
    /// or the system refuses a kernel thread.
    pub fn build(self) -> Result<Runtime, BuildError> {
        let processors = match self.processors {
            0 => topology::parallelism().min(MOST_PROCESSORS),
            processors => processors,
        };
        if processors > MOST_PROCESSORS {
            return Err(BuildError::Processors { processors, most: MOST_PROCESSORS });
        }
        if self.spares > MOST_SPARES {
            return Err(BuildError::SpareKernelThreads { spares: self.spares, most: MOST_SPARES });
        }
        if self.pinned && self.arbiter.is_some() {
            return Err(BuildError::PinnedAndShared);
        }
        let stacks = Stacks::new(Size::of(self.stack_size)?)?;
        let affinity = topology::affinity();
        let settings = Settings {
            slots: processors,
            // There are no kernel threads for slots beyond the number of spare ones.
            overcommit: if self.activations { self.spares.min(overcommit::MOST) } else { 0 },
            most_workers: processors + self.spares,
            idle_spin_ns: u64::try_from(self.idle_spin.as_nanos()).unwrap_or(u64::MAX),
            activations: self.activations,
            trace: self.trace,
            pinned: self.pinned.then(|| affinity.processors().into()),
            affinity,
            arbiter: self.arbiter,
            worker_main: scheduler_loop::run,
        };
        let queue = (self.queue)(processors + settings.overcommit, processors);
        let state = Arc::new(RuntimeState::new(settings, stacks, queue));
        let runtime = Runtime::of(state.clone());
        for number in 0..processors {
            // On an error the drop of `runtime` ends the workers that were started.
            state.start_worker().map_err(|error| BuildError::Thread { number, error })?;
        }
        if self.activations {
            let monitored = state.clone();
            let started = state.workers.start_other("monitor", move || monitor::run(&monitored));
            started.map_err(|error| BuildError::Thread { number: processors, error })?;
        }
        Ok(runtime)
    }
}

impl core::fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("processors", &self.processors)
            .field("spare_kernel_threads", &self.spares)
            .field("stack_size", &self.stack_size)
            .field("idle_spin", &self.idle_spin)
            .field("pinned", &self.pinned)
            .field("activations", &self.activations)
            .finish_non_exhaustive()
    }
}
