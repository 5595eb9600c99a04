//! The pool, as its users see it.

use std::fmt;
use std::sync::Arc;

use crate::error::ResizeError;
use crate::future::JoinHandle;
use crate::install;
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::scope::{Scope, ScopeFifo};
use crate::strategy::{Strategy, WorkStealing};
use crate::workers::{Core, Fate, QueuePosition, Worker, job};

/// A pool of threads that run tasks. The strategy `S` manages its ready work.
///
/// The verbs are rayon's. Dropping the pool closes it: its threads end when they find nothing more
/// to do, and are not waited for. [`shutdown`](Self::shutdown) waits.
///
/// ```
/// use stanchion_threadpool::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// let (a, b) = pool.join(|| 6 * 7, || "b");
/// assert_eq!((a, b), (42, "b"));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
pub struct ThreadPool<S: Strategy = WorkStealing> {
    registry: Arc<Registry<S>>,
}

impl<S: Strategy> ThreadPool<S> {
    pub(crate) fn of(registry: Arc<Registry<S>>) -> Self {
        Self { registry }
    }

    fn core(&self) -> &(dyn Core + 'static) {
        &*self.registry
    }

    /// Runs `body` on a worker of this pool and returns what it returns. If the calling thread is
    /// such a worker, `body` runs on it. Inside, the free functions of this crate use this pool.
    ///
    /// A worker of another pool that calls this runs tasks of its own pool meanwhile. If its
    /// [`Wait`](crate::Wait) forbids that, it leases a spare thread, because this pool's tasks may
    /// come back to the first pool. Two pools that install into each other deeper than there are
    /// spares (32 by default) deadlock.
    ///
    /// # Panics
    ///
    /// If `body` does, with its payload.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPool, current_thread_index};
    ///
    /// let pool = ThreadPool::new(2)?;
    /// assert!(pool.install(current_thread_index).is_some());
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn install<R: Send>(&self, body: impl FnOnce() -> R + Send) -> R {
        self.install_with(|_| body())
    }

    /// Does what [`install`](Self::install) does, and hands the worker to `body`: for programs that
    /// hand it down to their forks, which are cheaper then.
    ///
    /// # Panics
    ///
    /// If `body` does.
    pub fn install_with<R: Send>(&self, body: impl FnOnce(&Worker) -> R + Send) -> R {
        Worker::with_current(|current| match current {
            Some(worker) if worker.belongs_to(self.registry.pool()) => body(worker),
            current => install::install_on(self.core(), current, body),
        })
    }

    /// Runs `a` and `b`, perhaps at the same time, on workers of this pool, and returns what they
    /// return.
    ///
    /// # Panics
    ///
    /// If `a` or `b` does, after both have ended. Both run in any case.
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install_with(|worker| worker.join(|_| a(), |_| b()))
    }

    /// Runs `body` on a worker with a scope, in which it can create tasks that borrow values from
    /// outside of the scope. Returns when all have ended.
    ///
    /// # Panics
    ///
    /// If `body` or a task does, after all have ended: with the payload of `body`, or of the first
    /// task.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let mut squares = [0; 8];
    /// pool.scope(|s| {
    ///     for (n, square) in squares.iter_mut().enumerate() {
    ///         s.spawn(move |_| *square = n * n);
    ///     }
    /// });
    /// assert_eq!(squares, [0, 1, 4, 9, 16, 25, 36, 49]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn scope<'scope, R: Send>(&self, body: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
        self.install_with(|worker| crate::scope::on(worker, body))
    }

    /// Does what [`scope`](Self::scope) does, but runs `body` on the calling thread, which need not
    /// be a worker. Its tasks run on workers.
    ///
    /// # Panics
    ///
    /// As [`scope`](Self::scope).
    ///
    /// ```
    /// use std::cell::Cell;
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let here = Cell::new(0); // not for other threads
    /// let mut there = 0;
    /// pool.in_place_scope(|s| {
    ///     s.spawn(|_| there = 1);
    ///     here.set(2);
    /// });
    /// assert_eq!((here.get(), there), (2, 1));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn in_place_scope<'scope, R>(&self, body: impl FnOnce(&Scope<'scope>) -> R) -> R {
        Worker::with_current(|current| match current {
            Some(worker) if worker.belongs_to(self.registry.pool()) => {
                crate::scope::on(worker, body)
            }
            current => crate::scope::from_outside(self.core(), current, body),
        })
    }

    /// Runs `body` as [`scope`](Self::scope) does: every scope creates tasks in both orders.
    ///
    /// # Panics
    ///
    /// As [`scope`](Self::scope).
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let order = Mutex::new(Vec::new());
    /// let push = &|n| order.lock().unwrap().push(n);
    /// pool.scope_fifo(|s| (0..5).for_each(|n| s.spawn_fifo(move |_| push(n))));
    /// assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn scope_fifo<'scope, R: Send>(
        &self,
        body: impl FnOnce(&ScopeFifo<'scope>) -> R + Send,
    ) -> R {
        self.scope(body)
    }

    /// Runs `body` as [`in_place_scope`](Self::in_place_scope) does: every scope creates tasks in
    /// both orders.
    ///
    /// # Panics
    ///
    /// As [`scope`](Self::scope).
    pub fn in_place_scope_fifo<'scope, R>(&self, body: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
        self.in_place_scope(body)
    }

    /// Creates a task that runs some time. No thread waits for it. If it panics, the
    /// [panic handler](crate::ThreadPoolBuilder::panic_handler) gets the payload.
    ///
    /// The strategy decides in which order tasks run. Under [`WorkStealing`] a worker runs its own
    /// tasks newest first, and other workers take its oldest. Once in 64 tasks each, a task from
    /// outside and a [future](Self::spawn_future) or stolen task come first, so those never wait
    /// for ever. The oldest task of a worker waits as long as newer ones are created, unless
    /// another worker is idle. For tasks of which none may wait for ever there is
    /// [`spawn_fifo`](Self::spawn_fifo).
    ///
    /// On a worker of this pool it takes no lock, from outside it takes one. `cargo contest
    /// pools` prints the times. A task with captures of more than 13 words is boxed.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let (send, receive) = mpsc::channel();
    /// pool.spawn(move || send.send(7).unwrap());
    /// assert_eq!(receive.recv(), Ok(7));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn<F: FnOnce() + Send + 'static>(&self, body: F) {
        Worker::with_current(|current| match current {
            Some(worker) if worker.belongs_to(self.registry.pool()) => {
                crate::spawn::spawn_on(worker, body)
            }
            _ => self.spawn_outside(crate::spawn::detached(body)),
        });
    }

    /// Creates a task as [`spawn`](Self::spawn) does. It begins after all tasks that the same
    /// worker has created by `spawn_fifo` before, on whichever worker it runs.
    ///
    /// Threads outside of the pool share one such order. It costs an allocation and two locks more
    /// than [`spawn`](Self::spawn).
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// let (send, receive) = mpsc::channel();
    /// for n in 0..100 {
    ///     let send = send.clone();
    ///     pool.spawn_fifo(move || send.send(n).unwrap());
    /// }
    /// drop(send);
    /// assert!(receive.iter().eq(0..100));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn_fifo<F: FnOnce() + Send + 'static>(&self, body: F) {
        Worker::with_current(|current| match current {
            Some(worker) if worker.belongs_to(self.registry.pool()) => {
                crate::spawn::spawn_fifo_on(worker, body);
            }
            _ => self.spawn_outside(crate::spawn::ticket(self.registry.pool(), None, body)),
        });
    }

    fn spawn_outside(&self, run: impl FnOnce(&Worker, Fate) + Send + 'static) {
        let mut run = Some(run);
        self.core().create(None, QueuePosition::Usual, &mut |task| {
            if let Some(run) = run.take() {
                // SAFETY: it borrows nothing, and is `Send`.
                unsafe { job::fill(task, run) };
            }
        });
    }

    /// Polls `future` on workers of this pool until it is ready. Returns a handle, which is a
    /// future itself, for any executor. A thread can [wait](JoinHandle::join) for it. If the handle
    /// is dropped, the future goes on and its output is dropped.
    ///
    /// Any thread may use its wakers at any time. The future goes behind all that is ready on the
    /// worker that creates or wakes it. A future that wakes itself goes behind all that came from
    /// outside, so that it leaves room for all others. Once in 64 tasks the oldest of these comes
    /// before newer tasks, so no future waits for ever. It costs what [`spawn`](Self::spawn) does,
    /// one allocation, and another task for each wake-up.
    ///
    /// When the pool is closed, its threads finish all that is ready, futures too. The last thread
    /// drops the futures that wait. From then on a future that is woken is dropped. Their handles
    /// return [`Cancelled`](crate::Cancelled).
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// let six = pool.spawn_future(async { 6 });
    /// let product = pool.spawn_future(async { six.await.map(|six| six * 7) });
    /// assert_eq!(product.join(), Ok(Ok(42)));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn_future<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        crate::future::spawn(self.registry.clone(), future)
    }

    /// Runs `body` once on each thread of the pool, spares excepted. Returns what the calls return,
    /// by index.
    ///
    /// A thread makes the call between two tasks, before those that are ready, or while it waits.
    /// Tasks without end do not delay it. Calls of earlier broadcasts come first.
    ///
    /// A thread that has ended gets no call and has no result. That is the thread that built the
    /// pool with [`use_current_thread`](crate::ThreadPoolBuilder::use_current_thread), or one that
    /// the program never started, as it dropped its [`ThreadBuilder`](crate::ThreadBuilder).
    ///
    /// # Panics
    ///
    /// If one of them does, after all have ended.
    ///
    /// ```
    /// use stanchion_threadpool::{ThreadPool, Worker};
    ///
    /// let pool = ThreadPool::new(3)?;
    /// assert_eq!(pool.broadcast(Worker::index), [0, 1, 2]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn broadcast<R: Send>(&self, body: impl Fn(&Worker) -> R + Sync) -> Vec<R> {
        crate::broadcast::broadcast(self.core(), &body)
    }

    /// Has `body` run once on each thread of the pool, spares excepted, and does not wait.
    ///
    /// The calls are made in the order of [`broadcast`](Self::broadcast). If a call panics, the
    /// [panic handler](crate::ThreadPoolBuilder::panic_handler) gets the payload, and the other
    /// calls are made. Costs two allocations, and a lock for each thread.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(3)?;
    /// let (send, receive) = mpsc::channel();
    /// pool.spawn_broadcast(move |worker| send.send(worker.index()).unwrap());
    /// let mut indices: Vec<usize> = receive.iter().collect();
    /// indices.sort_unstable();
    /// assert_eq!(indices, [0, 1, 2]);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn_broadcast(&self, body: impl Fn(&Worker) + Send + Sync + 'static) {
        crate::broadcast::spawn(self.registry.pool(), body);
    }

    /// Calls [`yield_now`](crate::yield_now) if the calling thread is a worker of this pool;
    /// returns `None` if it is not.
    pub fn yield_now(&self) -> Option<bool> {
        self.with_own(Worker::yield_now)
    }

    /// Calls [`yield_local`](crate::yield_local) if the calling thread is a worker of this pool;
    /// returns `None` if it is not.
    pub fn yield_local(&self) -> Option<bool> {
        self.with_own(Worker::yield_local)
    }

    /// Calls `body` with the calling thread's worker, if it is one of this pool's.
    fn with_own<R>(&self, body: impl FnOnce(&Worker) -> R) -> Option<R> {
        Worker::with_current(|current| {
            current.filter(|worker| worker.belongs_to(self.registry.pool())).map(body)
        })
    }

    /// Returns how many threads the pool has, spares excepted.
    #[must_use]
    pub fn current_num_threads(&self) -> usize {
        self.registry.pool().num_threads()
    }

    /// Returns the index of the calling thread, if it is a worker of this pool.
    #[must_use]
    pub fn current_thread_index(&self) -> Option<usize> {
        self.with_own(Worker::index)
    }

    /// Lets the pool grow or shrink to so many threads. A thread that is to go ends its task first.
    /// Its ready tasks go to the others.
    ///
    /// # Errors
    ///
    /// [`ResizeError`], if there would be none, or more than it was built for, or the system
    /// refuses.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPoolBuilder;
    ///
    /// let pool = ThreadPoolBuilder::new().num_threads(1).max_threads(4).build()?;
    /// pool.set_num_threads(4)?;
    /// assert_eq!(pool.broadcast(|_| ()).len(), 4);
    /// pool.set_num_threads(2)?;
    /// let refused = pool.set_num_threads(5).unwrap_err().to_string();
    /// assert!(refused.starts_with("the pool was asked to grow to 5 threads,"), "{refused}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_num_threads(&self, threads: usize) -> Result<(), ResizeError> {
        let most = self.registry.pool().threads.lock().first_spare;
        if threads == 0 {
            return Err(ResizeError::NoThreads);
        }
        if threads > most {
            return Err(ResizeError::TooManyThreads { asked: threads, most });
        }
        match self.registry.resize(threads) {
            (_, Ok(())) => Ok(()),
            (started, Err(source)) => Err(ResizeError::Spawn { started, asked: threads, source }),
        }
    }

    /// Returns what the pool has done, and its state.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// pool.scope(|s| (0..10).for_each(|_| s.spawn(|_| ())));
    /// assert!(pool.metrics().total().tasks >= 10);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.core().metrics()
    }

    /// Runs all tasks to the end, and those that they create, and waits until the threads have
    /// ended. A task that never ends is waited for for ever. A future that waits when there is
    /// nothing else to do is dropped.
    ///
    /// If a worker of this pool calls it, the call waits for the other threads, and runs nothing
    /// meanwhile. So no other thread may wait for the calling task, nor for a task below it on the
    /// same stack. Under [`Wait::Any`](crate::Wait) the task below may be any task that waits, on
    /// top of which the worker has begun this one. Then both wait for ever. There, drop the pool
    /// instead, or hand it to a thread of its own.
    pub fn shutdown(self) {
        Worker::with_current(|current| {
            let pool = self.registry.pool();
            let own = current
                .filter(|worker| worker.belongs_to(pool) && pool.is_current_thread(worker.index()));
            match own {
                Some(worker) => self.registry.run_until_done(worker),
                None => self.registry.terminate(),
            }
        });
        self.registry.join_all();
    }

    /// Drops the tasks from [`spawn`](Self::spawn) that have not begun, and all futures that are
    /// not being polled. Runs the others to the end, and waits until the threads have ended. Tasks
    /// of a scope or a join run, because a thread waits for them.
    ///
    /// ```
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(1)?;
    /// for _ in 0..1_000 {
    ///     pool.spawn(|| std::thread::sleep(std::time::Duration::from_millis(5)));
    /// }
    /// pool.shutdown_now(); // not five seconds
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn shutdown_now(self) {
        self.registry.pool().discard();
        self.registry.terminate();
        self.registry.pool().abort_futures();
        self.shutdown();
    }
}

impl<S: Strategy> Drop for ThreadPool<S> {
    fn drop(&mut self) {
        self.registry.terminate();
    }
}

impl<S: Strategy> fmt::Debug for ThreadPool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPool")
            .field("strategy", &S::NAME)
            .field("sleeping", &self.registry.pool().sleep)
            .field("ready", &self.registry.strategy().len())
            .field("monitor", &self.registry.pool().monitor)
            .finish_non_exhaustive()
    }
}
