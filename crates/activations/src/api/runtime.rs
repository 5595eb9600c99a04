//! A runtime, as its user has it.

use core::fmt;
use std::panic;
use std::sync::Arc;

use crate::api::spawn as birth;
use crate::api::builder::RuntimeBuilder;
use crate::api::capabilities::Capabilities;
use crate::api::error::BuildError;
use crate::api::join::JoinHandle;
use crate::worker::context;
use crate::reports::metrics::Metrics;
use crate::api::scope::{self, Scope};
use crate::runtime::state::RuntimeState;
use crate::reports::stall::Stalled;
use crate::thread::header::Attributes;
use crate::stats::trace::{Trace, Tracer};

/// A number of processors, and the user-level threads that share them.
///
/// Dropping it waits until all its threads have ended. In two cases the drop returns at once, and
/// the runtime ends when its threads have: if one of its own threads drops it, and if the thread
/// that drops it panics. A thread of another runtime that drops it, or [runs](Self::run) something
/// in it, leaves its processor to others meanwhile.
///
/// # Order
///
/// A *turn* is what one thread runs between two scheduling points: where it begins, yields, waits
/// or ends. At each scheduling point a processor chooses among three kinds of ready threads:
///
/// - **begun** threads, which yielded or were woken, and whose kernel thread has this processor:
///   first come, first served;
/// - **new** threads, which have not begun, and such as may migrate: in the order of the
///   [strategy](crate::RuntimeBuilder::strategy). By default those that were made on this processor
///   come first, the newest first, while idle processors take the oldest of them; then others,
///   first come, first served. Every 64th time the first that was made outside of the runtime comes
///   before, and every 64th time the first that was taken from another processor or that may
///   migrate and has yielded;
/// - **returned** threads, whose kernel thread has no processor, because it was blocked in the
///   kernel: first come, first served.
///
/// Threads of a higher [`Priority`](crate::Priority) come first. Among threads of one priority no
/// kind keeps another one waiting. What a ready thread waits for at most, in turns of other threads
/// on its processor:
///
/// | a ready thread | waits for at most |
/// | --- | --- |
/// | new | one turn of a begun thread, after a thread has called [`yield_now`](crate::yield_now); 8 turns of begun threads that do not yield; once more for each new thread that the strategy puts before it |
/// | yielded or woken | one turn of each begun thread that was ready before it, as many turns of new ones, and one more of these |
/// | returned | the turns that begin within 50 µs, 61 at most; so one if turns are longer. Once more for each kernel thread that waited before it |
/// | returned, [`High`](crate::Priority::High) beside `Normal` ones | the turn that runs |
/// | any, beside ones of a higher priority | all of theirs: there is no bound |
///
/// A kernel thread keeps its processor for as long as none waits for one. If one does, it gives the
/// processor up after 50 µs or 61 turns. If a new thread may not run beside the threads that began
/// on the kernel thread, it takes the processor along to another kernel thread. Either way, the
/// threads that stay behind are *returned* ones from then on. On several processors each counts for
/// itself, and the soonest serves.
///
/// A turn itself has no bound: a user-level thread is not preempted. Nor has a new thread on the
/// processor of a thread that computes, but another processor that yields, or is idle, takes it.
///
/// # Fork
///
/// A forked child has only the kernel thread that forked: none of the runtime's threads, or one of
/// them if that forked. There a spawn from outside, and a join of a thread that had not ended,
/// panic; dropping the runtime does nothing. A thread of a runtime that forks should only `exec` in
/// the child, or exit.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(2)?;
/// let squares: Vec<_> = (0..10).map(|n| runtime.spawn(move || n * n)).collect();
/// let sum: u32 = squares.into_iter().map(|square| square.join().unwrap()).sum();
/// assert_eq!(sum, 285);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub struct Runtime {
    runtime: Arc<RuntimeState>,
}

impl Runtime {
    /// One of so many processors, 0 for as many as the process may use, and otherwise as
    /// [`RuntimeBuilder`] makes it.
    ///
    /// # Errors
    ///
    /// [`BuildError`].
    pub fn new(processors: usize) -> Result<Self, BuildError> {
        Self::builder().processors(processors).build()
    }

    /// Says how one is to be.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder::new()
    }

    pub(crate) fn of(runtime: Arc<RuntimeState>) -> Self {
        Self { runtime }
    }

    /// What is runtime, for a new thread.
    ///
    /// # Panics
    ///
    /// In a forked child.
    #[track_caller]
    pub(crate) fn state_here(&self) -> Arc<RuntimeState> {
        self.runtime.process().must_be_here();
        self.runtime.clone()
    }

    /// How many processors it has.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.runtime.slots()
    }

    /// Uses no more than so many of its processors from now on, at least 1 and at most
    /// [`processors`](Self::processors): what runs on the others stops there at its next scheduling
    /// point. Returns how many it uses, which is less if an [`Arbiter`](crate::Arbiter) gives it
    /// fewer.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(4)?;
    /// assert_eq!(runtime.limit_processors(1), 1);
    /// assert_eq!(runtime.metrics().processors, 1);
    /// assert_eq!(runtime.limit_processors(9), 4);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn limit_processors(&self, most: usize) -> usize {
        if self.runtime.limit().limit(most) {
            self.runtime.open_slots();
        }
        self.runtime.limit().allowed()
    }

    /// What it is told here, and why not more.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// println!("{}", runtime.capabilities());
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.runtime.capabilities()
    }

    /// What ran where so far, if it was [asked for](RuntimeBuilder::trace).
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::builder().processors(1).trace(1_000).build()?;
    /// runtime.run(stanchion_activations::yield_now);
    /// let mut json = Vec::new();
    /// runtime.trace().expect("it was asked for").write_chrome(&mut json)?;
    /// assert!(json.starts_with(b"{"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn trace(&self) -> Option<Trace> {
        self.runtime.tracer().map(Tracer::trace)
    }

    /// The threads that wait, if nobody in the runtime could wake them at this moment: none is
    /// ready, runs, or blocks in the kernel, and none waits for a time.
    ///
    /// That is a deadlock, unless something outside wakes one of them: a kernel thread or a thread
    /// of another runtime that unparks it, releases a lock, sends a message, or spawns. So a
    /// runtime that waits for its users looks the same, and nothing is done about it by itself:
    /// [`run`](Self::run), [`JoinHandle::join`] and the end of a [`scope`](Self::scope()) go on
    /// waiting, and whoever else has the runtime may ask, a watchdog for example. A thread that
    /// another thread of this runtime holds up by *computing* for ever does not count: that one
    /// could go on. See [`keeps_processors`](Self::keeps_processors).
    ///
    /// Threads that are ready, but [share a kernel
    /// thread](crate#which-threads-share-a-kernel-thread) with one that blocks it in the kernel,
    /// are reported as well, if nothing else in the runtime can go on ([`Stalled::blocked_by`]).
    /// They go on when that block ends.
    ///
    /// The answer is of a moment. Who asks while something outside is just about to wake a thread,
    /// or to spawn one, may be told of it as well; a deadlock stays one. Costs a look at each
    /// worker, and if they all sleep one at the base of each stack, for names.
    ///
    /// ```
    /// use stanchion_activations::{Builder, Runtime, park};
    ///
    /// let runtime = Runtime::new(2)?;
    /// let thread = Builder::new().name("waits for ever").on(&runtime).spawn(park);
    /// let stalled = loop {
    ///     if let Some(stalled) = runtime.stalled() {
    ///         break stalled;
    ///     }
    ///     std::thread::yield_now(); // It has not parked yet.
    /// };
    /// assert_eq!(stalled.waiting(), 1);
    /// assert_eq!(stalled.names(), ["waits for ever"]);
    /// println!("{stalled}");
    /// thread.thread().unpark(); // From outside.
    /// thread.join().unwrap();
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[must_use]
    pub fn stalled(&self) -> Option<Stalled> {
        self.runtime.stalled().or_else(|| self.runtime.stalled_behind_blocks())
    }

    /// Returns the names of the threads that keep their processors: each has come to no scheduling
    /// point for 100 ms or longer, while other threads are ready. `None` stands for one without a
    /// name.
    ///
    /// Such a thread computes, or spins for what a thread without a processor is to do, for example
    /// around `std::thread::yield_now`. Nothing tells the two apart. The cure is to call
    /// [`yield_now`](crate::yield_now), or to wait in [`sync`](crate::sync).
    ///
    /// A call compares with the calls before it. So the first returns nothing: ask every so often,
    /// as a watchdog does. Costs a look at each kernel thread.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(2)?;
    /// for thread in runtime.keeps_processors() {
    ///     println!("{} keeps its processor", thread.as_deref().unwrap_or("a thread without a name"));
    /// }
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[must_use]
    pub fn keeps_processors(&self) -> Vec<Option<String>> {
        self.runtime.keeps_processors()
    }

    /// What it has done so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.runtime.metrics()
    }

    /// Makes a new thread, which will run `body`. [`Builder::on`](crate::Builder::on) gives it a
    /// name or a priority.
    ///
    /// # Panics
    ///
    /// In a forked child.
    #[track_caller]
    pub fn spawn<F, T>(&self, body: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        birth::spawn(&self.state_here(), Attributes::default(), body)
    }

    /// Runs `body` in a thread of the runtime, and waits for it; for ever, if the thread does
    /// ([`stalled`](Self::stalled)).
    ///
    /// # Panics
    ///
    /// If `body` does. In a forked child.
    #[track_caller]
    pub fn run<F, T>(&self, body: F) -> T
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn(body).join().unwrap_or_else(|payload| panic::resume_unwind(payload))
    }
}

impl Runtime {
    /// Runs `body` on the calling thread with a scope, in which it can spawn threads that borrow
    /// from the calling one; then waits until all have ended. [`scope`](crate::scope()) does so in
    /// a thread of the runtime.
    ///
    /// # Panics
    ///
    /// With what `body` panicked with; or if a thread did that nobody has joined; in both cases
    /// when all threads have ended. In a forked child.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(2)?;
    /// let mut words = ["one", "two"].map(String::from);
    /// runtime.scope(|s| {
    ///     for word in &mut words {
    ///         s.spawn(|| word.make_ascii_uppercase());
    ///     }
    /// });
    /// assert_eq!(words, ["ONE", "TWO"]);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[track_caller]
    pub fn scope<'env, F, T>(&self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        scope::run(self.state_here(), body)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.runtime.process().is_here() {
            // A forked child: there is nobody to wait for, and nobody has left things in order.
            core::mem::forget(self.runtime.clone());
            return;
        }
        self.runtime.close();
        let inside = context::with(|local| {
            local.is_some_and(|local| Arc::ptr_eq(&local.runtime, &self.runtime))
        });
        // While the owner panics, the threads may wait for what it was to do.
        if !inside && !machine::thread::panicking() {
            self.runtime.join();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("processors", &self.processors()).finish_non_exhaustive()
    }
}
