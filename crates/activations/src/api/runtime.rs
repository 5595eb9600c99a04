//! A runtime, as its user has it: reports, limits, and the end.

use core::fmt;
use std::sync::Arc;

use super::capabilities::{self, Capabilities};
use crate::reports::held_up;
use crate::reports::metrics::{self, Metrics};
use crate::reports::stall::{self, Stalled};
use crate::runtime::state::RuntimeState;
use crate::stats::trace::{Trace, Tracer};
use crate::upcalls::handoff;
use crate::worker::{context, wait};

/// A number of processors, and the user-level threads that share them.
///
/// Dropping it waits until all its threads have ended. In two cases the drop returns at once, and
/// the runtime ends when its threads have: if one of its own threads drops it, and if the thread
/// that drops it panics. A thread of another runtime that drops it, or [runs](Self::run) a closure
/// in it, leaves its processor to others meanwhile.
///
/// # Order
///
/// A *turn* is what one thread runs between two scheduling points: where it begins, yields, waits
/// or ends. At each scheduling point a processor chooses among three kinds of ready threads:
///
/// - **begun** threads, which yielded or were woken, and which this processor's kernel thread can
///   run: first come, first served;
/// - **new** threads, which have not begun, and threads that may migrate: in the order of the
///   [strategy](crate::RuntimeBuilder::strategy). By default those that were made on this processor
///   come first, the newest first, while idle processors take the oldest of them; then others,
///   first come, first served. Every 64th time the first that was made outside of the runtime comes
///   before, and every 64th time the first that was taken from another processor or that may
///   migrate and has yielded;
/// - **returned** threads: their kernel thread has no processor, because it was blocked in the
///   kernel. First come, first served.
///
/// Threads of a higher [`Priority`](crate::Priority) come first. Among threads of one priority no
/// kind keeps another one waiting. The longest wait of a ready thread, in turns of other threads on
/// its processor:
///
/// - new. Waits for at most: one turn of a begun thread, after a thread has called
///   [`yield_now`](crate::yield_now); 8 turns of begun threads that do not yield; once more for
///   each new thread that the strategy puts before it.
/// - yielded or woken. Waits for at most: one turn of each begun thread that was ready before it,
///   as many turns of new ones, and one more of these.
/// - returned. Waits for at most: the turns that begin within 50 µs, 61 at most; so one if turns
///   are longer. Once more for each kernel thread that waited before it.
/// - returned, [`High`](crate::Priority::High) beside `Normal` ones. Waits for at most: the turn
///   that runs.
/// - any, beside ones of a higher priority. Waits for at most: all of theirs: there is no bound.
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
    state: Arc<RuntimeState>,
}

impl Runtime {
    pub(super) fn of(state: Arc<RuntimeState>) -> Self {
        Self { state }
    }

    /// Returns the state, for a new thread. Panics in a forked child.
    #[track_caller]
    pub(super) fn state(&self) -> Arc<RuntimeState> {
        self.state.process.assert_current();
        self.state.clone()
    }

    /// Returns the number of its processors.
    #[must_use]
    pub fn processors(&self) -> usize {
        self.state.processors.count()
    }

    /// Uses no more than so many of its processors from now on, at least 1 and at most
    /// [`processors`](Self::processors). Threads on the others stop there at their next scheduling
    /// points. Returns the number that it uses, which is less if an [`Arbiter`](crate::Arbiter)
    /// gives it fewer.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(4)?;
    /// assert_eq!(runtime.limit_processors(1), 1);
    /// assert_eq!(runtime.metrics().processors, 1);
    /// assert_eq!(runtime.limit_processors(9), 4);
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    pub fn limit_processors(&self, most: usize) -> usize {
        let limit = &self.state.processors.limit;
        if limit.set_user_limit(most) {
            handoff::open_slots(&self.state);
        }
        limit.allowed()
    }

    /// Returns the support that it has from the kernel, and the reason why it is not more.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(1)?;
    /// println!("{}", runtime.capabilities());
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        capabilities::capabilities(&self.state)
    }

    /// Returns a record of what ran where so far, if it was
    /// [asked for](crate::RuntimeBuilder::trace).
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
        self.state.detection.tracer().map(Tracer::trace)
    }

    /// Returns the threads that wait, if no thread of the runtime could wake them at this moment:
    /// none is ready, runs, or blocks in the kernel, and none waits for a time.
    ///
    /// That is a deadlock, unless something outside wakes one of them: a kernel thread or a thread
    /// of another runtime that unparks it, releases a lock, sends a message, or spawns. A runtime
    /// that waits for its users looks the same, so the runtime does nothing about it by itself:
    /// [`run`](Self::run), [`JoinHandle::join`](crate::JoinHandle::join) and the end of a
    /// [`scope`](Self::scope()) go on waiting, and another thread may ask, a watchdog for example.
    /// A thread that another thread of this runtime holds up by *computing* for ever does not
    /// count: that one could go on. See [`long_running_threads`](Self::long_running_threads).
    ///
    /// Threads that are ready, but [share a kernel
    /// thread](crate#which-threads-share-a-kernel-thread) with one that blocks it in the kernel,
    /// are reported as well, if no other thread of the runtime can go on
    /// ([`Stalled::blocked_by`]). They go on when that block ends.
    ///
    /// The answer is of a moment. It may include a thread that something outside is just about to
    /// wake, or to spawn. A deadlock stays one. It costs a look at each worker, and if they all
    /// sleep one at the base of each stack, for names.
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
        stall::stalled(&self.state).or_else(|| held_up::behind_blocks(&self.state))
    }

    /// Returns the names of the threads that keep their processors: each has come to no scheduling
    /// point for 100 ms or longer, while other threads are ready. `None` stands for one without a
    /// name.
    ///
    /// Such a thread computes, or spins for what a thread without a processor is to do, for example
    /// around `std::thread::yield_now`. The two cannot be told apart. The cure is to call
    /// [`yield_now`](crate::yield_now), or to wait in [`sync`](crate::sync).
    ///
    /// A call compares with the calls before it. So the first returns nothing: ask every so often,
    /// as a watchdog does. It costs a look at each kernel thread.
    ///
    /// ```
    /// let runtime = stanchion_activations::Runtime::new(2)?;
    /// for thread in runtime.long_running_threads() {
    ///     println!("{} keeps its processor", thread.as_deref().unwrap_or("a nameless thread"));
    /// }
    /// # Ok::<(), stanchion_activations::BuildError>(())
    /// ```
    #[must_use]
    pub fn long_running_threads(&self) -> Vec<Option<String>> {
        held_up::long_running(&self.state)
    }

    /// Returns counts of what it has done so far.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        metrics::metrics(&self.state)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A forked child has no kernel threads to wait for, and locks may be held for ever.
        if !self.state.process.is_current() {
            core::mem::forget(self.state.clone());
            return;
        }
        self.state.close();
        let is_inside = context::with(|worker| {
            worker.is_some_and(|worker| Arc::ptr_eq(&worker.runtime, &self.state))
        });
        // While the owner panics, the threads may wait for something that it was to do.
        if !is_inside && !stanchion_machine::thread::panicking() {
            // As a thread while threads run, and for the rest, which is short, as a kernel thread.
            wait::wait_for_end(&self.state.live_threads);
            self.state.workers.join_all();
            self.state.fibers.quit_all();
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("processors", &self.processors()).finish_non_exhaustive()
    }
}
