//! The pool of the process, and the free functions, which find the pool of the calling thread.
//!
//! Why the pool is not made at its first use: a library that forks would start threads that the
//! program did not ask for, and their number could not be chosen any more.

use core::marker::PhantomData;

use stanchion_competitive::OnceLock;

use crate::api::builder::ThreadPoolBuilder;
use crate::api::thread_pool::ThreadPool;
use crate::blocking::blocking;
use crate::error::BuildError;
use crate::future::JoinHandle;
use crate::scope::{Scope, ScopeFifo};
use crate::threads::ThreadSpawn;
use crate::workers::Worker;

stanchion_machine::global! {
    /// The pool of threads that are in none. Written once, by `build_global`.
    static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
}

impl<H: ThreadSpawn> ThreadPoolBuilder<H> {
    /// Builds the pool that [`spawn`](crate::spawn), [`join`](crate::join) and
    /// [`scope`](crate::scope) use on threads that are no workers. It lives as long as the process.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build); also if there is a global pool already.
    ///
    /// ```
    /// stanchion_threadpool::ThreadPoolBuilder::new().num_threads(2).build_global()?;
    /// assert_eq!(stanchion_threadpool::join(|| 1, || 2), (1, 2));
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn build_global(self) -> Result<(), BuildError> {
        if GLOBAL.get().is_some() {
            return Err(BuildError::GlobalPoolAlreadyInitialized);
        }
        let pool = self.build()?;
        GLOBAL.set(pool).map_err(|pool| {
            pool.shutdown();
            BuildError::GlobalPoolAlreadyInitialized
        })
    }
}

#[track_caller]
fn global() -> &'static ThreadPool {
    match GLOBAL.get() {
        // SAFETY: none needed: a `global!` lives as long as the process on the real machine.
        Some(pool) => pool,
        None => panic!(
            "this thread is no worker of a thread pool: call it inside `ThreadPool::install`, or build a pool for the whole process with `ThreadPoolBuilder::build_global`"
        ),
    }
}

/// Calls [`ThreadPool::join`] on the pool of the calling worker.
///
/// # Panics
///
/// If `a` or `b` does. Also if the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, join};
///
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() < 1_000 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = join(|| sum(left), || sum(right));
///     left + right
/// }
/// let numbers: Vec<u64> = (0..100_000).collect();
/// let pool = ThreadPool::new(2)?;
/// assert_eq!(pool.install(|| sum(&numbers)), 4_999_950_000);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[inline]
#[track_caller]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Worker::with_current(|worker| match worker {
        Some(worker) => worker.join(|_| a(), |_| b()),
        None => global().join(a, b),
    })
}

/// The context of a closure of [`join_context`]: whether it runs on the calling thread.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    /// Makes it neither `Send` nor `Sync`, as it is about this thread.
    one_thread: PhantomData<*const ()>,
}

impl FnContext {
    fn new(migrated: bool) -> Self {
        Self { migrated, one_thread: PhantomData }
    }

    /// Returns whether this closure runs on another thread than the one that called
    /// [`join_context`].
    #[inline]
    #[must_use]
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// Does what [`join`] does, and tells each closure whether it runs on another thread than the
/// caller's.
///
/// If the caller is no worker, both do.
///
/// # Panics
///
/// As [`join`].
///
/// ```
/// use stanchion_threadpool::{ThreadPool, join_context};
///
/// let pool = ThreadPool::new(1)?;
/// let migrated = pool.install(|| join_context(|a| a.migrated(), |b| b.migrated()));
/// assert_eq!(migrated, (false, false));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[inline]
#[track_caller]
pub fn join_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    Worker::with_current(|worker| match worker {
        Some(worker) => {
            let caller = worker.index();
            let b = |worker: &Worker| b(FnContext::new(worker.index() != caller));
            worker.join(|_| a(FnContext::new(false)), b)
        }
        None => global().join(|| a(FnContext::new(true)), || b(FnContext::new(true))),
    })
}

/// Calls [`ThreadPool::scope`] on the pool of the calling worker.
///
/// # Panics
///
/// As [`ThreadPool::scope`]. Also if the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, scope};
///
/// let pool = ThreadPool::new(2)?;
/// let mut halves = [0; 2];
/// pool.install(|| {
///     let [left, right] = &mut halves;
///     scope(|s| {
///         s.spawn(|_| *left = 1);
///         s.spawn(|_| *right = 2);
///     });
/// });
/// assert_eq!(halves, [1, 2]);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn scope<'scope, R: Send>(body: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::scope::on(worker, body),
        None => global().scope(body),
    })
}

/// Calls [`ThreadPool::scope_fifo`] on the pool of the calling worker.
///
/// # Panics
///
/// As [`scope`].
///
/// ```
/// use std::sync::Mutex;
/// use stanchion_threadpool::{ThreadPool, scope_fifo};
///
/// let pool = ThreadPool::new(1)?;
/// let order = Mutex::new(Vec::new());
/// let push = |n| order.lock().unwrap().push(n);
/// pool.install(|| {
///     scope_fifo(|s| {
///         let push = &push;
///         (0..3).for_each(|n| s.spawn_fifo(move |_| push(n)));
///     });
/// });
/// assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn scope_fifo<'scope, R: Send>(body: impl FnOnce(&ScopeFifo<'scope>) -> R + Send) -> R {
    scope(body)
}

/// Calls [`ThreadPool::in_place_scope`] on the pool of the calling worker.
///
/// On a worker this is [`scope`], and `body` need not be `Send`.
///
/// # Panics
///
/// As [`scope`].
///
/// ```
/// use stanchion_threadpool::{ThreadPool, in_place_scope};
///
/// let pool = ThreadPool::new(2)?;
/// let sum = pool.install(|| {
///     let mut there = 0;
///     let here = in_place_scope(|s| {
///         s.spawn(|_| there = 1);
///         *std::rc::Rc::new(2) // not for other threads
///     });
///     here + there
/// });
/// assert_eq!(sum, 3);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn in_place_scope<'scope, R>(body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::scope::on(worker, body),
        None => global().in_place_scope(body),
    })
}

/// Calls [`ThreadPool::in_place_scope_fifo`] on the pool of the calling worker.
///
/// # Panics
///
/// As [`scope`].
#[track_caller]
pub fn in_place_scope_fifo<'scope, R>(body: impl FnOnce(&ScopeFifo<'scope>) -> R) -> R {
    in_place_scope(body)
}

/// Calls [`ThreadPool::spawn`] on the pool of the calling worker.
///
/// # Panics
///
/// If the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, spawn};
///
/// let pool = ThreadPool::new(2)?;
/// pool.spawn(|| spawn(|| assert_eq!(1 + 1, 2)));
/// pool.shutdown();
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[inline]
#[track_caller]
pub fn spawn<F: FnOnce() + Send + 'static>(body: F) {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::spawn::spawn_on(worker, body),
        None => global().spawn(body),
    });
}

/// Calls [`ThreadPool::spawn_fifo`] on the pool of the calling worker.
///
/// # Panics
///
/// If the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, spawn_fifo};
///
/// let pool = ThreadPool::new(2)?;
/// pool.spawn(|| (0..3).for_each(|n| spawn_fifo(move || assert!(n < 3))));
/// pool.shutdown();
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn spawn_fifo<F: FnOnce() + Send + 'static>(body: F) {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::spawn::spawn_fifo_on(worker, body),
        None => global().spawn_fifo(body),
    });
}

/// Calls [`ThreadPool::broadcast`] on the pool of the calling worker.
///
/// # Panics
///
/// As [`ThreadPool::broadcast`]; and if the calling thread is no worker and there is no global
/// pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, Worker, broadcast};
///
/// let pool = ThreadPool::new(3)?;
/// assert_eq!(pool.install(|| broadcast(Worker::index)), [0, 1, 2]);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn broadcast<R: Send>(body: impl Fn(&Worker) -> R + Sync) -> Vec<R> {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::broadcast::broadcast(worker.core(), &body),
        None => global().broadcast(body),
    })
}

/// Calls [`ThreadPool::spawn_broadcast`] on the pool of the calling worker.
///
/// # Panics
///
/// If the calling thread is no worker and there is no global pool.
///
/// ```
/// use std::sync::mpsc;
/// use stanchion_threadpool::{ThreadPool, spawn_broadcast};
///
/// let pool = ThreadPool::new(3)?;
/// let (send, receive) = mpsc::channel();
/// pool.spawn(|| spawn_broadcast(move |_| send.send(()).unwrap()));
/// assert_eq!(receive.iter().count(), 3);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn spawn_broadcast(body: impl Fn(&Worker) + Send + Sync + 'static) {
    Worker::with_current(|worker| match worker {
        Some(worker) => crate::broadcast::spawn(worker.pool(), body),
        None => global().spawn_broadcast(body),
    });
}

/// Runs ready work, if the calling thread is a worker and there is some: for a task that waits for
/// something that the pool does not know of. Returns whether there was some; `None` on a thread
/// that is no worker.
///
/// ```
/// assert_eq!(stanchion_threadpool::yield_now(), None);
/// ```
pub fn yield_now() -> Option<bool> {
    Worker::with_current(|worker| worker.map(Worker::yield_now))
}

/// Calls [`Worker::yield_local`] on the calling worker; returns `None` on a thread that is no
/// worker.
///
/// ```
/// assert_eq!(stanchion_threadpool::yield_local(), None);
/// ```
pub fn yield_local() -> Option<bool> {
    Worker::with_current(|worker| worker.map(Worker::yield_local))
}

/// Returns how many threads the pool of the calling worker has, spares excepted. On a thread that
/// is no worker, returns that number of the global pool. Takes a lock.
///
/// # Panics
///
/// If the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, current_num_threads};
///
/// let pool = ThreadPool::new(3)?;
/// assert_eq!(pool.install(current_num_threads), 3);
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[must_use]
#[track_caller]
pub fn current_num_threads() -> usize {
    Worker::with_current(|worker| match worker {
        Some(worker) => worker.pool().num_threads(),
        None => global().current_num_threads(),
    })
}

/// Returns the index of the calling worker in its pool, below the number of its threads and spares.
/// Returns `None` on a thread that is no worker.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, current_thread_index};
///
/// let pool = ThreadPool::new(1)?;
/// assert_eq!(current_thread_index(), None);
/// assert_eq!(pool.install(current_thread_index), Some(0));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[must_use]
pub fn current_thread_index() -> Option<usize> {
    Worker::with_current(|worker| worker.map(Worker::index))
}

/// Calls [`ThreadPool::spawn_future`](crate::ThreadPool::spawn_future) on the pool of the calling
/// worker.
///
/// # Panics
///
/// If the calling thread is no worker and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, spawn_future};
///
/// let pool = ThreadPool::new(2)?;
/// let sum = pool.spawn_future(async {
///     let parts = [1, 2, 3].map(|part| spawn_future(async move { part * part }));
///     let mut sum = 0;
///     for part in parts {
///         sum += part.await.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum.join(), Ok(14));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn spawn_future<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    Worker::with_current(|worker| match worker {
        Some(worker) => match worker.core().to_arc() {
            Some(core) => crate::future::spawn(core, future),
            None => unreachable!("a worker's thread owns its registry"),
        },
        None => global().spawn_future(future),
    })
}

/// Creates a task that may block, on the pool of the calling worker: [`spawn`](crate::spawn) and
/// [`blocking`] in one.
///
/// # Panics
///
/// If the calling thread is no worker, and there is no global pool.
///
/// ```
/// use stanchion_threadpool::{ThreadPool, spawn_blocking};
///
/// let pool = ThreadPool::new(1)?;
/// pool.install(|| spawn_blocking(|| std::thread::sleep(std::time::Duration::from_millis(1))));
/// pool.shutdown();
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
#[track_caller]
pub fn spawn_blocking<F: FnOnce() + Send + 'static>(body: F) {
    spawn(move || blocking(body));
}
