//! The ways to manage a pool's ready work: the table of `stanchion-threadpool`.

use clap::Args;
use clap::builder::PossibleValue;
use stanchion_applications::nbody::Fork;
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
    ([] $({
        $test:ident: $strategy:ty,
        type: $type:ident,
        cost: $cost:literal,
        contest: $contest:literal,
        command: [$name:literal, $about:literal],
        $($rest:tt)*
    })+) => {
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

stanchion_threadpool::__strategies!(strategies);

/// The strategy of a run that names none.
pub const DEFAULT: &str = "work-stealing";

/// The name that stands for every strategy.
const ALL: &str = "all";

/// Returns every strategy, the default before the others.
fn default_first() -> impl Iterator<Item = &'static Entry> {
    let is_default = |entry: &&Entry| entry.name == DEFAULT;
    let others = STRATEGIES.iter().filter(move |entry| !is_default(entry));
    STRATEGIES.iter().filter(is_default).chain(others)
}

/// For clap: what `--strategy` may be.
#[must_use]
pub fn values() -> Vec<PossibleValue> {
    let value = |strategy: &Entry| PossibleValue::new(strategy.name).help(strategy.about);
    default_first().map(value).collect()
}

/// For clap: the same, or all of them.
#[must_use]
pub fn values_or_all() -> Vec<PossibleValue> {
    values().into_iter().chain([PossibleValue::new(ALL).help("each of them, in turn")]).collect()
}

/// The strategies that were named, in their order.
#[must_use]
pub fn named(names: &[String]) -> Vec<&'static str> {
    let every = || default_first().map(|entry| entry.name);
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
