//! The metrics of a pool: each worker counts for itself, without a locked instruction.
//!
//! Why not one counter for all: a line that every worker writes for every task costs more than the
//! task.
//!
//! # Invariants
//!
//! 1. A counter is written by its worker only: a load and a store suffice.

use core::fmt;
use core::ops::{Add, AddAssign};

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

/// A number that one thread counts and any thread may read.
#[derive(Debug)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::fresh(0))
    }

    #[inline]
    pub(crate) fn add(&self, count: usize) {
        // Relaxed: statistics (Invariant 1).
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        // Relaxed: statistics.
        self.0.load(Ordering::Relaxed) as u64
    }
}

/// The numbers of one worker. The worker alone writes them (Invariant 1).
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) tasks: Count,
    pub(crate) stolen_forks: Count,
    pub(crate) parks: Count,
    pub(crate) wakeups: Count,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self {
            tasks: Count::new(),
            stolen_forks: Count::new(),
            parks: Count::new(),
            wakeups: Count::new(),
        }
    }

    pub(crate) fn read(&self) -> WorkerMetrics {
        WorkerMetrics {
            tasks: self.tasks.get(),
            stolen_forks: self.stolen_forks.get(),
            parks: self.parks.get(),
            wakeups: self.wakeups.get(),
            ..WorkerMetrics::default()
        }
    }
}

/// The numbers of a worker since its pool was built. They wrap around with the machine's word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Tasks run: spawned tasks, and forks of other workers. Forks that no other worker took are
    /// calls, and not counted.
    pub tasks: u64,
    /// Forks of other workers that it has run.
    pub stolen_forks: u64,
    /// Times that it went to sleep.
    pub parks: u64,
    /// Sleepers that it woke.
    pub wakeups: u64,
    /// Times that it took tasks from another worker slot, where the strategy has several queues.
    pub steals: u64,
    /// Times that it tried to and got none.
    pub failed_steals: u64,
}

impl AddAssign for WorkerMetrics {
    fn add_assign(&mut self, other: Self) {
        self.tasks = self.tasks.wrapping_add(other.tasks);
        self.stolen_forks = self.stolen_forks.wrapping_add(other.stolen_forks);
        self.parks = self.parks.wrapping_add(other.parks);
        self.wakeups = self.wakeups.wrapping_add(other.wakeups);
        self.steals = self.steals.wrapping_add(other.steals);
        self.failed_steals = self.failed_steals.wrapping_add(other.failed_steals);
    }
}

impl Add for WorkerMetrics {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// A snapshot of a pool. Out of date when it is returned. Cheap enough to ask for every
/// millisecond.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Each worker, by its index; spare threads after the others.
    pub workers: Vec<WorkerMetrics>,
    /// Tasks that are ready and not begun.
    pub ready: usize,
    /// Workers that have nothing to do.
    pub idle: usize,
    /// Those of them that sleep.
    pub asleep: usize,
    /// Control blocks that the strategy has, in use or free.
    pub blocks: usize,
    /// Tasks and handlers that panicked while no thread waited for the result.
    pub panics: u64,
    /// Spare threads that take part for blocked threads (see [`blocking`](crate::blocking)).
    pub active_spares: usize,
    /// Times that a spare thread was leased for a worker that was seen blocked
    /// (see [`compensate_blocking`](crate::ThreadPoolBuilder::compensate_blocking)).
    pub compensations: u64,
    /// Those of them that ended within 50 µs: the worker was back before the spare had done
    /// anything.
    pub brief_compensations: u64,
}

impl Metrics {
    /// Returns the sum over all workers.
    #[must_use]
    pub fn total(&self) -> WorkerMetrics {
        self.workers.iter().fold(WorkerMetrics::default(), |sum, &worker| sum + worker)
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WorkerMetrics { tasks, stolen_forks, parks, wakeups, steals, failed_steals } =
            self.total();
        write!(
            f,
            "{tasks} tasks, {stolen_forks} forks stolen, {steals} steals ({failed_steals} in vain), {parks} parks, {wakeups} wake-ups"
        )
    }
}
