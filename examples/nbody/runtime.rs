//! Who can run the program: `--runtime`, and what each brings beside fork and join.
//!
//! A miss is not among that: it is an ordinary call that waits in the kernel, of which no runtime is told.

use clap::ValueEnum;
use examples::strategies::OnPool;
use lock_api::RawMutex;
use stanchion_applications::nbody::{Fork, Threads};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock};
use stanchion_threadpool::Strategy;

/// What `--runtime` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Tasks of a pool of threads, whose ready work is managed as `--strategy` says.
    Pool,
    /// A thread of the system for each fork, and locks that sleep at once.
    Kernel,
    /// The same, and locks that spin before they sleep for as long as that has paid.
    KernelCompetitive,
}

/// The most threads of the system at a time.
const THREADS: usize = 2_048;

/// What the program asks of a runtime.
pub(crate) trait Runtime: Fork {
    /// The lock of what its threads share.
    type Lock: RawMutex + Send + Sync;

    /// What it says of itself when all is done.
    fn says(&self) -> String;
}

impl<S: Strategy> Runtime for OnPool<'_, S> {
    type Lock = RawPolicyMutex<Adaptive>;

    fn says(&self) -> String {
        self.0.metrics().to_string()
    }
}

/// Threads of the system, with locks of the type `L`.
pub(crate) struct Kernel<L> {
    threads: Threads,
    lock: core::marker::PhantomData<fn() -> L>,
}

/// Whose locks sleep at once, as those of the paper's Topaz.
pub(crate) type Blocking = Kernel<RawPolicyMutex<AlwaysBlock>>;

/// Whose locks spin first.
pub(crate) type Competitive = Kernel<RawPolicyMutex<Adaptive>>;

impl<L> Default for Kernel<L> {
    fn default() -> Self {
        Self { threads: Threads::new(THREADS), lock: core::marker::PhantomData }
    }
}

impl<L> Fork for Kernel<L> {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.threads.join(one, other)
    }
}

impl<L: RawMutex + Send + Sync> Runtime for Kernel<L> {
    type Lock = L;

    fn says(&self) -> String {
        format!("{} threads made", self.threads.made())
    }
}
