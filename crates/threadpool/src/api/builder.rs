//! The builder of a pool.

use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

use stanchion_competitive::Mutex;
use stanchion_machine::topology;

use crate::api::current_thread;
use crate::api::thread_pool::ThreadPool;
use crate::error::BuildError;
use crate::registry::Registry;
use crate::sleep::MOST_WORKERS;
use crate::strategy::{Plan, Strategy};
use crate::threads::{
    CustomSpawn, DefaultSpawn, ScopedThreads, ThreadBuilder, ThreadSpawn, ThreadTable,
};
use crate::workers::{Config, PoolState, Wait};

/// A builder of a [`ThreadPool`].
///
/// ```
/// use std::time::Duration;
/// use stanchion_threadpool::{ThreadPoolBuilder, Wait};
///
/// let pool = ThreadPoolBuilder::new()
///     .num_threads(2)
///     .thread_name(|index| format!("worker-{index}"))
///     .idle_spin(Duration::from_micros(5))
///     .wait(Wait::Isolated)
///     .build()?;
/// assert_eq!(pool.current_num_threads(), 2);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[must_use = "a builder builds nothing before `build`"]
pub struct ThreadPoolBuilder<H = DefaultSpawn> {
    options: Options,
    /// Starts the threads.
    handler: H,
}

/// The settings of a builder. The program writes them, one after the other.
struct Options {
    /// Members at first; 0 for as many as the process may use processors.
    threads: usize,
    /// The most members; `None` for the default.
    most: Option<usize>,
    /// The most spare threads.
    spares: usize,
    /// See [`Plan::threshold`].
    threshold: Option<usize>,
    /// See [`Plan::queues`].
    queues: Option<usize>,
    /// The size of the threads' stacks; `None` for the system's default.
    stack_size: Option<usize>,
    /// Handed to the pool as it is.
    config: Config,
}

/// Spare threads that a pool may start for tasks that block, by default.
const SPARES: usize = 32;

impl ThreadPoolBuilder {
    /// Creates a builder of a pool with as many threads as the process may use processors.
    pub fn new() -> Self {
        let config = Config {
            wait: Wait::default(),
            idle_spin_ns: None,
            pinned: false,
            compensate_blocking: false,
            custom_threads: false,
            uses_current_thread: false,
            thread_names: None,
            panic_handler: None,
            start_handler: None,
            exit_handler: None,
        };
        let options = Options {
            threads: 0,
            most: None,
            spares: SPARES,
            threshold: None,
            queues: None,
            stack_size: None,
            config,
        };
        Self { options, handler: DefaultSpawn }
    }

    /// Builds a pool of threads that borrow. Each thread calls `wrapper`, which calls
    /// [`ThreadBuilder::run`]. Calls `with_pool` with the pool, drops the pool, waits until the
    /// threads have ended, and returns what `with_pool` returns.
    ///
    /// As with [`spawn_handler`](Self::spawn_handler), the pool has no spare threads and does not
    /// grow.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use stanchion_threadpool::ThreadPoolBuilder;
    ///
    /// thread_local! {
    ///     static NUMBER: Cell<u32> = const { Cell::new(0) };
    /// }
    /// let number = String::from("42");
    /// let doubled = ThreadPoolBuilder::new().num_threads(2).build_scoped(
    ///     |thread| {
    ///         NUMBER.set(number.parse().unwrap()); // borrowed
    ///         thread.run();
    ///     },
    ///     |pool| pool.install(|| 2 * NUMBER.get()),
    /// )?;
    /// assert_eq!(doubled, 84);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    ///
    /// # Panics
    ///
    /// As [`build`](Self::build). Also if `with_pool` or `wrapper` does, after all threads have
    /// ended.
    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, BuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        let mut threads = ScopedThreads::new();
        let built = {
            // SAFETY: `threads` is dropped before `wrapper`, which is a parameter, and before
            // anything that `wrapper` borrows.
            let start = |thread| unsafe { threads.start(thread, &wrapper) };
            self.spawn_handler(start).build()
        };
        let result = built.map(|pool| with_pool(&pool));
        match threads.join() {
            Ok(()) => result,
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }
}

impl<H> ThreadPoolBuilder<H> {
    /// Makes the calling thread the pool's first worker, with index 0. It counts as one of the
    /// [threads](Self::num_threads).
    ///
    /// The pool uses it only inside of the pool's functions: while it waits for a join, a scope or
    /// a broadcast, calls [`yield_now`](crate::yield_now), or [shuts down](ThreadPool::shutdown)
    /// the pool. So a [`broadcast`](ThreadPool::broadcast) of another thread waits for that.
    /// Neither handler is called for it, and it is not [compensated](Self::compensate_blocking).
    ///
    /// It is the pool's worker until it ends, even if the pool has ended before. Then it runs alone
    /// what it waits for, and never what it [spawns](crate::spawn) without waiting. Futures that
    /// wait when the pool ends are dropped when the thread ends.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPoolBuilder, current_thread_index, join};
    ///
    /// let pool = ThreadPoolBuilder::new().num_threads(2).use_current_thread().build()?;
    /// assert_eq!(current_thread_index(), Some(0));
    /// assert_eq!(join(|| current_thread_index(), || 2), (Some(0), 2));
    /// pool.shutdown();
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn use_current_thread(mut self) -> Self {
        self.options.config.uses_current_thread = true;
        self
    }

    /// Has `handler` start the threads when the pool is built. For each of them it starts a thread
    /// that calls [`ThreadBuilder::run`].
    ///
    /// The pool cannot start threads later: it has no [spare threads](Self::spare_threads) and does
    /// not grow. [`shutdown`](ThreadPool::shutdown) waits until each `run` has returned. If the
    /// handler returns an error, building fails with it.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPoolBuilder;
    ///
    /// let mut threads = Vec::new();
    /// let pool = ThreadPoolBuilder::new()
    ///     .num_threads(2)
    ///     .spawn_handler(|thread| {
    ///         let builder = std::thread::Builder::new().name(format!("mine-{}", thread.index()));
    ///         threads.push(builder.spawn(|| thread.run())?);
    ///         Ok(())
    ///     })
    ///     .build()?;
    /// assert_eq!(pool.join(|| 1, || 2), (1, 2));
    /// pool.shutdown();
    /// threads.into_iter().for_each(|thread| thread.join().unwrap());
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn_handler<F>(self, handler: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder { options: self.options, handler: CustomSpawn(handler) }
    }

    /// Sets the number of threads. 0, the default, is as many as the process may use processors.
    pub fn num_threads(mut self, threads: usize) -> Self {
        self.options.threads = threads;
        self
    }

    /// Sets to how many threads [`ThreadPool::set_num_threads`] may let the pool grow. The default
    /// is the number of processors, or the number of threads at first if that is larger.
    pub fn max_threads(mut self, most: usize) -> Self {
        self.options.most = Some(most);
        self
    }

    /// Sets how many spare threads there may be in place of threads that block (see
    /// [`blocking`](crate::blocking)). The default is 32. A spare is started when it is needed, and
    /// then it stays, asleep.
    pub fn spare_threads(mut self, spares: usize) -> Self {
        self.options.spares = spares;
        self
    }

    /// Sets the function that names threads, by index. [Spare threads](Self::spare_threads) have
    /// the indices after those of the most threads that the pool can have.
    ///
    /// If it panics, or gives a name with a zero byte, that thread is not started, as if the system
    /// had refused. It is called on the thread that starts the new one, and must not start threads
    /// of the same pool.
    pub fn thread_name(mut self, names: impl FnMut(usize) -> String + Send + 'static) -> Self {
        self.options.config.thread_names = Some(Mutex::new(Box::new(names)));
        self
    }

    /// Sets the size of the threads' stacks, in bytes. The default is the system's. A size that the
    /// system cannot give makes [`build`](Self::build) fail.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.options.stack_size = Some(bytes);
        self
    }

    /// Sets what a worker does while it waits for a task that another worker runs. The default is
    /// [`Wait::Any`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.config.wait = wait;
        self
    }

    /// Sets how long an idle worker spins before it sleeps. The default is the [cost of
    /// blocking](stanchion_competitive::cost), as it has been of late.
    ///
    /// If the pool may have a worker for each processor, the worker yields between two looks. The
    /// time for which other threads then have its processor does not count. A yield of more than
    /// 350 µs ends the spinning, and the worker spins less often for a while.
    pub fn idle_spin(mut self, time: Duration) -> Self {
        self.options.config.idle_spin_ns = Some(nanos(time));
        self
    }

    /// Sets whether each thread is kept on one processor: the n-th on the n-th that the process may
    /// use. The default is false. A thread that cannot be pinned runs anywhere.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.options.config.pinned = pinned;
        self
    }

    /// Sets whether a worker gets a [spare thread](Self::spare_threads) in its place when its task
    /// blocks in the kernel without saying so, while other tasks are ready. The default is false.
    ///
    /// It is for tasks that read files, fault pages or call functions that may wait. A worker that
    /// has been off its processor for 30 µs, waiting, is compensated as if the task had said
    /// [`blocking`](crate::blocking). When it is back, the spare stops after its task. Other
    /// workers see that it is blocked between two tasks. When all are in long tasks, the *monitor*
    /// sees it, a thread of the pool's own. It sleeps in a
    /// [`Watch`](stanchion_machine::presence::watch::Watch) until a worker is switched, and does
    /// nothing while no task is ready.
    ///
    /// Where the kernel's switch records are refused
    /// ([`presence::status`](stanchion_machine::presence::status)), the monitor looks every 2 ms
    /// while tasks are ready. A worker must have been blocked at two of those looks.
    ///
    /// The second halves of forks count as ready tasks. The monitor learns of them within 2 ms.
    ///
    /// It costs a thread, and some 10 ns for each task. While tasks wait for a processor, it also
    /// costs two wake-ups of the monitor for each block of a worker, and one in 2 ms for workers
    /// that are preempted. The crate's README has figures, and the command that prints them.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use stanchion_threadpool::ThreadPoolBuilder;
    ///
    /// let pool = ThreadPoolBuilder::new()
    ///     .num_threads(1)
    ///     .compensate_blocking(true)
    ///     .build()?;
    /// let (send, receive) = mpsc::channel();
    /// // One worker, and the first task does not say that it blocks.
    /// pool.spawn(move || assert_eq!(receive.recv(), Ok(7)));
    /// pool.spawn(move || send.send(7).unwrap());
    /// # if cfg!(all(target_os = "linux", not(miri))) {
    /// pool.shutdown();
    /// # } else { std::mem::forget(pool); }
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn compensate_blocking(mut self, compensates: bool) -> Self {
        self.options.config.compensate_blocking = compensates;
        self
    }

    /// Sets the most free control blocks, of 128 bytes, that a worker keeps for itself: the paper's
    /// T. The default is the strategy's own choice. With `usize::MAX` it keeps all that it has
    /// used.
    pub fn threshold(mut self, blocks: usize) -> Self {
        self.options.threshold = Some(blocks);
        self
    }

    /// Sets how many ready queues there are, for
    /// [`LocalReadyQueue`](crate::strategy::LocalReadyQueue). The default is one for each thread.
    pub fn queues(mut self, queues: usize) -> Self {
        self.options.queues = Some(queues);
        self
    }

    /// Sets the function that gets the payload of a panic for which no thread waits: that of a task
    /// from [`spawn`](ThreadPool::spawn), or of a handler. By default it is counted and dropped.
    pub fn panic_handler(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.options.config.panic_handler = Some(Box::new(handler));
        self
    }

    /// Sets a function that each thread calls before its first task, with its index.
    pub fn start_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.options.config.start_handler = Some(Box::new(handler));
        self
    }

    /// Sets a function that each thread calls after its last task, with its index. If the pool has
    /// become as large again meanwhile, the thread goes on, and calls the start handler again.
    pub fn exit_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.options.config.exit_handler = Some(Box::new(handler));
        self
    }
}

impl<H: ThreadSpawn> ThreadPoolBuilder<H> {
    /// Starts the threads of a pool with the strategy
    /// [`WorkStealing`](crate::strategy::WorkStealing).
    ///
    /// # Errors
    ///
    /// [`BuildError`], which names a remedy. No thread is left then.
    ///
    /// # Panics
    ///
    /// As [`build_with`](Self::build_with).
    pub fn build(self) -> Result<ThreadPool, BuildError> {
        self.build_with()
    }

    /// Starts the threads of a pool with the strategy `S`.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPoolBuilder, strategy::LocalReadyQueue};
    ///
    /// let pool = ThreadPoolBuilder::new().num_threads(2).build_with::<LocalReadyQueue>()?;
    /// assert_eq!(pool.join(|| 1, || 2), (1, 2));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`], which names a remedy. No thread is left then.
    ///
    /// # Panics
    ///
    /// If a [threshold](Self::threshold) of 0 was asked for, or 0 or too many
    /// [queues](Self::queues).
    pub fn build_with<S: Strategy>(mut self) -> Result<ThreadPool<S>, BuildError> {
        let Options { threads, most, spares, threshold, queues, stack_size, mut config } =
            self.options;
        let uses_current_thread = config.uses_current_thread;
        if uses_current_thread && current_thread::is_worker() {
            return Err(BuildError::CurrentThreadAlreadyInPool);
        }
        let threads = match threads {
            0 => topology::parallelism(),
            threads => threads,
        };
        let start = self.handler.handler();
        config.custom_threads = start.is_some();
        let (regular, spares) = match start {
            Some(_) => (threads, 0),
            None => (threads.max(most.unwrap_or_else(topology::parallelism)), spares),
        };
        let slots = regular.saturating_add(spares);
        if slots > MOST_WORKERS {
            return Err(BuildError::TooManyThreads { asked: slots, most: MOST_WORKERS });
        }
        let mut table = ThreadTable::new(regular, spares);
        table.stack_size = stack_size;
        table.members = usize::from(uses_current_thread);
        let mut plan = Plan::new(slots);
        plan.active = threads;
        plan.threshold = threshold;
        // Spare threads have no queue of their own.
        plan.queues = queues.or(Some(regular));
        let registry = Registry::new(PoolState::new(slots, config, table), S::new(&plan));
        // Dropping it closes the pool, even if this unwinds.
        let pool = ThreadPool::of(registry.clone());
        // SAFETY: no thread has been started, and none is for the first slot: it is a member's.
        let bound = uses_current_thread.then(|| unsafe { current_thread::bind(&registry) });
        let (started, hired) = match start {
            Some(start) => registry.spawn_custom_threads(threads, start),
            None => registry.resize(threads),
        };
        match hired.and_then(|()| registry.start_monitor()) {
            Ok(()) => {
                if let Some(bound) = bound {
                    bound.stay();
                }
                Ok(pool)
            }
            Err(source) => {
                drop(bound);
                pool.shutdown();
                Err(BuildError::Spawn { started, asked: threads, source })
            }
        }
    }
}

impl ThreadPool {
    /// Builds a pool of so many threads under [`WorkStealing`](crate::strategy::WorkStealing). With
    /// 0 it has as many threads as the process may use processors.
    ///
    /// # Errors
    ///
    /// [`BuildError`], if there are too many, or the system refuses.
    pub fn new(threads: usize) -> Result<Self, BuildError> {
        ThreadPoolBuilder::new().num_threads(threads).build()
    }
}

/// Returns a time in nanoseconds, or the longest that a word holds.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> fmt::Debug for ThreadPoolBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.options.threads)
            .field("wait", &self.options.config.wait)
            .field("compensate_blocking", &self.options.config.compensate_blocking)
            .finish_non_exhaustive()
    }
}
