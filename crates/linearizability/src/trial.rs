//! Trials: real threads call a structure, and the history is checked. Each history has a new
//! structure.
//!
//! Short histories on a new structure show most errors. They have few calls, so an error has little
//! to hide behind, and the structure is near empty or near full. The calls must really overlap, so
//! the threads begin together:
//!
//! - Each thread has a processor of its own, as long as there are enough. Two threads on one
//!   processor never meet.
//! - Every [`TOGETHER`] histories the threads sleep until all have come. Threads that have slept
//!   get their processors at once, and at the same time.
//! - Before each history they spin until as many have come as can run at once. Two threads that run
//!   then begin within some 100 ns.
//! - They do not spin for ever: [`PATIENCE`] is the limit. A thread that has lost its processor
//!   does not hold up the others. That history has less overlap, and is counted by the overlap that
//!   it has.
//!
//! Between its calls a thread pauses for random times, and now and then yields its processor.
//!
//! The thread that runs the trial makes the structures and checks the histories. The threads that
//! call the structure live for [`BATCH`] histories.

use core::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crossbeam_utils::CachePadded;

use crate::Specification;
use crate::budget::Budget;
use crate::check::{CheckError, check_within};
use crate::gate::{Comer, Gate};
use crate::history::{Call, History};
use crate::random::Random;
use crate::recorder::{Log, Recorder};

/// Histories for which threads are started once.
const BATCH: u64 = 256;

/// Histories between two meetings: so few that a thread is seldom interrupted on the way.
const TOGETHER: usize = 16;

/// The most looks of a thread that waits for the others: some 50 µs.
const PATIENCE: u32 = 2_000;

/// A series of histories: how many, of how many threads and calls.
///
/// ```
/// use std::sync::Mutex;
/// use std::collections::VecDeque;
/// use stanchion_linearizability::Trial;
/// use stanchion_linearizability::specification::{Operation, Outcome, Queue};
///
/// let tally = Trial::new()
///     .threads(3)
///     .calls(4)
///     .histories(100)
///     .run(
///         &Queue::new(),
///         || Mutex::new(VecDeque::new()),
///         |random| match random.once_in(2) {
///             true => Operation::Pop,
///             false => Operation::Push(random.below(100)),
///         },
///         |queue, operation| {
///             let mut queue = queue.lock().unwrap();
///             match operation {
///                 Operation::Push(value) => {
///                     queue.push_back(*value);
///                     Outcome::Pushed
///                 }
///                 Operation::Pop => Outcome::Popped(queue.pop_front()),
///                 Operation::IsEmpty => Outcome::Empty(queue.is_empty()),
///             }
///         },
///     )
///     .unwrap();
/// assert_eq!(tally.histories, 100);
/// ```
#[derive(Clone, Debug)]
pub struct Trial<O> {
    /// The number of threads.
    threads: usize,
    /// The number of calls of each thread.
    calls: usize,
    /// The number of histories.
    histories: u64,
    /// The seed of the operations and pauses.
    seed: u64,
    /// The most calls that one thread makes before the threads begin.
    before: u64,
    /// The calls that one thread makes when all others have finished.
    last: Vec<O>,
    /// The bounds of the check of each history.
    budget: Budget,
}

/// The count of histories and calls that a trial has tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Histories, all of them linearizable.
    pub histories: u64,
    /// The histories in which calls of different threads overlapped. The others show little.
    pub overlapped: u64,
    /// Calls in all of them.
    pub calls: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { histories, overlapped, calls } = self;
        write!(f, "{histories} histories, {overlapped} with overlap, {calls} calls")
    }
}

impl<O> Default for Trial<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Trial<O> {
    /// Makes a trial of 1000 histories. In each, 3 threads make 4 calls on a new structure.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            threads: 3,
            calls: 4,
            histories: 1000,
            seed: 1,
            before: 0,
            last: Vec::new(),
            budget: Budget::new(),
        }
    }

    /// Sets the number of threads.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the number of calls that each thread makes.
    #[must_use]
    pub fn calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the number of histories.
    #[must_use]
    pub fn histories(mut self, histories: u64) -> Self {
        self.histories = histories;
        self
    }

    /// Sets the seed of the operations and pauses. The speed of the threads still decides how their
    /// calls interleave.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the most calls that one thread makes before the threads begin, chosen like the others.
    #[must_use]
    pub fn before(mut self, calls: u64) -> Self {
        self.before = calls;
        self
    }

    /// Sets the calls that one thread makes when all others have finished. Calls that take all
    /// values out show which were lost, and which are there twice.
    #[must_use]
    pub fn last(mut self, operations: impl IntoIterator<Item = O>) -> Self {
        self.last = operations.into_iter().collect();
        self
    }

    /// Bounds the check of each history.
    #[must_use]
    pub const fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Records and checks. `make` makes a structure that is in the state `initial`, `choose` an
    /// operation, and `call` performs it.
    ///
    /// Histories with distinct values take the checker least time: let `choose` count.
    ///
    /// # Errors
    ///
    /// The shortest violation among the first histories that have one; if there is none, the first
    /// history that the checker could not decide. A test fails in either case.
    ///
    /// # Panics
    ///
    /// When `make`, `choose` or `call` panic.
    pub fn run<S, C>(
        &self,
        initial: &S,
        make: impl Fn() -> C,
        choose: impl Fn(&mut Random) -> O,
        call: impl Fn(&C, &O) -> S::Outcome + Sync,
    ) -> Result<Tally, CheckError<S>>
    where
        S: Specification<Operation = O>,
        C: Sync,
        O: Clone + Sync + Send,
        S::Outcome: Send + Sync,
    {
        // Violations are the more important the shorter they are, and undecided histories less.
        let importance = |error: &CheckError<S>| match error {
            CheckError::Violation(violation) => violation.history().calls().len(),
            CheckError::Undecided(_) => usize::MAX,
        };
        self.in_batches(make, choose, call, |histories| {
            let check = |history| check_within(self.budget, initial, history).err();
            histories.iter().filter_map(check).min_by_key(importance).map_or(Ok(()), Err)
        })
    }

    /// Records, and lets `judge` check each history: for specifications that need more than the
    /// calls as they are. `make`, `choose` and `call` are those of [`Trial::run`].
    ///
    /// # Errors
    ///
    /// The first that `judge` returns.
    ///
    /// # Panics
    ///
    /// When one of the functions panics.
    pub fn run_with<C, R, E>(
        &self,
        make: impl Fn() -> C,
        choose: impl Fn(&mut Random) -> O,
        call: impl Fn(&C, &O) -> R + Sync,
        mut judge: impl FnMut(&History<O, R>) -> Result<(), E>,
    ) -> Result<Tally, E>
    where
        C: Sync,
        O: Clone + Sync + Send,
        R: Clone + Send + Sync,
    {
        self.in_batches(make, choose, call, |histories| histories.iter().try_for_each(&mut judge))
    }

    /// Records, and hands the histories to `judge` in batches until all are made or one is wrong.
    fn in_batches<C, R, E>(
        &self,
        make: impl Fn() -> C,
        choose: impl Fn(&mut Random) -> O,
        call: impl Fn(&C, &O) -> R + Sync,
        mut judge: impl FnMut(&[History<O, R>]) -> Result<(), E>,
    ) -> Result<Tally, E>
    where
        C: Sync,
        O: Clone + Sync + Send,
        R: Clone + Send + Sync,
    {
        let mut random = Random::new(self.seed);
        let mut tally = Tally::default();
        while tally.histories < self.histories {
            let slots: Vec<_> = (0..BATCH.min(self.histories - tally.histories))
                .map(|_| self.slot(make(), &choose, &call, &mut random))
                .collect();
            let histories = self.record(slots, &call);
            for history in &histories {
                tally.histories += 1;
                tally.overlapped += u64::from(history.overlaps());
                tally.calls += history.calls().len() as u64;
            }
            judge(&histories)?;
        }
        Ok(tally)
    }

    /// A structure, and what the threads will do with it.
    fn slot<C, R>(
        &self,
        subject: C,
        choose: impl Fn(&mut Random) -> O,
        call: impl Fn(&C, &O) -> R,
        random: &mut Random,
    ) -> Slot<C, O, R> {
        let recorder = Recorder::new();
        let mut log = recorder.log(self.threads);
        for _ in 0..random.below(self.before + 1) {
            log.call(choose(random), |operation| call(&subject, operation));
        }
        let before = log.into_calls();
        let script = |random: &mut Random| -> Vec<_> {
            (0..self.calls).map(|_| (Pause::random(random), choose(random))).collect()
        };
        let scripts = (0..self.threads).map(|_| script(random)).collect();
        Slot { subject, recorder, arrived: CachePadded::new(AtomicUsize::new(0)), scripts, before }
    }

    /// Runs the threads through the slots.
    fn record<C, R>(
        &self,
        slots: Vec<Slot<C, O, R>>,
        call: impl Fn(&C, &O) -> R + Sync,
    ) -> Vec<History<O, R>>
    where
        C: Sync,
        O: Clone + Sync + Send,
        R: Send + Sync + Clone,
    {
        let gate = Gate::new(self.threads);
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let seen: Vec<Vec<_>> = thread::scope(|scope| {
            let (slots, call, gate, cores) = (&slots, &call, &gate, &cores);
            let at_once = thread::available_parallelism().map_or(1, usize::from).min(self.threads);
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    scope.spawn(move || {
                        let comer = Comer(gate);
                        let _pinned = cores
                            .get(thread % cores.len().max(1))
                            .map(|core| core_affinity::set_for_current(*core));
                        let play = |(place, slot): (usize, &Slot<C, O, R>)| {
                            if place % TOGETHER == 0 {
                                comer.0.wait();
                            }
                            slot.meet(at_once);
                            slot.play(thread, call)
                        };
                        slots.iter().enumerate().map(play).collect::<Vec<_>>()
                    })
                })
                .collect();
            let join = |worker: thread::ScopedJoinHandle<'_, _>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().map(join).collect()
        });
        let mut seen: Vec<_> = seen.into_iter().map(Vec::into_iter).collect();
        slots
            .into_iter()
            .map(|mut slot| {
                let mut calls = core::mem::take(&mut slot.before);
                seen.iter_mut()
                    .for_each(|thread| calls.extend(thread.next().into_iter().flatten()));
                let mut log = slot.recorder.log(self.threads);
                for operation in &self.last {
                    log.call(operation.clone(), |operation| call(&slot.subject, operation));
                }
                calls.extend(log.into_calls());
                History::recorded(calls)
            })
            .collect()
    }
}

/// One history to be.
struct Slot<C, O, R> {
    /// The structure under test.
    subject: C,
    /// The clock of its history.
    recorder: Recorder,
    /// The number of threads that have come to it. Each adds itself.
    arrived: CachePadded<AtomicUsize>,
    /// The pauses and operations of each thread.
    scripts: Vec<Vec<(Pause, O)>>,
    /// The calls that were made before the threads began.
    before: Vec<Call<O, R>>,
}

impl<C, O: Clone, R> Slot<C, O, R> {
    /// Makes one thread's calls and returns their records.
    fn play(&self, thread: usize, call: impl Fn(&C, &O) -> R) -> Vec<Call<O, R>> {
        let script = &self.scripts[thread];
        let mut log: Log<'_, O, R> = self.recorder.log(thread);
        log.reserve(script.len());
        for (pause, operation) in script {
            pause.take();
            log.call(operation.clone(), |operation| call(&self.subject, operation));
        }
        log.into_calls()
    }

    /// Waits until this number of threads have come, at most [`PATIENCE`] looks.
    fn meet(&self, threads: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        for _ in 0..PATIENCE {
            if self.arrived.load(Ordering::Acquire) >= threads {
                return;
            }
            core::hint::spin_loop();
        }
    }
}

/// The pause of a thread before a call.
#[derive(Clone, Copy)]
enum Pause {
    /// So many turns of a loop, mostly none.
    Turns(u64),
    /// Until the others have run.
    Yield,
}

impl Pause {
    fn random(random: &mut Random) -> Self {
        match random.below(64) {
            0 => Self::Yield,
            // About as long as a call that meets others; longer ones would keep the threads apart.
            1 => Self::Turns(random.below(100)),
            2..=31 => Self::Turns(random.below(8)),
            _ => Self::Turns(0),
        }
    }

    fn take(self) {
        match self {
            Self::Turns(turns) => (0..turns).for_each(|_| core::hint::spin_loop()),
            Self::Yield => thread::yield_now(),
        }
    }
}
