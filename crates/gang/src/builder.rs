//! The builder of executors.

use std::time::Duration;

use stanchion_machine::topology;

use crate::error::BuildError;
use crate::executor::{GangExecutor, Settings};
use crate::matrix::{Alternates, MOST_PROCESSORS, Matrix, Packing};
use crate::switching::Switching;

/// Configures a [`GangExecutor`], then builds it.
///
/// ```
/// use std::time::Duration;
/// use stanchion_gang::{GangExecutor, Packing, Switching};
///
/// let executor = GangExecutor::builder()
///     .processors(2)
///     .quantum(Duration::from_millis(5))
///     .switching(Switching::Cooperative)
///     .packing(Packing::BestFit)
///     .pin(true)
///     .build()?;
/// assert_eq!(executor.processors(), 2);
/// # Ok::<(), stanchion_gang::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing before `build`"]
pub struct GangExecutorBuilder {
    /// The virtual processors; 0 for one for each CPU.
    processors: usize,
    /// The most slots.
    slots: usize,
    /// The length of a turn.
    quantum: Duration,
    /// The time for which a member may overstay, if it was given.
    grace: Option<Duration>,
    /// The time for which a member spins at a barrier, if it was given.
    spin: Option<Duration>,
    /// The way in which members are taken off.
    switching: Switching,
    /// The choice of a slot for a new gang.
    packing: Packing,
    /// The choice of members for processors that a slot leaves empty.
    alternates: Alternates,
    /// True if threads are pinned.
    pin: bool,
    /// The size of stacks, if it was given.
    stack_size: Option<usize>,
}

/// The default number of slots.
const SLOTS: usize = 64;

/// The longest default time for which a member may overstay before it is evicted.
const GRACE: Duration = Duration::from_millis(1);

/// The default time for which a waiting member spins before it yields. While its gang is on, the
/// others are on too, unless the system runs another thread in their place.
const SPIN: Duration = Duration::from_micros(100);

/// The default time if there are more virtual processors than CPUs.
const CROWDED_SPIN: Duration = Duration::from_micros(4);

impl GangExecutor {
    /// Starts an executor with so many virtual processors, 0 for one for each CPU that the process
    /// may use, and the defaults of [`GangExecutorBuilder`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] and what would mend it.
    pub fn new(processors: usize) -> Result<Self, BuildError> {
        Self::builder().processors(processors).build()
    }

    /// Returns a builder with the defaults.
    pub fn builder() -> GangExecutorBuilder {
        GangExecutorBuilder::new()
    }
}

impl GangExecutorBuilder {
    fn new() -> Self {
        Self {
            processors: 0,
            slots: SLOTS,
            quantum: Duration::from_millis(10),
            grace: None,
            spin: None,
            switching: Switching::default(),
            packing: Packing::default(),
            alternates: Alternates::default(),
            pin: false,
            stack_size: None,
        }
    }

    /// Sets the number of virtual processors. 0, the default, is one for each CPU that the process
    /// may use. At most [`MOST_PROCESSORS`].
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// Sets the most time slots. When so many are full, no gang can be spawned. The default is 64;
    /// at most 256.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// Sets for how long a slot is on while others wait for their turn. The default is 10 ms. From
    /// 50 µs to an hour.
    pub fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = quantum;
        self
    }

    /// Sets for how long a member may overstay its turn. Then it is evicted, and the next member
    /// runs beside it. The default is a tenth of the quantum, at most 1 ms. It is never longer than
    /// the quantum.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Sets for how long a member that waits at a barrier spins, in its turn. After that it yields
    /// the CPU between two looks, and soon sleeps. The default is 100 µs, or 4 µs if there are more
    /// virtual processors than CPUs.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = Some(spin);
        self
    }

    /// Sets how members are taken off their processors when their turn is over.
    pub fn switching(mut self, switching: Switching) -> Self {
        self.switching = switching;
        self
    }

    /// Sets which slot a new gang gets.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Sets which members may have the processors that a slot leaves empty.
    pub fn alternates(mut self, alternates: Alternates) -> Self {
        self.alternates = alternates;
        self
    }

    /// Sets whether members are pinned: a member on the n-th virtual processor to the n-th CPU that
    /// the process may use. The default is not. A member that cannot be pinned runs anywhere.
    ///
    /// As always, a thread that a pinned thread starts is pinned too. That holds also for a thread
    /// that another executor starts when a member spawns a gang in it.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// Sets the size of the members' stacks, in bytes. The default is the system's.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Builds the executor, and starts its timer, a thread that sleeps unless gangs take turns.
    ///
    /// # Errors
    ///
    /// [`BuildError`] and what would mend it. Then no thread is left.
    pub fn build(self) -> Result<GangExecutor, BuildError> {
        let processors = match self.processors {
            0 => topology::parallelism().min(MOST_PROCESSORS),
            processors => processors,
        };
        if processors > MOST_PROCESSORS {
            return Err(BuildError::Processors { asked: processors });
        }
        let matrix = Matrix::new(processors, self.slots, self.packing).map_err(|_| {
            BuildError::Slots { asked: self.slots, most: crate::matrix::MOST_SLOTS }
        })?;
        if !(Duration::from_micros(50)..=Duration::from_secs(3600)).contains(&self.quantum) {
            return Err(BuildError::Quantum { asked: self.quantum });
        }
        let cpus = topology::affinity().processors();
        let crowded = processors > cpus.len();
        let spin = self.spin.unwrap_or(if crowded { CROWDED_SPIN } else { SPIN });
        let grace = self.grace.unwrap_or(GRACE.min(self.quantum / 10)).min(self.quantum);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (switching, refused) = match self.switching.probe() {
            Ok(()) => (self.switching, None),
            Err(refused) => (Switching::Cooperative, Some(refused)),
        };
        let pin = self.pin || switching == Switching::Priority;
        let settings = Settings {
            processors,
            slots: self.slots,
            alternates: self.alternates,
            quantum: self.quantum,
            grace_ns: nanos(grace),
            spin_ns: nanos(spin),
            switching,
            refused,
            cpus: if pin { cpus } else { Vec::new() },
            stack_size: self.stack_size,
        };
        GangExecutor::start(settings, matrix)
    }
}
