//! The pool of the process, for those who ask for one, and the functions that find the pool of the calling thread.
//!
//! Why not made at its first use: a library that forks would start threads that nobody asked for, and their number could not be chosen any more.

use stanchion_competitive::OnceLock;

use crate::builder::ThreadPoolBuilder;
use crate::error::BuildError;
use crate::pool::ThreadPool;
use crate::scope::Scope;
use crate::worker::Worker;

machine::global! {
    /// The pool of those who are in none.
    static GLOBAL: OnceLock<ThreadPool> = OnceLock::new();
}

/// Builds the global pool.
pub(crate) fn set(builder: ThreadPoolBuilder) -> Result<(), BuildError> {
    if GLOBAL.get().is_some() {
        return Err(BuildError::GlobalExists);
    }
    let pool = builder.build()?;
    GLOBAL.set(pool).map_err(|pool| {
        pool.shutdown();
        BuildError::GlobalExists
    })
}

#[track_caller]
pub(crate) fn global() -> &'static ThreadPool {
    match GLOBAL.get() {
        // SAFETY: none needed: a `global!` lives as long as the process on the real machine.
        Some(pool) => pool,
        None => panic!(
            "this thread is no worker of a thread pool: call it inside `ThreadPool::install`, or build a pool for the whole process with `ThreadPoolBuilder::build_global`"
        ),
    }
}

/// [`ThreadPool::join`] on the pool of the calling worker.
///
/// # Panics
///
/// If `a` or `b` does; and if the calling thread is no worker and there is no global pool.
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

/// [`ThreadPool::scope`] on the pool of the calling worker.
///
/// # Panics
///
/// As [`ThreadPool::scope`]; and if the calling thread is no worker and there is no global pool.
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

/// [`ThreadPool::spawn`] on the pool of the calling worker.
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
        Some(worker) => crate::pool::spawn_on(worker, crate::registry::Order::Usual, body),
        None => global().spawn(body),
    });
}

/// [`ThreadPool::spawn_fifo`] on the pool of the calling worker.
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
        Some(worker) => crate::pool::spawn_on(worker, crate::registry::Order::Last, body),
        None => global().spawn_fifo(body),
    });
}

/// Runs a task that is ready, if the calling thread is a worker and there is one: for a task that waits for something that the pool does not know of.
/// Says whether it did; `None` on a thread that is no worker.
///
/// ```
/// assert_eq!(stanchion_threadpool::yield_now(), None);
/// ```
pub fn yield_now() -> Option<bool> {
    Worker::with_current(|worker| worker.map(Worker::yield_now))
}

/// The index of the calling worker in its pool, below the number of its threads and spare threads; `None` on a thread that is no worker.
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
