//! The runtimes of the program: `--runtime`, and the parts of each beside fork and join.
//!
//! A miss is not among those parts: it is an ordinary call that waits in the kernel, and no runtime
//! learns of it.

use crate::strategies::OnPool;
use clap::ValueEnum;
use lock_api::RawMutex;
use stanchion_activations::{BuildError, Builder, Scope, ScopedJoinHandle, scope};
use stanchion_applications::nbody::{Fork, Threads};
use stanchion_competitive::RawPolicyMutex;
use stanchion_competitive::policy::{Adaptive, AlwaysBlock};
use stanchion_threadpool::Strategy;
use std::panic::resume_unwind;

/// The values of `--runtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// Tasks of a pool of threads, with ready work managed by `--strategy`.
    Pool,
    /// A thread of the system for each fork, and locks that sleep at once.
    Kernel,
    /// The same, and locks that spin before they sleep for as long as that has paid.
    KernelCompetitive,
    /// A user-level thread for each fork, over a kernel thread for each processor, of which the
    /// kernel tells nothing.
    User,
    /// A user-level thread for each fork, on activations: when one blocks in the kernel another has
    /// its processor.
    Activations,
    /// The same with threads that stay on the kernel thread on which they began, as all do that
    /// safe Rust can make: one waits while another blocks that kernel thread.
    ActivationsStay,
}

/// The most threads of the system at a time.
const THREADS: usize = 2_048;

/// Bytes of a user-level thread's stack.
const STACK: usize = 128 << 10;

/// The demands of the program on a runtime.
pub(crate) trait Runtime: Fork {
    /// The lock of what its threads share.
    type Lock: RawMutex + Send + Sync;

    /// Returns a text about the run when all is done.
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
    /// The threads.
    threads: Threads,
    /// Names the kind of lock.
    lock: core::marker::PhantomData<fn() -> L>,
}

/// Threads with locks that sleep at once, as those of the paper's Topaz.
pub(crate) type Blocking = Kernel<RawPolicyMutex<AlwaysBlock>>;

/// Threads with locks that spin first.
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
pub(crate) struct User {
    /// The runtime of the user-level threads.
    runtime: stanchion_activations::Runtime,
    /// Set if threads that have begun go on wherever a processor is free.
    migrate: bool,
}

impl User {
    /// Over so many processors.
    pub(crate) fn new(
        processors: usize,
        activations: bool,
        migrate: bool,
    ) -> Result<Self, BuildError> {
        let builder = stanchion_activations::Runtime::builder();
        let runtime =
            builder.processors(processors).stack_size(STACK).activations(activations).build()?;
        Ok(Self { runtime, migrate })
    }
}

impl User {
    /// `body` is a part of the n-body program.
    fn spawn<'scope, R: Send + 'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        body: impl FnOnce() -> R + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, R> {
        match self.migrate {
            // SAFETY: the program computes, takes memory and locks of this runtime, and sleeps or
            // reads: nothing that it holds over a wait belongs to a kernel thread, and it uses no
            // thread-local but in calls of the standard library that are over before it waits.
            true => unsafe { Builder::new().spawn_scoped_migratable(scope, body) },
            false => scope.spawn(body),
        }
    }
}

fn joined<R>(thread: ScopedJoinHandle<'_, R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Fork for User {
    fn join<A, B, RA, RB>(&self, one: A, other: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        scope(|scope| {
            let other = self.spawn(scope, other);
            let one = one();
            (one, joined(other))
        })
    }

    fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.runtime.scope(|scope| joined(self.spawn(scope, work)))
    }
}

impl Runtime for User {
    type Lock = stanchion_activations::sync::RawMutex;

    fn says(&self) -> String {
        let metrics = self.runtime.metrics();
        format!(
            "{} threads made, {} hand-offs; {}",
            metrics.spawned,
            metrics.handoffs,
            self.runtime.capabilities()
        )
    }
}

impl<L: RawMutex + Send + Sync> Runtime for Kernel<L> {
    type Lock = L;

    fn says(&self) -> String {
        format!("{} threads made", self.threads.made())
    }
}
