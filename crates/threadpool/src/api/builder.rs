//! How a pool is to be.

use std::any::Any;
use std::fmt;
use std::io;
use std::time::Duration;

use machine::topology;
use stanchion_competitive::Mutex;

use crate::api::current_thread;
use crate::api::thread_pool::ThreadPool;
use crate::error::BuildError;
use crate::registry::Registry;
use crate::sleep::MOST_WORKERS;
use crate::strategy::{Plan, Strategy};
use crate::threads::custom::{
    CustomSpawn, DefaultSpawn, ScopedThreads, ThreadBuilder, ThreadSpawn,
};
use crate::threads::table::{Names, ThreadTable};
use crate::workers::config::{Config, IndexHandler, PanicHandler, Wait};
use crate::workers::pool_state::PoolState;

/// Says how a [`ThreadPool`] is to be, then builds it.
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
    threads: usize,
    most: Option<usize>,
    spares: usize,
    threshold: Option<usize>,
    queues: Option<usize>,
    names: Option<Names>,
    stack_size: Option<usize>,
    wait: Wait,
    idle_spin: Duration,
    pinned: bool,
    compensates: bool,
    panic_handler: Option<Box<PanicHandler>>,
    start_handler: Option<Box<IndexHandler>>,
    exit_handler: Option<Box<IndexHandler>>,
    /// The building thread is to have the first seat.
    current: bool,
    handler: H,
}

/// How long an idle worker spins before it sleeps, unless the builder says otherwise: a few times
/// what waking it would cost.
const IDLE_SPIN: Duration = Duration::from_micros(20);

/// Spare threads that a pool may start for tasks that block, unless the builder says otherwise.
const SPARES: usize = 32;

impl ThreadPoolBuilder {
    /// As many threads as the process may use processors, and the defaults below.
    pub fn new() -> Self {
        Self {
            threads: 0,
            most: None,
            spares: SPARES,
            threshold: None,
            queues: None,
            names: None,
            stack_size: None,
            wait: Wait::default(),
            idle_spin: IDLE_SPIN,
            pinned: false,
            compensates: false,
            panic_handler: None,
            start_handler: None,
            exit_handler: None,
            current: false,
            handler: DefaultSpawn,
        }
    }

    /// Builds a pool of threads that borrow: each thread calls `wrapper`, which calls
    /// [`ThreadBuilder::run`]. Calls `with_pool` with the pool, drops it, waits until the threads
    /// have ended, and returns what `with_pool` returns.
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
    /// As [`build`](Self::build); and if `with_pool` or `wrapper` does, after all threads have
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
    /// Has the calling thread be the pool's first worker, with index 0. It counts as one of the
    /// [threads](Self::num_threads).
    ///
    /// The pool uses it only while it is in a function of the pool's: while it waits for a join, a
    /// scope or a broadcast, calls [`yield_now`](crate::yield_now), or
    /// [shuts down](ThreadPool::shutdown) the pool. So a [`broadcast`](ThreadPool::broadcast) of
    /// another thread waits for that. Neither handler is called for it, and it is not
    /// [compensated](Self::compensate_blocking).
    ///
    /// It is the pool's until it ends, also when the pool has ended before: then it runs alone what
    /// it waits for, and never what it [spawns](crate::spawn) without waiting. Futures that wait
    /// when the pool ends are dropped when the thread ends.
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
        self.current = true;
        self
    }

    /// Has `handler` start the threads when the pool is built: for each, it starts a thread that
    /// calls [`ThreadBuilder::run`].
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
        let Self {
            threads,
            most,
            spares,
            threshold,
            queues,
            names,
            stack_size,
            wait,
            idle_spin,
            pinned,
            compensates,
            panic_handler,
            start_handler,
            exit_handler,
            current,
            handler: _,
        } = self;
        ThreadPoolBuilder {
            threads,
            most,
            spares,
            threshold,
            queues,
            names,
            stack_size,
            wait,
            idle_spin,
            pinned,
            compensates,
            panic_handler,
            start_handler,
            exit_handler,
            current,
            handler: CustomSpawn(handler),
        }
    }

    /// How many threads; 0, the default, for as many as the process may use processors.
    pub fn num_threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// To how many threads [`ThreadPool::set_num_threads`] may let it grow. As many as it has at
    /// first, or as there are processors, if this is less.
    pub fn max_threads(mut self, most: usize) -> Self {
        self.most = Some(most);
        self
    }

    /// How many spare threads there may be in place of those that block (see
    /// [`blocking`](crate::blocking)); 32 unless said. None is started before it is needed, and
    /// then it stays, asleep.
    pub fn spare_threads(mut self, spares: usize) -> Self {
        self.spares = spares;
        self
    }

    /// The threads' names, by index; those of [spare threads](Self::spare_threads) follow those of
    /// the most threads that the pool can have.
    ///
    /// If it panics, or gives a name with a zero byte, that thread is not started, as if the system
    /// had refused. It is called on whichever thread starts the new one, and must not start threads
    /// of the same pool.
    pub fn thread_name(mut self, names: impl FnMut(usize) -> String + Send + 'static) -> Self {
        self.names = Some(Box::new(names));
        self
    }

    /// Sets the size of their stacks, in bytes; the system's default unless said. What the system
    /// cannot give makes [`build`](Self::build) fail.
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// What a worker does while it waits for a task that another one runs; [`Wait::Any`] unless
    /// said.
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// How long an idle worker spins before it sleeps; 20 µs unless said. It never spins while more
    /// workers are awake than there are processors.
    pub fn idle_spin(mut self, time: Duration) -> Self {
        self.idle_spin = time;
        self
    }

    /// Whether each thread is kept on one processor, the n-th on the n-th that the process may use;
    /// not unless said. What cannot be pinned runs anywhere.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Whether a worker whose task blocks in the kernel, without a word, gets a [spare
    /// thread](Self::spare_threads) in its place while other tasks are ready; not unless said.
    ///
    /// For tasks that read files, fault pages or call what may wait: a worker that has been off its
    /// processor for 30 µs, waiting, is made good for, as if the task had said
    /// [`blocking`](crate::blocking), and when it is back the spare goes after its task. Other
    /// workers see it between two tasks; when all are in long ones, a thread of the pool's own
    /// does, the *lookout*, which sleeps in a [`Watch`](machine::watch::Watch) until a worker is
    /// switched, and does nothing while no task is ready.
    ///
    /// Where the kernel's switch records are refused
    /// ([`presence::status`](machine::presence::status)) the lookout looks every 2 ms while tasks
    /// are ready, and a worker must have been blocked at two of those looks.
    ///
    /// The second halves of forks count as tasks that are ready. The lookout learns of them within
    /// 2 ms.
    ///
    /// Costs a thread; some 10 ns a task; and while tasks wait for a processor, two wake-ups of the
    /// lookout for each time that a worker blocks, and one in 2 ms for workers that are preempted.
    /// The crate's README has figures, and the command that prints them.
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
    /// // One worker, and nobody says that the first task blocks.
    /// pool.spawn(move || assert_eq!(receive.recv(), Ok(7)));
    /// pool.spawn(move || send.send(7).unwrap());
    /// # if cfg!(all(target_os = "linux", not(miri))) {
    /// pool.shutdown();
    /// # } else { std::mem::forget(pool); }
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn compensate_blocking(mut self, compensates: bool) -> Self {
        self.compensates = compensates;
        self
    }

    /// Sets the most free control blocks, of 128 bytes, that a worker keeps for itself, the paper's
    /// T; the strategy's own choice unless said. With `usize::MAX` it keeps all that it has used.
    pub fn threshold(mut self, blocks: usize) -> Self {
        self.threshold = Some(blocks);
        self
    }

    /// How many ready queues there are, for [`LocalReadyQueue`](crate::strategy::LocalReadyQueue);
    /// one a thread unless said.
    pub fn queues(mut self, queues: usize) -> Self {
        self.queues = Some(queues);
        self
    }

    /// What is done with the payload of a panic that nobody waits for: that of a task from
    /// [`spawn`](ThreadPool::spawn), or of a handler. It is counted, and dropped, unless said.
    pub fn panic_handler(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Self {
        self.panic_handler = Some(Box::new(handler));
        self
    }

    /// Called by each thread before its first task, with its index.
    pub fn start_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.start_handler = Some(Box::new(handler));
        self
    }

    /// Called by each thread after its last task, with its index. If the pool has become as large
    /// again meanwhile, the thread goes on, and the start handler is called anew.
    pub fn exit_handler(mut self, handler: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.exit_handler = Some(Box::new(handler));
        self
    }
}

impl<H: ThreadSpawn> ThreadPoolBuilder<H> {
    /// Starts the threads of a pool that manages ready work by
    /// [`WorkStealing`](crate::strategy::WorkStealing).
    ///
    /// # Errors
    ///
    /// [`BuildError`], with what would mend it. Then no thread is left.
    ///
    /// # Panics
    ///
    /// As [`build_with`](Self::build_with).
    pub fn build(self) -> Result<ThreadPool, BuildError> {
        self.build_with()
    }

    /// Starts the threads of a pool that manages ready work by the strategy `S`.
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
    /// [`BuildError`], with what would mend it. Then no thread is left.
    ///
    /// # Panics
    ///
    /// If a [threshold](Self::threshold) of 0 was asked for, or 0 or too many
    /// [queues](Self::queues).
    pub fn build_with<S: Strategy>(mut self) -> Result<ThreadPool<S>, BuildError> {
        if self.current && current_thread::is_worker() {
            return Err(BuildError::CurrentThreadAlreadyInPool);
        }
        let threads = match self.threads {
            0 => topology::parallelism(),
            threads => threads,
        };
        let foreign = self.handler.handler();
        let (regular, spares) = match foreign {
            Some(_) => (threads, 0),
            None => (threads.max(self.most.unwrap_or_else(topology::parallelism)), self.spares),
        };
        let slots = regular.saturating_add(spares);
        if slots > MOST_WORKERS {
            return Err(BuildError::TooManyThreads { asked: slots, most: MOST_WORKERS });
        }
        let mut table = ThreadTable::new(regular, spares);
        table.stack_size = self.stack_size;
        table.members = usize::from(self.current);
        let config = Config {
            wait: self.wait,
            idle_spin_ns: u64::try_from(self.idle_spin.as_nanos()).unwrap_or(u64::MAX),
            pinned: self.pinned,
            compensate_blocking: self.compensates,
            custom_threads: foreign.is_some(),
            uses_current_thread: self.current,
            thread_names: self.names.map(Mutex::new),
            panic_handler: self.panic_handler,
            start_handler: self.start_handler,
            exit_handler: self.exit_handler,
        };
        let mut plan = Plan::new(slots);
        plan.active = threads;
        plan.threshold = self.threshold;
        // Spare threads have none of their own.
        plan.queues = self.queues.or(Some(regular));
        let registry = Registry::new(PoolState::new(slots, config, table), S::new(&plan));
        // Dropping it closes it, also if this unwinds.
        let pool = ThreadPool::of(registry.clone());
        // SAFETY: no thread has been started, and none is for the first seat: it is a member's.
        let bound = self.current.then(|| unsafe { current_thread::bind(&registry) });
        let (started, hired) = match foreign {
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
    /// A pool of so many threads, 0 for as many as the process may use processors, under
    /// [`WorkStealing`].
    ///
    /// # Errors
    ///
    /// [`BuildError`], if there are too many, or the system refuses.
    pub fn new(threads: usize) -> Result<Self, BuildError> {
        ThreadPoolBuilder::new().num_threads(threads).build()
    }
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> fmt::Debug for ThreadPoolBuilder<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPoolBuilder")
            .field("num_threads", &self.threads)
            .field("wait", &self.wait)
            .field("compensate_blocking", &self.compensates)
            .finish_non_exhaustive()
    }
}
