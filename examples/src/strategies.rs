//! The ways to manage a pool's ready work: one line each.

use clap::Args;
use clap::builder::PossibleValue;
use stanchion_applications::nbody::Fork;
use stanchion_threadpool::strategy::{
    CentralElseLocal, IdleQueue, LocalFreeList, LocalReadyQueue, MultipleLocks,
    ProbeIdleElseCentral, SingleLock, WorkStealing,
};
use stanchion_threadpool::{BuildError, Strategy, ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::thread::available_parallelism;

/// A strategy by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in `--strategy`.
    pub name: &'static str,
    /// The line in `--help`.
    pub about: &'static str,
}

/// Something to do over a pool of any strategy.
pub trait OverPool {
    /// The type of its result.
    type Outcome;

    /// Does it.
    fn run<S: Strategy>(self, pool: &ThreadPool<S>) -> Self::Outcome;
}

macro_rules! strategies {
    ($($name:literal: $strategy:ty, $about:literal;)+) => {
        /// Every strategy.
        pub const STRATEGIES: &[Entry] = &[$(Entry { name: $name, about: $about }),+];

        /// Runs `program` over a pool of so many threads with the strategy called `name`, which the
        /// parser of the arguments has let through.
        ///
        /// # Errors
        ///
        /// [`BuildError`] if the pool cannot be built.
        ///
        /// # Panics
        ///
        /// If there is no such strategy.
        pub fn run<P: OverPool>(name: &str, threads: usize, program: P) -> Result<P::Outcome, BuildError> {
            let builder = ThreadPoolBuilder::new().num_threads(threads);
            match name {
                $($name => Ok(program.run(&builder.build_with::<$strategy>()?)),)+
                other => unreachable!("clap lets only names of the table through, not {other}"),
            }
        }
    };
}

strategies! {
    "work-stealing": WorkStealing, "each worker has its own work, and takes another's when it has none";
    "single-lock": SingleLock, "one queue, one list of free blocks, one lock for both";
    "multiple-locks": MultipleLocks, "the same with a lock for each";
    "local-free-list": LocalFreeList, "one queue with a lock, a list of free blocks for each worker";
    "idle-queue": IdleQueue, "idle workers queue up for work that is handed to them";
    "local-ready-queue": LocalReadyQueue, "a queue with a lock for each worker, and idle ones scan all";
    "central-else-local": CentralElseLocal, "one queue, and one for each worker that finds its lock busy";
    "probe-idle-else-central": ProbeIdleElseCentral, "work is handed to a worker found idle by probing, else queued centrally";
}

/// The strategy of a run that names none.
pub const DEFAULT: &str = "work-stealing";

/// The name that stands for every strategy.
const ALL: &str = "all";

/// For clap: what `--strategy` may be.
#[must_use]
pub fn values() -> Vec<PossibleValue> {
    let strategies = STRATEGIES.iter();
    strategies.map(|strategy| PossibleValue::new(strategy.name).help(strategy.about)).collect()
}

/// For clap: the same, or all of them.
#[must_use]
pub fn values_or_all() -> Vec<PossibleValue> {
    values().into_iter().chain([PossibleValue::new(ALL).help("each of them, in turn")]).collect()
}

/// The strategies that were named, in their order.
#[must_use]
pub fn named(names: &[String]) -> Vec<&'static str> {
    let every = || STRATEGIES.iter().map(|entry| entry.name);
    names
        .iter()
        .flat_map(|name| every().filter(move |entry| name == ALL || name == entry))
        .collect()
}

/// `--threads`; to be flattened into an example's arguments.
#[derive(Args, Clone, Copy, Debug)]
pub struct Threads {
    /// Threads of the pool. Without it as many as there are processors.
    #[arg(long, allow_negative_numbers = true, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl Threads {
    /// Returns the number of threads.
    #[must_use]
    pub fn number(self) -> usize {
        let processors = || available_parallelism().map_or(1, NonZero::get);
        self.threads.map_or_else(processors, usize::from)
    }
}

/// A pool as what forks and joins.
#[derive(Debug)]
pub struct OnPool<'p, S: Strategy>(pub &'p ThreadPool<S>);

impl<S: Strategy> Fork for OnPool<'_, S> {
    #[inline]
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.0.join(one, other)
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.0.install(work)
    }
}
