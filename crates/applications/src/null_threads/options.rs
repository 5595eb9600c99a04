//! The options of a run, and its result.

use super::MAX_THREADS;
use core::time::Duration;

/// A piece of code on a simulated machine. It has no effect on the real one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Nanoseconds of the machine that it computes, the accesses to shared data and those below
    /// apart.
    pub nanos: u64,
    /// Writes to the processor's own memory, its call stack. They matter where caches write
    /// through. At most [`Path::MOST_WRITES`].
    pub writes: usize,
}

impl Path {
    /// The most writes of a path.
    pub const MOST_WRITES: usize = 16;
}

/// The work of thread management outside the strategy, on a simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Creating a thread.
    pub create: Path,
    /// Starting one.
    pub start: Path,
    /// Finishing one.
    pub finish: Path,
    /// Nanoseconds of the machine between two looks of an idle processor.
    pub look_ns: u64,
}

/// The options of [`run`](super::run).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of processors that take part. Each has a thread of the system that stays there if
    /// there are enough.
    pub processors: usize,
    /// The number of threads that each of them executes.
    pub each: u64,
    /// The time that a thread computes: nanoseconds of the machine, uniform from 0 to twice this
    /// mean.
    pub user_ns: u64,
    /// The most free blocks that a processor keeps for itself, `T` in the paper; `None` for the
    /// strategy's own choice.
    pub threshold: Option<usize>,
    /// The number of ready queues, at most one for each processor, if the strategy has several.
    /// `None` is the strategy's own choice.
    pub queues: Option<usize>,
    /// Set if each processor has a strategy of its own, so that processors meet only on the bus.
    /// Section 5.1 of the paper finds bus demands in that way.
    pub copies: bool,
    /// The work outside the strategy.
    pub costs: Costs,
    /// Of the lengths of the threads.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            processors: 1,
            each: 10_000,
            user_ns: 0,
            threshold: None,
            queues: None,
            copies: false,
            costs: Costs::default(),
            seed: 1,
        }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), Refused> {
        if self.each == 0 {
            return Err(Refused::NoThreads);
        }
        if self.threshold == Some(0) {
            return Err(Refused::NoThreshold);
        }
        let most = if self.copies { 1 } else { self.processors };
        if let Some(queues) = self.queues.filter(|queues| !(1..=most).contains(queues)) {
            return Err(Refused::Queues { queues, most });
        }
        check(self.processors, 1, &self.costs)
    }
}

pub(super) fn check(processors: usize, least: usize, costs: &Costs) -> Result<(), Refused> {
    if !(least..=MAX_THREADS).contains(&processors) {
        return Err(Refused::Processors { processors, least });
    }
    let paths = [("create", costs.create), ("start", costs.start), ("finish", costs.finish)];
    for (path, Path { writes, .. }) in paths {
        if writes > Path::MOST_WRITES {
            return Err(Refused::Writes { path, writes });
        }
    }
    Ok(())
}

/// Why a run was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too few processors or too many.
    #[error("processors = {processors}: give {least} to {MAX_THREADS}")]
    Processors {
        /// The number that was given.
        processors: usize,
        /// The least that the program runs on.
        least: usize,
    },
    /// Nothing to execute.
    #[error("each = 0: a processor that executes no thread measures nothing; give 1 or more")]
    NoThreads,
    /// No room for a free block.
    #[error("threshold = 0: a processor keeps at least 1 free block; give 1 or more, or None")]
    NoThreshold,
    /// Too few ready queues or too many.
    #[error("queues = {queues}: give 1 to {most}, or None")]
    Queues {
        /// The number that was given.
        queues: usize,
        /// The most that there can be.
        most: usize,
    },
    /// A path writes too much.
    #[error("the path {path} has {writes} writes: give at most {}", Path::MOST_WRITES)]
    Writes {
        /// The name of the path.
        path: &'static str,
        /// The number that was given.
        writes: usize,
    },
    /// There is nothing to measure.
    #[error("most = {most}, rounds = {rounds}: give at least 2 runnable threads and 1 round")]
    NothingMeasured {
        /// The most runnable threads.
        most: usize,
        /// The rounds.
        rounds: u32,
    },
}

/// The result of [`run`](super::run).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// From the first processor's start until the last has executed its threads.
    pub elapsed: Duration,
    /// The number of threads that were executed.
    pub threads: u64,
    /// The number of times that a processor found no thread when it looked for one.
    pub idled: u64,
    /// Threads that were ready when all had executed theirs. One for each processor, unless the
    /// strategy has lost or doubled some.
    pub left: usize,
    /// Control blocks that were made.
    pub blocks: usize,
    /// Stacks that were made.
    pub stacks: usize,
}
