//! The handle of a future on a pool.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::panic;
use std::sync::Arc;

use super::task::{Failure, FutureTask, HandleTask, Listener};
use crate::error::Cancelled;
use crate::sync::Latch;
use crate::waiter::Waiter;
use crate::workers::{Core, Worker};

/// The handle of a future that was given to a pool. It is a future itself, which any executor may
/// poll for the output.
///
/// Dropping it, as with tokio's, does not stop the future. The future goes on, and its output is
/// dropped. If it panics, the pool's
/// [panic handler](crate::ThreadPoolBuilder::panic_handler) gets the payload.
/// [`abort`](Self::abort) stops it.
///
/// Awaiting it gives the future's output, or [`Cancelled`]. If the future panicked, the await
/// panics with the same payload. It must not be polled again afterwards.
///
/// ```
/// use stanchion_threadpool::{Cancelled, ThreadPool};
///
/// let pool = ThreadPool::new(2)?;
/// let ready = pool.spawn_future(async { "ready" });
/// assert_eq!(ready.join(), Ok("ready"));
///
/// let waits = pool.spawn_future(std::future::pending::<()>());
/// waits.abort();
/// assert_eq!(waits.join(), Err(Cancelled));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
///
/// The future and its output go from worker to worker, so both must be `Send`:
///
/// ```compile_fail,E0277
/// # use stanchion_threadpool::ThreadPool;
/// let pool = ThreadPool::new(2).unwrap();
/// let counted = pool.spawn_future(async { std::rc::Rc::new(1) });
/// ```
#[must_use = "a handle that is dropped lets its future go on, and its output be lost: say so by `detach`"]
pub struct JoinHandle<T> {
    /// The future, until its output is taken.
    task: Option<Arc<dyn HandleTask<T>>>,
}

const TAKEN: &str =
    "the output of a future is taken once: its handle was polled after it had been ready";

impl<T> JoinHandle<T> {
    fn task(&self) -> &Arc<dyn HandleTask<T>> {
        self.task.as_ref().expect(TAKEN)
    }

    /// Waits for the output. On a worker, of this pool or another, it waits as the pool of that
    /// worker does by its [`Wait`](crate::Wait). Any other thread sleeps.
    ///
    /// On a worker, prefer to await. If all workers of a pool wait in here under
    /// [`Wait::Isolated`](crate::Wait) the pool polls nothing any more. A pool that shuts down
    /// waits for a worker that waits in here, even if no thread will ever wake the future.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if the future was aborted, or the pool ended.
    ///
    /// # Panics
    ///
    /// If the future did, with its payload.
    pub fn join(mut self) -> Result<T, Cancelled> {
        Worker::with_current(|current| {
            let task = self.task();
            let pool = task.core().pool();
            let waiter = Waiter::current(current, pool);
            let latch = Latch::new();
            // SAFETY: this is the handle, and the latch is waited for.
            if unsafe { task.listen(Listener::Latch(&raw const latch, waiter)) } {
                Waiter::wait(task.core(), current, &latch, None);
            }
        });
        self.take()
    }

    /// Returns whether it is ready, aborted or dropped, so that [`join`](Self::join) would not
    /// wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.is_done())
    }

    /// Has a worker drop the future instead of polling it again. A future that is ready, or becomes
    /// so in the poll that is running, stays ready.
    pub fn abort(&self) {
        if let Some(task) = &self.task {
            task.clone().abort();
        }
    }

    /// Lets the future go on, and its output be dropped. Dropping the handle does the same.
    pub fn detach(self) {}

    /// Takes the output of a future that is done.
    fn take(&mut self) -> Result<T, Cancelled> {
        let task = self.task.take().expect(TAKEN);
        // SAFETY: the callers have seen that it is done. The handle is `self`, which has no future
        // any more.
        match unsafe { task.take() } {
            Ok(output) => Ok(output),
            Err(Failure::Cancelled) => Err(Cancelled),
            Err(Failure::Panicked(payload)) => panic::resume_unwind(payload),
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Cancelled>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let task = self.task();
        // SAFETY: this is the handle.
        if !task.is_done() && unsafe { task.listen(Listener::Waker(cx.waker().clone())) } {
            return Poll::Pending;
        }
        Poll::Ready(self.take())
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            // SAFETY: this is the handle, which ends. The output was not taken.
            unsafe { task.detach() };
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// Gives a future to a pool.
pub(crate) fn spawn<F>(core: Arc<dyn Core>, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    JoinHandle { task: Some(FutureTask::spawn(core, future)) }
}
