//! A worker: one thread of a pool, as what runs on it sees it.
//!
//! What is here is the same for every strategy, and is what a task that runs can ask for: fork
//! ([`join`](Worker::join)), create, wait. The thread's loop is the registry's.
//!
//! # Invariants
//!
//! 1. A worker lies in its seat. Between [`begin`](Worker::bind) and the end of its thread only
//!    that thread uses it, but for `forks`. [`CURRENT`] points to it meanwhile.
//! 2. Its registry lives longer than its thread.
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use machine::clock::{self, Ticks};

use crate::metrics::Counters;
use crate::queues::fork_stack::ForkStack;
use crate::queues::scope_tasks::ScopeTasks;
use crate::strategy::WorkerSlot;
use crate::sync::latch::Latch;
use crate::workers::core::Core;
use crate::workers::monitor::BLOCKED_US;
use crate::workers::pool_state::PoolState;
use crate::workers::worker_info::ScopeTask;

/// How long a worker dozes at first, and at most (see `sleeping.rs`).
const DOZE_NS: u64 = 100_000;
const MOST_DOZE_NS: u64 = 10_000_000;

machine::thread_local! {
    /// The worker that the thread is, if it is one (Invariant 1).
    static CURRENT: Cell<*const Worker> = Cell::new(core::ptr::null());
}

/// The second half of a fork, whatever its type.
pub(crate) struct Fork {
    /// Runs it and sets the latch; says whether the owner must be told.
    pub(super) run: unsafe fn(*const Fork, &Worker) -> bool,
    /// Set by a thief. Names the thief before.
    pub(super) latch: Latch,
}

/// A fork of another worker that the thread which has this is to run.
#[derive(Debug)]
pub(crate) struct StolenFork {
    pub(super) fork: *const Fork,
    /// The number of the worker whose fork it is.
    pub(super) owner: usize,
}

/// A thread of a pool, for the tasks that run on it.
///
/// [`join`](Self::join) on a worker is the cheapest fork there is here: a task gets one from
/// [`ThreadPool::install_with`](crate::ThreadPool::install_with) and hands it down.
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
    /// First: what each fork touches.
    pub(crate) forks: ForkStack<Fork>,
    /// Of the worker's pool; null before [`begin`](Self::bind).
    pool: Cell<*const PoolState>,
    /// The same pool, with its strategy.
    core: Cell<Option<*const dyn Core>>,
    pub(super) slot: WorkerSlot,
    /// The state of its random numbers.
    random: Cell<u32>,
    /// Waits that run any task, one inside the other.
    pub(super) nested: Cell<usize>,
    /// It is inside of `blocking`, and has lent a spare for that.
    pub(crate) in_blocking: Cell<bool>,
    /// How often it has searched in vain since it found something.
    failed_searches: Cell<u32>,
    /// When it last looked for others that have blocked.
    checked_at: Cell<Option<Ticks>>,
    /// Neither `Send` nor `Sync`.
    one_thread: PhantomData<*const ()>,
}

impl Worker {
    /// A worker without a thread, for the seat of this number.
    pub(crate) fn vacant(index: usize) -> Self {
        Self {
            forks: ForkStack::new(),
            pool: Cell::new(core::ptr::null()),
            core: Cell::new(None),
            // SAFETY: there is one worker for each seat, and its thread alone uses the place.
            slot: unsafe { WorkerSlot::new(index) },
            random: Cell::new((index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1),
            nested: Cell::new(0),
            in_blocking: Cell::new(false),
            failed_searches: Cell::new(0),
            checked_at: Cell::new(None),
            one_thread: PhantomData,
        }
    }

    /// The calling thread is the worker's from now on.
    ///
    /// # Safety
    ///
    /// No other thread uses the worker, apart from its forks, before the caller has ended with it.
    /// `core`, in which the worker lies, lives longer than that (Invariant 2).
    pub(crate) unsafe fn bind(&self, core: *const dyn Core) {
        // SAFETY: alive.
        self.pool.set(unsafe { &*core }.pool());
        self.core.set(Some(core));
        self.pool().use_slot(self.index());
    }

    /// The next of a row of pseudo-random numbers (Marsaglia's xorshift).
    pub(crate) fn random(&self) -> u32 {
        let mut word = self.random.get();
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        self.random.set(word);
        word
    }

    /// Runs `body` with the thread known to be this worker.
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

    /// Calls `body` with the worker that the calling thread is, if it is one.
    #[inline]
    pub(crate) fn with_current<R>(body: impl FnOnce(Option<&Self>) -> R) -> R {
        let current = CURRENT.with(Cell::get);
        // SAFETY: Invariant 1: it lies below on this stack.
        body(unsafe { current.as_ref() })
    }

    /// Its number, from 0; what [`current_thread_index`](crate::current_thread_index) returns on
    /// it.
    #[inline]
    #[must_use]
    pub fn index(&self) -> usize {
        self.slot.index()
    }

    #[inline]
    pub(crate) fn slot(&self) -> &WorkerSlot {
        &self.slot
    }

    #[inline]
    pub(crate) fn pool(&self) -> &PoolState {
        // SAFETY: a worker that runs has begun; Invariant 2.
        unsafe { &*self.pool.get() }
    }

    #[inline]
    pub(crate) fn core(&self) -> &(dyn Core + 'static) {
        let core = self.core.get().expect("a worker that runs has begun");
        // SAFETY: Invariant 2.
        unsafe { &*core }
    }

    /// Whether it is a worker of this pool.
    #[inline]
    pub(crate) fn belongs_to(&self, pool: &PoolState) -> bool {
        core::ptr::eq(self.pool.get(), pool)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.pool().info(self.index()).counters
    }

    /// It has searched in vain, and others work: for how many nanoseconds it dozes. Not the first
    /// time.
    pub(crate) fn next_doze(&self) -> Option<u64> {
        let failed_searches = self.failed_searches.get();
        self.failed_searches.set(failed_searches.saturating_add(1));
        (failed_searches > 0).then(|| (DOZE_NS << (failed_searches - 1).min(16)).min(MOST_DOZE_NS))
    }

    /// It has found something.
    pub(crate) fn found_work(&self) {
        self.failed_searches.set(0);
    }

    /// Whether it is time to look for others that have blocked.
    pub(crate) fn may_check_for_blocked(&self) -> bool {
        let now = clock::now();
        let often = |last: Ticks| now.nanos_since(last) < BLOCKED_US as u64 * 1_000;
        if self.checked_at.get().is_some_and(often) {
            return false;
        }
        self.checked_at.set(Some(now));
        true
    }

    /// The tasks of its scopes, if it runs no others while it waits.
    pub(crate) fn scope_tasks(&self) -> &ScopeTasks<ScopeTask> {
        &self.pool().info(self.index()).scope_tasks
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index()).finish_non_exhaustive()
    }
}
