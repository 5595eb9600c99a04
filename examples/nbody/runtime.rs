//! Who can run the program: `--runtime`, and what each brings beside fork and join.
//!
//! A miss is not among that: it is an ordinary call that waits in the kernel, of which no runtime is told.

use clap::ValueEnum;
use examples::strategies::OnPool;
use lock_api::RawMutex;
use stanchion_activations::{BuildError, JoinHandle};
use stanchion_applications::nbody::{Fork, Threads};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock};
use stanchion_threadpool::Strategy;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What `--runtime` may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Tasks of a pool of threads, whose ready work is managed as `--strategy` says.
    Pool,
    /// A thread of the system for each fork, and locks that sleep at once.
    Kernel,
    /// The same, and locks that spin before they sleep for as long as that has paid.
    KernelCompetitive,
    /// A user-level thread for each fork, over a kernel thread for each processor, of which the kernel tells nothing.
    User,
    /// A user-level thread for each fork, on activations: when one blocks in the kernel another has its processor.
    Activations,
}

/// The most threads of the system at a time.
const THREADS: usize = 2_048;

/// Bytes of a user-level thread's stack.
const STACK: usize = 128 << 10;

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

/// User-level threads.
#[derive(Debug)]
pub(crate) struct User(stanchion_activations::Runtime);

impl User {
    /// Over so many processors, with activations or without.
    pub(crate) fn new(processors: usize, activations: bool) -> Result<Self, BuildError> {
        let builder = stanchion_activations::Runtime::builder();
        builder.processors(processors).stack_size(STACK).activations(activations).build().map(Self)
    }
}

/// Calls `work` on a thread that `spawn` makes, and `here` meanwhile; returns what both return, when both have returned.
fn beside<A, B: Send>(
    spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> JoinHandle<()>,
    work: impl FnOnce() -> B + Send,
    here: impl FnOnce() -> A,
) -> (A, B) {
    let mut result = None;
    let work: Box<dyn FnOnce() + Send + '_> = Box::new(|| result = Some(work()));
    // SAFETY: only the lifetime changes, and the thread is joined before what it borrows goes: `here` does not leave by a panic.
    let work = unsafe {
        core::mem::transmute::<Box<dyn FnOnce() + Send + '_>, Box<dyn FnOnce() + Send>>(work)
    };
    let thread = spawn(work);
    let here = catch_unwind(AssertUnwindSafe(here));
    match (here, thread.join(), result) {
        (Ok(here), Ok(()), Some(there)) => (here, there),
        (Err(panic), ..) | (_, Err(panic), _) => resume_unwind(panic),
        (Ok(_), Ok(()), None) => unreachable!("a thread that ended has left a result"),
    }
}

impl Fork for User {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        beside(stanchion_activations::spawn, other, one)
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        beside(|work| self.0.spawn(work), work, || ()).1
    }
}

impl Runtime for User {
    type Lock = stanchion_activations::sync::RawMutex;

    fn says(&self) -> String {
        let metrics = self.0.metrics();
        format!(
            "{} threads made, {} hand-overs; {}",
            metrics.spawned,
            metrics.handovers,
            self.0.capabilities()
        )
    }
}

impl<L: RawMutex + Send + Sync> Runtime for Kernel<L> {
    type Lock = L;

    fn says(&self) -> String {
        format!("{} threads made", self.threads.made())
    }
}
