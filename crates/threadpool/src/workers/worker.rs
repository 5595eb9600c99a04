//! A worker: one thread of a pool, as the tasks that run on it see it.
//!
//! It is the same for every strategy. A task can ask it to fork ([`join`](Worker::join)), to create
//! tasks (`run.rs`) and to wait (`wait.rs`). The loop of its thread is the registry's.
//!
//! # Invariants
//!
//! 1. A worker lies in the [`WorkerInfo`](super::worker_info::WorkerInfo) of its slot. Between
//!    [`bind`](Worker::bind) and the end of its thread only that thread uses it, except `forks`.
//!    Meanwhile [`CURRENT`] points to it.
//! 2. Its registry lives longer than its thread.
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use stanchion_competitive::cost;
use stanchion_machine::clock::{self, Ticks};
use stanchion_machine::thread;

use crate::metrics::Counters;
use crate::queues::{ForkStack, ScopeTasks};
use crate::random::XorShift;
use crate::strategy::WorkerSlot;
use crate::sync::Latch;
use crate::workers::spin::YieldHistory;
use crate::workers::{BLOCKED_US, Core, PoolState, ScopeTask};

/// The first and the longest doze of a worker (see `sleep.rs`).
const DOZE_NS: u64 = 100_000;
const MOST_DOZE_NS: u64 = 10_000_000;

stanchion_machine::thread_local! {
    /// The worker that the thread is, if it is one (Invariant 1). Written by the thread itself.
    static CURRENT: Cell<*const Worker> = Cell::new(core::ptr::null());
}

/// The header of a fork: what a thief needs to run the second half, whatever its type is.
pub(crate) struct Fork {
    /// Runs the second half and sets the latch. Returns whether the owner must be woken.
    pub(super) run: unsafe fn(*const Fork, &Worker) -> bool,
    /// Set by the thief, which writes its index into it before.
    pub(super) latch: Latch,
}

/// A fork that the thread which holds this value has stolen, and is to run.
#[derive(Debug)]
pub(crate) struct StolenFork {
    /// The header, which lies on the owner's stack.
    pub(super) fork: *const Fork,
    /// The index of the worker that has made the fork.
    pub(super) owner: usize,
}

/// A thread of a pool, for the tasks that run on it.
///
/// [`join`](Self::join) on a worker is the cheapest fork of this crate. A task gets a worker
/// from [`ThreadPool::install_with`](crate::ThreadPool::install_with) and hands it down.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, Worker};
///
/// fn fib(worker: &Worker, n: u32) -> u64 {
///     if n < 2 {
///         return n.into();
///     }
///     let (a, b) = worker.join(|worker| fib(worker, n - 1), |worker| fib(worker, n - 2));
///     a + b
/// }
/// let pool = ThreadPool::new(2)?;
/// assert_eq!(pool.install_with(|worker| fib(worker, 20)), 6_765);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
///
/// It stays on its thread:
///
/// ```compile_fail,E0277
/// let pool = stanchion_threadpool::ThreadPool::new(2).unwrap();
/// pool.install_with(|worker| {
///     std::thread::scope(|threads| {
///         threads.spawn(|| worker.index());
///     });
/// });
/// ```
#[repr(C)]
pub struct Worker {
    /// The forks that it has made. It lies first, as each `join` touches it.
    pub(crate) forks: ForkStack<Fork>,
    /// The pool of the worker; null before [`bind`](Self::bind).
    pool: Cell<*const PoolState>,
    /// The same pool, with its strategy.
    core: Cell<Option<*const dyn Core>>,
    /// Its slot in the strategy and in the pool.
    pub(super) slot: WorkerSlot,
    /// Its random numbers.
    pub(super) random: XorShift,
    /// Waits that run any task, one inside the other.
    pub(super) nested: Cell<usize>,
    /// Set while it is inside of `blocking` and has leased a spare for that.
    pub(crate) in_blocking: Cell<bool>,
    /// The yields of its searches.
    yields: YieldHistory,
    /// Searches in vain since it last found something.
    failed_searches: Cell<u32>,
    /// The time at which it last looked for other workers that have blocked.
    checked_at: Cell<Option<Ticks>>,
    /// Makes it neither `Send` nor `Sync`.
    one_thread: PhantomData<*const ()>,
}

impl Worker {
    /// Creates a worker without a thread, for the slot with this index.
    pub(crate) fn vacant(index: usize) -> Self {
        Self {
            forks: ForkStack::new(),
            pool: Cell::new(core::ptr::null()),
            core: Cell::new(None),
            // SAFETY: there is one worker for each slot, and its thread alone uses the slot.
            slot: unsafe { WorkerSlot::new(index) },
            random: XorShift::new(index),
            nested: Cell::new(0),
            in_blocking: Cell::new(false),
            yields: YieldHistory::new(),
            failed_searches: Cell::new(0),
            checked_at: Cell::new(None),
            one_thread: PhantomData,
        }
    }

    /// Makes the calling thread the worker's thread.
    ///
    /// # Safety
    ///
    /// No other thread uses the worker, apart from its forks, before the caller has stopped using
    /// it. `core`, in which the worker lies, lives longer than that (Invariant 2).
    pub(crate) unsafe fn bind(&self, core: *const dyn Core) {
        // SAFETY: alive.
        self.pool.set(unsafe { &*core }.pool());
        self.core.set(Some(core));
        self.pool().use_slot(self.index());
    }

    /// Runs `body` while this worker is the calling thread's.
    pub(crate) fn enter<R>(&self, body: impl FnOnce() -> R) -> R {
        struct Leave(*const Worker);
        impl Drop for Leave {
            fn drop(&mut self) {
                CURRENT.with(|current| current.set(self.0));
            }
        }
        let _leave = Leave(CURRENT.with(|current| current.replace(self)));
        body()
    }

    /// Makes it, or no worker, the calling thread's from now on.
    pub(crate) fn set_current(&self, is_current: bool) {
        CURRENT.with(|current| current.set(if is_current { self } else { core::ptr::null() }));
    }

    /// Calls `body` with the worker of the calling thread, if the thread is one.
    #[inline]
    pub(crate) fn with_current<R>(body: impl FnOnce(Option<&Self>) -> R) -> R {
        let current = CURRENT.with(Cell::get);
        // SAFETY: Invariant 1: it lies below on this stack.
        body(unsafe { current.as_ref() })
    }

    /// Returns its index, from 0: what [`current_thread_index`](crate::current_thread_index)
    /// returns on it.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.slot.index()
    }

    /// Returns its slot, for the strategy.
    #[inline]
    pub(crate) fn slot(&self) -> &WorkerSlot {
        &self.slot
    }

    /// Returns the state of its pool.
    #[inline]
    pub(crate) fn pool(&self) -> &PoolState {
        // SAFETY: a worker that runs has been bound; Invariant 2.
        unsafe { &*self.pool.get() }
    }

    /// Returns its registry.
    #[inline]
    pub(crate) fn core(&self) -> &(dyn Core + 'static) {
        let core = self.core.get().expect("a worker that runs has begun");
        // SAFETY: Invariant 2.
        unsafe { &*core }
    }

    /// Returns whether it is a worker of this pool.
    #[inline]
    pub(crate) fn belongs_to(&self, pool: &PoolState) -> bool {
        core::ptr::eq(self.pool.get(), pool)
    }

    /// Returns its counters.
    pub(crate) fn counters(&self) -> &Counters {
        &self.pool().info(self.index()).counters
    }

    /// Spins until `done`, for as long as an idle worker should spin.
    pub(crate) fn spin_until(&self, done: impl Fn() -> bool) -> bool {
        self.spin(|| done().then_some(())).is_some()
    }

    /// Repeats `attempt` for as long as an idle worker should spin before it sleeps (`spin.rs`).
    /// Yields between two attempts if the pool may have a worker for each processor.
    pub(crate) fn spin<R>(&self, attempt: impl FnMut() -> Option<R>) -> Option<R> {
        let pool = self.pool();
        let patience = pool.config.idle_spin_ns.unwrap_or_else(cost::current);
        let yields = pool.first_spare >= pool.processors;
        self.yields.spin(attempt, patience, yields.then_some(thread::yield_now))
    }

    /// Counts a search in vain, while other workers have work. Returns for how many nanoseconds the
    /// worker dozes: not at all the first time.
    pub(crate) fn next_doze(&self) -> Option<u64> {
        let failed_searches = self.failed_searches.get();
        self.failed_searches.set(failed_searches.saturating_add(1));
        (failed_searches > 0).then(|| (DOZE_NS << (failed_searches - 1).min(16)).min(MOST_DOZE_NS))
    }

    /// Ends the count of searches in vain: the worker has found something.
    pub(crate) fn found_work(&self) {
        self.failed_searches.set(0);
    }

    /// Returns whether it is time to look for other workers that have blocked.
    pub(crate) fn may_check_for_blocked(&self) -> bool {
        let now = clock::now();
        let often = |last: Ticks| now.nanos_since(last) < BLOCKED_US as u64 * 1_000;
        if self.checked_at.get().is_some_and(often) {
            return false;
        }
        self.checked_at.set(Some(now));
        true
    }

    /// Returns the tasks of its scopes, if it runs no other tasks while it waits.
    pub(crate) fn scope_tasks(&self) -> &ScopeTasks<ScopeTask> {
        &self.pool().info(self.index()).scope_tasks
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index()).finish_non_exhaustive()
    }
}
