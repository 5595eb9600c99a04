//! The paper's Regsim: threads that evaluate objects until the outputs stop moving.
//!
//! > It models collections of connected objects. Each object has a single output, which may connect
//! > to inputs of other objects, and an evaluation procedure. The procedures are evaluated in
//! > parallel until the output values stabilize. The objects are initially divided evenly among the
//! > available threads. During each phase, the thread that finishes last gives one of its objects
//! > to another thread.
//!
//! A cycle of the circuit is a number of *evaluate* phases, one *sample* and one *drive* phase,
//! each ended by the [barrier](crate::barrier):
//!
//! ```text
//!            some gate is due                  more cycles
//!            +-----------+             +--------------------------+
//!            v           |             |                          v
//! start -> EVALUATE -----+--------> SAMPLE ----> done           DRIVE --> EVALUATE ...
//!                         nothing due
//! ```
//!
//! | phase | a thread's action on its objects |
//! | --- | --- |
//! | evaluate | evaluates the gates on its list |
//! | sample | adds its part of the outputs to the checksum, and notes new values |
//! | drive | shows those values; readers of changed ones are put on lists |
//!
//! If the output of an evaluated gate changes, the thread puts its readers on their owners' lists
//! for the next phase. The noted values are those that its flip-flops read, and the next values of
//! its inputs.
//!
//! Within an evaluate phase a gate may read an input that changes in the same phase, before or
//! after. Either way the gate is on a list again. Since the circuit has no loop but through
//! flip-flops, the values that it settles at depend only on the sampled ones. So the checksum is
//! that of the [sequential](super::sequential) simulator whatever the threads, the lock and the
//! schedule. The number of evaluations is not.
//!
//! The paper says neither how values travel nor which data is locked. Here the simulator does the
//! same as a monitor program of its time: every access to shared state takes a lock, briefly, and
//! holds no other; see [`stations`](super::stations). The choice of the thread that gets an object
//! from the last one is an addition as well: it is the one that finished first.
//!
//! A thread that panics breaks the barrier. The others leave at the end of their phase, and the
//! panic goes on in the caller (`crew`).
//!
//! Source: A. Karlin, K. Li, M. Manasse, S. Owicki, *Empirical studies of competitive spinning for
//! a shared-memory multiprocessor*, 1991, section 3, "Regsim".

use super::netlist::Netlist;
use super::stations::{Object, Stations};
use super::stats::WaitStatistics;
use super::stimulus::{contribution, stimulus};
use super::wiring::Wiring;
use crate::barrier::{Barrier, Broken};
use crate::crew::{self, Affinity, MAX_THREADS, Shared};
use crate::pace::{CVAX_INSTRUCTION_NS, Pace, SECTION};
use core::time::Duration;
use lock_api::RawMutex;
use stanchion_machine::clock;
use stanchion_machine::sync::Arc;

/// The options of a run.
///
/// ```
/// use stanchion_applications::regsim::Options;
/// let options = Options { threads: 4, ..Options::default() };
/// assert_eq!((options.cycles, options.buckets), (1_000, 64));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Cycles of the circuit's clock.
    pub cycles: u64,
    /// Threads, 1 to [`MAX_THREADS`]. The caller is one of them.
    pub threads: usize,
    /// Of the pseudo-random inputs.
    pub seed: u64,
    /// Locks over which the objects are spread, at least 1: the fewer, the more contention.
    pub buckets: usize,
    /// Set if each thread stays on a processor of its own for the length of the run. If threads
    /// outnumber the processors, or the system refuses, they are left to the system.
    /// [`Share::processor`] tells the result.
    ///
    /// Without it a system may put threads that wait for each other on one processor in turn, and
    /// then no lock is ever found held.
    pub pinned: bool,
    /// The time that a simulated machine takes for an instruction, in nanoseconds. It has no effect
    /// on the real one.
    pub instruction_ns: u64,
}

impl Default for Options {
    /// 1,000 cycles, one thread, seed 1, 64 buckets, not pinned, [`CVAX_INSTRUCTION_NS`].
    fn default() -> Self {
        Self {
            cycles: 1_000,
            threads: 1,
            seed: 1,
            buckets: 64,
            pinned: false,
            instruction_ns: CVAX_INSTRUCTION_NS,
        }
    }
}

/// The result of a parallel run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Of all outputs over all cycles; that of [`sequential::run`](super::sequential::run).
    pub checksum: u64,
    /// Phases of all kinds.
    pub phases: u64,
    /// Objects that the last thread of a phase gave to the first.
    pub given: u64,
    /// From before the first thread is started until all are done.
    pub elapsed: Duration,
    /// The waits, by kind of lock, all threads together.
    pub waits: WaitStatistics,
    /// The work of each thread.
    pub threads: Vec<Share>,
}

impl Run {
    /// Gates evaluated by all threads.
    #[must_use]
    pub fn evaluations(&self) -> u64 {
        self.threads.iter().map(|share| share.evaluations).sum()
    }
}

/// One thread's part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Gates it evaluated.
    pub evaluations: u64,
    /// Objects it owned in the end.
    pub objects: usize,
    /// The processor it stayed on; none if it was left to the system.
    pub processor: Option<usize>,
}

/// The action of the threads in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Evaluate,
    Sample,
    Drive,
    Done,
}

/// The data that is gathered at the barrier.
#[derive(Debug)]
struct Progress {
    /// The action of the running phase. Written by the last to arrive.
    step: Step,
    /// The number of cycles that are over.
    cycle: u64,
    /// The number of phases so far.
    phases: u64,
    /// The number of objects that were given away.
    given: u64,
    /// Gates put on lists in this phase, as far as the threads have arrived.
    due: usize,
}

struct Simulation<L> {
    /// The options of the run.
    options: Options,
    /// The objects, their owners and their lists.
    stations: Stations<L>,
    /// The meeting at the end of a phase.
    barrier: Barrier<L, Progress>,
}

/// Runs `netlist` on several threads with locks of type `L`.
///
/// ```
/// use stanchion_applications::regsim::{self, Netlist, Options, circuits, sequential};
/// let s298 = Netlist::parse(circuits::S298.as_bytes())?;
/// let s298 = Netlist::parse(circuits::S298.as_bytes())?;
/// let options = Options { cycles: 50, threads: 2, ..Options::default() };
/// let run = regsim::run::<parking_lot::RawMutex>(&s298, &options);
/// assert_eq!(run.checksum, sequential::run(&s298, 50, 1).checksum);
/// let locks = run.waits.locks();
/// println!("{} of {} acquisitions waited", locks.contended(), locks.acquisitions());
/// # Ok::<(), stanchion_applications::regsim::ParseError>(())
/// ```
///
/// # Panics
///
/// If `options.threads` is not 1 to [`MAX_THREADS`] or `options.buckets` is 0. If a thread cannot
/// be started. With the panic of a thread, if one panics, as it may if the lock does.
#[must_use]
pub fn run<L: RawMutex + Send + Sync + 'static>(netlist: &Netlist, options: &Options) -> Run {
    run_with(netlist, options, &|_| L::INIT)
}

/// Does the same as [`run`] with locks from `make`. It gets the name of each lock: `bucket 12`,
/// `list 3` (of thread 3), `phase`.
///
/// # Panics
///
/// As [`run`] does, and if `make` does.
#[must_use]
pub fn run_with<L: RawMutex + Send + Sync + 'static>(
    netlist: &Netlist,
    options: &Options,
    make: &dyn Fn(&str) -> L,
) -> Run {
    let Options { threads, seed, buckets, cycles, pinned, instruction_ns } = *options;
    assert!((1..=MAX_THREADS).contains(&threads), "{threads} threads: must be 1 to {MAX_THREADS}");
    assert!(buckets > 0, "no buckets: the objects need at least one lock");
    let began = clock::now();
    let step = if cycles == 0 { Step::Done } else { Step::Evaluate };
    let progress = Progress { step, cycle: 0, phases: 0, given: 0, due: 0 };
    let input = |number| stimulus(seed, 0, number);
    let simulation = Arc::new(Simulation::<L> {
        options: *options,
        stations: Stations::with_locks(Wiring::new(netlist), threads, buckets, input, make)
            .at_pace(instruction_ns),
        barrier: Barrier::with_lock(make("phase"), threads, progress),
    });

    let workers = crew::run(
        &simulation,
        threads,
        if pinned { Affinity::Own } else { Affinity::Free },
        |processor| Worker::work(&simulation, 0, processor),
        Worker::work,
    );

    let elapsed = Duration::from_nanos(clock::now().nanos_since(began));
    let mut waits = WaitStatistics::default();
    let mut checksum = 0_u64;
    for worker in &workers {
        waits.merge(&worker.waits);
        checksum = checksum.wrapping_add(worker.checksum);
    }
    let mut unrecorded = WaitStatistics::default();
    let owned = simulation.stations.owned(&mut unrecorded);
    let shares = workers.iter().zip(&owned);
    let (phases, given) =
        simulation.barrier.with(&mut unrecorded, |progress| (progress.phases, progress.given));
    Run {
        checksum,
        phases,
        given,
        elapsed,
        waits,
        threads: shares
            .map(|(worker, objects)| Share {
                evaluations: worker.evaluations,
                objects: objects.len(),
                processor: worker.processor,
            })
            .collect(),
    }
}

impl<L: RawMutex + Send + Sync + 'static> Shared for Simulation<L> {
    fn give_up(&self) {
        self.barrier.give_up();
    }
}

/// The data of one thread.
#[derive(Debug, Default)]
struct Worker {
    /// The number of the thread.
    thread: usize,
    /// The processor that it stays on, if it does.
    processor: Option<usize>,
    /// The number of its evaluations.
    evaluations: u64,
    /// Its part of the checksum.
    checksum: u64,
    /// The waits that it has had.
    waits: WaitStatistics,
    /// The list being served.
    list: Vec<Object>,
    /// The objects that were sampled and are to be driven.
    clocking: Vec<Object>,
}

impl Worker {
    fn work<L: RawMutex>(
        simulation: &Simulation<L>,
        thread: usize,
        processor: Option<usize>,
    ) -> Self {
        let mut worker = Self { thread, processor, ..Self::default() };
        // `Broken` means that another thread has panicked: the caller gets that thread's panic.
        let _ = worker.phases(simulation);
        worker
    }

    fn phases<L: RawMutex>(&mut self, simulation: &Simulation<L>) -> Result<(), Broken> {
        let Simulation { stations, barrier, options } = simulation;
        let pace = Pace::new(options.instruction_ns);
        let mut parity = 0;
        loop {
            let (step, cycle) =
                barrier.with(&mut self.waits, |progress| (progress.step, progress.cycle));
            let due = match step {
                Step::Evaluate => {
                    let due = self.evaluate(stations, parity);
                    parity = 1 - parity;
                    due
                }
                Step::Sample => {
                    self.sample(stations, options, cycle);
                    0
                }
                Step::Drive => self.drive(stations, parity),
                Step::Done => return Ok(()),
            };
            let thread = self.thread;
            barrier.meet(
                thread,
                &mut self.waits,
                |progress| {
                    pace.compute(SECTION);
                    progress.due += due;
                },
                |first, waits| {
                    let given = stations.give(thread, first, waits).is_some();
                    barrier.with(waits, |progress| progress.next(given, options.cycles));
                },
            )?;
        }
    }

    fn evaluate<L: RawMutex>(&mut self, stations: &Stations<L>, parity: usize) -> usize {
        stations.take_due(self.thread, parity, &mut self.list, &mut self.waits);
        self.evaluations += self.list.len() as u64;
        let waits = &mut self.waits;
        self.list.iter().map(|&object| stations.evaluate(object, parity, waits)).sum()
    }

    fn sample<L: RawMutex>(&mut self, stations: &Stations<L>, options: &Options, cycle: u64) {
        let outputs = (0..).zip(stations.wiring().outputs());
        for (number, &output) in outputs.skip(self.thread).step_by(options.threads) {
            let value = stations.value(output, &mut self.waits);
            self.checksum = self.checksum.wrapping_add(contribution(cycle, number, value));
        }
        stations.take_clocked(self.thread, &mut self.clocking, &mut self.waits);
        for &object in &self.clocking {
            let input = |number| stimulus(options.seed, cycle + 1, number);
            stations.sample(object, input, &mut self.waits);
        }
    }

    fn drive<L: RawMutex>(&mut self, stations: &Stations<L>, parity: usize) -> usize {
        let waits = &mut self.waits;
        self.clocking.iter().map(|&object| stations.drive(object, parity, waits)).sum()
    }
}

impl Progress {
    /// The end of a phase, all threads having arrived.
    fn next(&mut self, given: bool, cycles: u64) {
        self.phases += 1;
        self.given += u64::from(given);
        let due = core::mem::take(&mut self.due);
        self.step = match self.step {
            Step::Evaluate if due > 0 => Step::Evaluate,
            Step::Evaluate => Step::Sample,
            Step::Sample if self.cycle + 1 == cycles => Step::Done,
            Step::Sample => Step::Drive,
            Step::Drive => {
                self.cycle += 1;
                // Nothing may be due; then the next phase finds that out.
                Step::Evaluate
            }
            Step::Done => Step::Done,
        };
    }
}
