//! A worker: one thread of a pool, as what runs on it sees it.
//!
//! What is here is the same for every strategy, and is what a task that runs can ask for: fork
//! ([`join`](Worker::join)), create, wait. The thread's loop is the registry's.
//!
//! # Waiting for what another runs
//!
//! | [`Wait`] | what the worker does meanwhile | its stack | holding a lock meanwhile |
//! | --- | --- | --- | --- |
//! | `Any` | any ready task, to a depth of [`MOST_NESTED`] | at most so many tasks above each other, but see below | may deadlock with a task that wants it |
//! | `Leapfrog` | what the thief has ready: most often part of what is waited for | seldom deeper than the program run by one thread | may deadlock, if the thief has other tasks too |
//! | `Isolated` | tasks of the scope that it waits for | does not grow | safe, but for what a [`broadcast`](crate::ThreadPool::broadcast) runs |
//! | `Park` | the same, and a spare thread takes its seat | does not grow | as above |
//!
//! All of them run what a broadcast has for the worker: it waits for each, perhaps in a task that
//! is waited for here.
//!
//! # Why this does not deadlock
//!
//! A worker that waits for a fork or a scope waits for tasks that began after what is uppermost on
//! its stack, or that it would run itself: the tasks of a scope whose waiter runs no others lie in
//! a list ([`helps`](Worker::helps) is asked when the scope begins). So along a row of workers of
//! which each waits for the next, what is uppermost began later and later, and the row ends with
//! one that does not wait.
//!
//! A handle of a future may be waited for by anybody, before its task has begun, and another pool's
//! tasks may come back to this one. A worker that runs nothing might then wait for what it alone
//! would run. So under `Any` it runs tasks meanwhile, also beyond [`MOST_NESTED`]. Why not sleep
//! and lend its seat to a spare there: the spares are counted, not whom they serve, so the one that
//! is left may itself wait for this worker's fork.
//!
//! A spare whose turn is over may still have a fork of the worker that took its seat back. If it
//! blocks there, it stands in for itself. So a worker that sleeps for a fork lends its seat if the
//! pool has started spares.
//!
//! **The bound that remains:** under `Any` forks and scopes add at most `MOST_NESTED` tasks to a
//! stack; waits for futures, broadcasts and other pools as many as wait so above each other. Under
//! the others a worker lends its seat while it waits for another pool, and sleeps if there is no
//! spare: pools that call each other to and fro need as many spares as there are calls inside each
//! other. While it waits for a future it sleeps (`Park` lends its seat): a pool all of whose
//! workers do polls nothing any more. A task that waits for a future whose poll lies below it on
//! the same stack waits for ever.
//!
//! # Invariants
//!
//! 1. A worker lies in its seat. Between [`begin`](Worker::begin) and the end of its thread only
//!    that thread uses it, but for `forks`. [`CURRENT`] points to it meanwhile.
//! 2. Its registry lives longer than its thread.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;

use machine::bomb::AbortOnUnwind;
use machine::clock::{self, Ticks};

use crate::blocking::Lent;
use crate::common::Common;
use crate::control_block::Task;
use crate::forks::Forks;
use crate::job::{self, Fate};
use crate::join::{Fork, Stolen};
use crate::latch::Latch;
use crate::listed::Listed;
use crate::lookout::BLOCKED_US;
use crate::metrics::Counters;
use crate::registry::{Core, Order};
use crate::strategy::Place;

/// What a wait ends the process with that would unwind.
pub(crate) const UNWOUND: &str =
    "a wait in a thread pool unwound: others may still use what lies on its stack";

/// How many tasks a worker that waits may run one inside the other, before it waits without running
/// any.
pub const MOST_NESTED: usize = 64;

/// How long a worker dozes at first, and at most (see `sleeping.rs`).
const DOZE_NS: u64 = 100_000;
const MOST_DOZE_NS: u64 = 10_000_000;

machine::thread_local! {
    /// The worker that the thread is, if it is one (Invariant 1).
    static CURRENT: Cell<*const Worker> = Cell::new(core::ptr::null());
}

/// What a worker does while it waits for a task that another one runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wait {
    /// Runs any task that is ready, one inside the other up to [`MOST_NESTED`], then only those of
    /// the scope that it waits for. The processors are never idle while there is work, and a task
    /// that waits may find an unrelated one on top of it: do not hold a lock, and do not wait for
    /// the pool to [end](crate::ThreadPool::shutdown).
    ///
    /// A worker that waits there for a future, a broadcast or another pool runs any task after all:
    /// its stack grows by one for each such wait.
    #[default]
    Any,
    /// Runs only the tasks of the scope it waits for, or what the thief has ready, one at a time
    /// from the oldest (Wagner and Calder 1993). Those are parts of what is waited for, unless the
    /// thief had other tasks before, or has moved some to itself: so do not hold a lock. Strategies
    /// with a central queue do not know whose task is whose, and run nothing.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork lends its seat too.
    Leapfrog,
    /// Runs nothing but the tasks of the scope it waits for, and broadcasts. Locks may be held
    /// across a `join`, but not one that a [`broadcast`](crate::ThreadPool::broadcast) takes; the
    /// processor is idle meanwhile.
    ///
    /// In a pool that has started spare threads, a worker that waits for a fork lends its seat too.
    Isolated,
    /// As `Isolated`, and lends its seat to a spare thread as [`blocking`](crate::blocking) does.
    Park,
}

/// What a worker finds to run.
#[derive(Debug)]
pub(crate) enum Work {
    /// A task that was ready.
    Task(Task),
    /// A fork of another worker.
    Fork(Stolen),
}

/// What a worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// A fork, which the worker runs that the latch names.
    Fork,
    /// The tasks of a scope, which lie in the list of this worker's seat, at this level.
    Scope(usize),
    /// What may not have begun, or have been begun by whoever.
    Anywhere,
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
    pub(crate) forks: Forks<Fork>,
    /// Of the worker's pool; null before [`begin`](Self::begin).
    common: Cell<*const Common>,
    /// The same pool, with its strategy.
    core: Cell<Option<*const dyn Core>>,
    place: Place,
    /// The state of its random numbers.
    random: Cell<u32>,
    /// Waits that run any task, one inside the other.
    nested: Cell<usize>,
    /// It is inside of `blocking`, and has lent a spare for that.
    pub(crate) blocks: Cell<bool>,
    /// How often it has searched in vain since it found something.
    in_vain: Cell<u32>,
    /// When it last looked for others that have blocked.
    looked_out: Cell<Option<Ticks>>,
    /// Neither `Send` nor `Sync`.
    one_thread: PhantomData<*const ()>,
}

impl Worker {
    /// A worker without a thread, for the seat of this number.
    pub(crate) fn vacant(index: usize) -> Self {
        Self {
            forks: Forks::new(),
            common: Cell::new(core::ptr::null()),
            core: Cell::new(None),
            // SAFETY: there is one worker for each seat, and its thread alone uses the place.
            place: unsafe { Place::new(index) },
            random: Cell::new((index as u32 + 1).wrapping_mul(0x9E37_79B9) | 1),
            nested: Cell::new(0),
            blocks: Cell::new(false),
            in_vain: Cell::new(0),
            looked_out: Cell::new(None),
            one_thread: PhantomData,
        }
    }

    /// The calling thread is the worker's from now on.
    ///
    /// # Safety
    ///
    /// No other thread uses the worker, apart from its forks, before the caller has ended with it.
    /// `core`, in which the worker lies, lives longer than that (Invariant 2).
    pub(crate) unsafe fn begin(&self, core: *const dyn Core) {
        // SAFETY: alive.
        self.common.set(unsafe { &*core }.common());
        self.core.set(Some(core));
        self.common().use_seat(self.index());
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
    pub(crate) fn stay(&self, stays: bool) {
        CURRENT.with(|current| current.set(if stays { self } else { core::ptr::null() }));
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
        self.place.index()
    }

    #[inline]
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    #[inline]
    pub(crate) fn common(&self) -> &Common {
        // SAFETY: a worker that runs has begun; Invariant 2.
        unsafe { &*self.common.get() }
    }

    #[inline]
    pub(crate) fn core(&self) -> &(dyn Core + 'static) {
        let core = self.core.get().expect("a worker that runs has begun");
        // SAFETY: Invariant 2.
        unsafe { &*core }
    }

    /// Whether it is a worker of this pool.
    #[inline]
    pub(crate) fn belongs_to(&self, common: &Common) -> bool {
        core::ptr::eq(self.common.get(), common)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.common().seat(self.index()).counters
    }

    /// Creates a task that is `body`.
    ///
    /// # Safety
    ///
    /// As for [`job::fill`].
    #[inline]
    pub(crate) unsafe fn create<F: FnOnce(&Worker, Fate)>(&self, order: Order, body: F) {
        let mut body = Some(body);
        self.core().create(Some(&self.place), order, &mut |task| {
            if let Some(body) = body.take() {
                // SAFETY: the caller's promise.
                unsafe { job::fill(task, body) };
            }
        });
    }

    /// Runs a task that is ready, if there is one: for a task that has to wait for something that
    /// the pool does not know of.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// assert!(!pool.install_with(|worker| worker.yield_now()), "nothing was ready");
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn yield_now(&self) -> bool {
        self.common().run_mail(self);
        self.run_if_some(self.core().next(self))
    }

    /// Does what [`yield_now`](Self::yield_now) does with a task that the worker need not take from
    /// another worker: one that it created, or that came from outside the pool. A strategy with
    /// central queues has no other tasks.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPool, spawn};
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let ran = pool.install_with(|worker| {
    ///     spawn(|| ());
    ///     [worker.yield_local(), worker.yield_local()]
    /// });
    /// assert_eq!(ran, [true, false]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn yield_local(&self) -> bool {
        self.common().run_mail(self);
        self.run_if_some(self.core().next_here(self))
    }

    fn run_if_some(&self, work: Option<Work>) -> bool {
        let found = work.is_some();
        if let Some(work) = work {
            self.run_work(work);
        }
        found
    }

    /// Runs a task or a fork.
    pub(crate) fn run_work(&self, work: Work) {
        match work {
            Work::Task(task) => self.run(task),
            Work::Fork(stolen) => self.run_stolen(stolen),
        }
    }

    /// Runs a task and gives its block back.
    pub(crate) fn run(&self, task: Task) {
        self.counters().tasks.add(1);
        // SAFETY: out of the strategy, so filled and not run yet.
        let block = unsafe { job::run(task, self, self.common().fate()) };
        self.core().release(&self.place, block);
    }

    /// It has searched in vain, and others work: for how many nanoseconds it dozes. Not the first
    /// time.
    pub(crate) fn doze(&self) -> Option<u64> {
        let in_vain = self.in_vain.get();
        self.in_vain.set(in_vain.saturating_add(1));
        (in_vain > 0).then(|| (DOZE_NS << (in_vain - 1).min(16)).min(MOST_DOZE_NS))
    }

    /// It has found something.
    pub(crate) fn wake(&self) {
        self.in_vain.set(0);
    }

    /// Whether it is time to look for others that have blocked.
    pub(crate) fn may_look_out(&self) -> bool {
        let now = clock::now();
        let often = |last: Ticks| now.nanos_since(last) < BLOCKED_US as u64 * 1_000;
        if self.looked_out.get().is_some_and(often) {
            return false;
        }
        self.looked_out.set(Some(now));
        true
    }

    /// The tasks of its scopes, if it runs no others while it waits.
    pub(crate) fn listed(&self) -> &Listed {
        &self.common().seat(self.index()).listed
    }

    /// Waits until the latch is set, as the pool's [`Wait`] says.
    ///
    /// Ends the process rather than unwind: what the latch is for may still run, on what lies on
    /// this stack.
    pub(crate) fn wait_for(&self, latch: &Latch, awaited: Awaited) {
        let bomb = AbortOnUnwind::armed(UNWOUND);
        self.wait_here_for(latch, awaited);
        bomb.defuse();
    }

    fn wait_here_for(&self, latch: &Latch, awaited: Awaited) {
        match (self.common().wait(), awaited) {
            (Wait::Any, _) if self.helps() => self.help_until(latch),
            // Somebody must run what is ready: what is waited for may be one of those tasks, or
            // wait for one.
            (Wait::Any, Awaited::Anywhere) => self.help_until(latch),
            (Wait::Leapfrog, Awaited::Fork) => {
                let _lent = self.lent_beside_spares();
                self.sleep_until(latch, None, |worker| {
                    let thief = latch.thief();
                    let work = thief.and_then(|thief| worker.core().next_of(worker, thief));
                    let found = work.is_some();
                    if let Some(work) = work {
                        worker.run_work(work);
                    }
                    found
                });
            }
            (Wait::Isolated, Awaited::Fork) => {
                let _lent = self.lent_beside_spares();
                self.sleep_until(latch, None, |_| false);
            }
            (Wait::Any | Wait::Leapfrog | Wait::Isolated, _) => {
                self.sleep_until(latch, awaited.level(), |_| false);
            }
            (Wait::Park, _) => {
                let level = awaited.level();
                while level.is_some_and(|level| self.listed().run_one(level, self)) {}
                if !latch.is_set() {
                    let _lent = Lent::to(self.core());
                    self.sleep_until(latch, level, |_| false);
                }
            }
        }
    }

    /// Lends its seat while it waits for a fork, if the pool has started spare threads. The thief
    /// may be a spare that is one too many by now. When that one blocks, it stands in for itself,
    /// and no worker is left that runs anything.
    fn lent_beside_spares(&self) -> Option<Lent<'_>> {
        self.common().has_started_spares().then(|| Lent::to(self.core()))
    }

    /// Whether it runs any task while it waits here and now.
    pub(crate) fn helps(&self) -> bool {
        self.common().wait() == Wait::Any && self.nested.get() < MOST_NESTED
    }

    /// Waits for a latch that another pool's workers set. Their tasks may come back to this pool:
    /// if this worker runs nothing meanwhile, it lends its seat.
    pub(crate) fn wait_for_another_pool(&self, latch: &Latch) {
        if self.common().wait() == Wait::Any {
            self.wait_for(latch, Awaited::Anywhere);
        } else if !latch.is_set() {
            let bomb = AbortOnUnwind::armed(UNWOUND);
            let lent = Lent::to(self.core());
            self.sleep_until(latch, None, |_| false);
            drop(lent);
            bomb.defuse();
        }
    }

    /// Runs whatever is ready until the latch is set.
    fn help_until(&self, latch: &Latch) {
        let nested = self.nested.get();
        self.nested.set(nested + 1);
        while !latch.is_set() {
            self.common().run_mail(self);
            let work = self.core().next(self);
            match work.or_else(|| self.core().search(self, &|| latch.is_set(), &|| latch.watch())) {
                Some(work) => self.run_work(work),
                None => continue,
            }
        }
        self.nested.set(nested);
    }

    /// Runs only its tasks at `level` of its list, and what `steal` runs, until the latch is set.
    fn sleep_until(&self, latch: &Latch, level: Option<usize>, steal: impl Fn(&Self) -> bool) {
        let (common, listed) = (self.common(), self.listed());
        let called = || common.has_mail(self) || level.is_some_and(|level| listed.has(level));
        while !latch.is_set() {
            common.run_mail(self);
            if !level.is_some_and(|level| listed.run_one(level, self)) && !steal(self) {
                let _away = common.away(self);
                common.spin_until(|| latch.is_set() || called());
                common.sleeping.sleep_apart(self.index(), || latch.watch() && !called());
            }
        }
    }
}

impl Awaited {
    fn level(self) -> Option<usize> {
        match self {
            Self::Scope(level) => Some(level),
            Self::Fork | Self::Anywhere => None,
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index()).finish_non_exhaustive()
    }
}
