//! A runtime, as its user has it.

use core::fmt;
use std::panic;
use std::sync::Arc;

use crate::birth;
use crate::builder::RuntimeBuilder;
use crate::capabilities::Capabilities;
use crate::error::BuildError;
use crate::join::JoinHandle;
use crate::local;
use crate::metrics::Metrics;
use crate::scope::{self, Scope};
use crate::shared::Shared;
use crate::stall::Stalled;
use crate::thread::Manner;
use crate::trace::{Trace, Tracer};

/// A number of processors, and the user-level threads that share them.
///
/// Dropping it waits until all its threads have ended. In two cases the drop returns at once, and the runtime ends when its threads have: if one of its own threads
/// drops it, and if the thread that drops it panics. A thread of another runtime that drops it, or [runs](Self::run) something in it, leaves its processor to
/// others meanwhile.
///
/// # Fork
///
/// A forked child has only the kernel thread that forked: none of the runtime's threads, or one of them if that forked. There a spawn from outside, and a join of a
/// thread that had not ended, panic; dropping the runtime does nothing. A thread of a runtime that forks should only `exec` in the child, or exit.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(2)?;
/// let squares: Vec<_> = (0..10).map(|n| runtime.spawn(move || n * n)).collect();
/// let sum: u32 = squares.into_iter().map(|square| square.join().unwrap()).sum();
/// assert_eq!(sum, 285);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub struct Runtime {
    shared: Arc<Shared>,
}

impl Runtime {
    /// One of so many processors, 0 for as many as the process may use, and otherwise as [`RuntimeBuilder`] makes it.
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

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// What is shared, for a new thread.
    ///
    /// # Panics
    ///
    /// In a forked child.
    #[track_caller]
    pub(crate) fn shared_here(&self) -> Arc<Shared> {
        self.shared.process().must_be_here();
        self.shared.clone()
    }

    /// How many processors it has.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.shared.seats()
    }

    /// Uses no more than so many of its processors from now on, at least 1 and at most [`processors`](Self::processors): what runs on the others stops there
    /// at its next scheduling point. Returns how many it uses, which is less if an [`Arbiter`](crate::Arbiter) gives it fewer.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(4)?;
    /// assert_eq!(runtime.limit_processors(1), 1);
    /// assert_eq!(runtime.metrics().processors, 1);
    /// assert_eq!(runtime.limit_processors(9), 4);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn limit_processors(&self, most: usize) -> usize {
        if self.shared.demand().limit(most) {
            self.shared.open_seats();
        }
        self.shared.demand().allowed()
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
        self.shared.capabilities()
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
        self.shared.tracer().map(Tracer::trace)
    }

    /// The threads that wait, if nobody in the runtime could wake them at this moment: none is ready, runs, or blocks in the kernel, and none waits for a time.
    ///
    /// That is a deadlock, unless something outside wakes one of them: a kernel thread or a thread of another runtime that unparks it, releases a lock, sends a
    /// message, or spawns. So a runtime that waits for its users looks the same, and nothing is done about it by itself: [`run`](Self::run),
    /// [`JoinHandle::join`] and the end of a [`scope`](Self::scope()) go on waiting, and whoever else has the runtime may ask, a watchdog for example. A thread that another
    /// thread of this runtime holds up by *computing* for ever does not count: that one could go on.
    ///
    /// The answer is of a moment. Who asks while something outside is just about to wake a thread, or to spawn one, may be told of it as well; a
    /// deadlock stays one. Costs a look at each carrier, and if they all sleep one at the base of each stack, for names.
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
        self.shared.stalled()
    }

    /// What it has done so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.metrics()
    }

    /// Makes a new thread, which will run `body`. [`Builder::on`](crate::Builder::on) gives it a name or a priority.
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
        birth::spawn(&self.shared_here(), Manner::default(), body)
    }

    /// Runs `body` in a thread of the runtime, and waits for it; for ever, if the thread does ([`stalled`](Self::stalled)).
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
    /// Runs `body` on the calling thread with a scope, in which it can spawn threads that borrow from the calling one; then waits until all have ended.
    /// [`scope`](crate::scope()) does so in a thread of the runtime.
    ///
    /// # Panics
    ///
    /// With what `body` panicked with; or if a thread did that nobody has joined; in both cases when all threads have ended. In a forked child.
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
        scope::run(self.shared_here(), body)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.shared.process().is_here() {
            // A forked child: there is nobody to wait for, and nobody has left things in order.
            core::mem::forget(self.shared.clone());
            return;
        }
        self.shared.close();
        let inside = local::with(|local| {
            local.is_some_and(|local| Arc::ptr_eq(&local.shared, &self.shared))
        });
        // While the owner panics, the threads may wait for what it was to do.
        if !inside && !machine::thread::panicking() {
            self.shared.join();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("processors", &self.processors()).finish_non_exhaustive()
    }
}
