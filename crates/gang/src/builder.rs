//! How an executor is to be.

use std::time::Duration;

use machine::topology;

use crate::error::BuildError;
use crate::executor::{GangExecutor, Settings};
use crate::matrix::{Alternates, MOST_PROCESSORS, Matrix, Packing};
use crate::switching::Switching;

/// Says how a [`GangExecutor`] is to be, then builds it.
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
    processors: usize,
    slots: usize,
    quantum: Duration,
    grace: Option<Duration>,
    spin: Option<Duration>,
    switching: Switching,
    packing: Packing,
    alternates: Alternates,
    pin: bool,
    stack_size: Option<usize>,
}

/// Slots, unless the builder says otherwise.
const SLOTS: usize = 64;

/// The longest time for which a member may stay after its turn before it is put out of its seat,
/// unless the builder says otherwise.
const GRACE: Duration = Duration::from_millis(1);

/// How long a member that waits spins before it yields, unless the builder says otherwise: while
/// its gang is on, the others are too, unless the system runs something else in their place.
const SPIN: Duration = Duration::from_micros(100);

/// The same if there are more seats than processors.
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

    /// How many seats, each of which stands for a processor; 0, the default, for as many as the
    /// process may use. At most [`MOST_PROCESSORS`].
    pub fn processors(mut self, processors: usize) -> Self {
        self.processors = processors;
        self
    }

    /// How many slots there may be: when as many are full, nobody can spawn. 64 unless said; at
    /// most 256.
    pub fn slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        self
    }

    /// For how long a slot is on while others wait for their turn; 10 ms unless said. From 50 µs to
    /// an hour.
    pub fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = quantum;
        self
    }

    /// How long a member may stay after its turn before it is put out of its seat, and whoever
    /// comes runs beside it: a tenth of the quantum, at most 1 ms, unless said. Never longer than
    /// the quantum.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// For how long a member that waits at a barrier spins, in its turn, before it yields the
    /// processor between two looks, and soon sleeps. Unless said, 100 µs; or 4 µs, if there are
    /// more seats than processors.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = Some(spin);
        self
    }

    /// How members are taken off whose turn is over.
    pub fn switching(mut self, switching: Switching) -> Self {
        self.switching = switching;
        self
    }

    /// Which slot a gang gets.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Who may have the seats that a slot leaves empty.
    pub fn alternates(mut self, alternates: Alternates) -> Self {
        self.alternates = alternates;
        self
    }

    /// Whether each member is kept on its seat's processor, the n-th that the process may use; not
    /// unless said. What cannot be pinned runs anywhere.
    ///
    /// As always, a thread that a pinned one starts is kept there too, also one that another
    /// executor starts when a member spawns a gang in it.
    pub fn pin(mut self, pin: bool) -> Self {
        self.pin = pin;
        self
    }

    /// The size of the members' stacks, in bytes; the system's default unless said.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Builds it, and starts its clock, a thread that sleeps unless gangs take turns.
    ///
    /// # Errors
    ///
    /// [`BuildError`], with what would mend it. Then no thread is left.
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
