//! The handle of a future on a pool.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::panic;
use std::sync::Arc;

use super::task::{Failure, FutureTask, HandleTask, Listener};
use crate::error::Cancelled;
use crate::sync::latch::Latch;
use crate::waiter::Waiter;
use crate::workers::core::Core;
use crate::workers::worker::Worker;

/// A future that was given to a pool, for whoever wants its output: a future itself, which any executor may poll.
///
/// Dropping it, as tokio's, does not stop the future. It goes on, its output is dropped, and if it panics the pool's
/// [panic handler](crate::ThreadPoolBuilder::panic_handler) gets the payload. [`abort`](Self::abort) stops it.
///
/// Awaited, it gives what the future returned, or [`Cancelled`]. If the future panicked, so does whoever awaits, with the same payload. It must not
/// be polled again afterwards.
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
    /// Until the output is taken.
    task: Option<Arc<dyn HandleTask<T>>>,
}

const TAKEN: &str =
    "the output of a future is taken once: its handle was polled after it had been ready";

impl<T> JoinHandle<T> {
    fn task(&self) -> &Arc<dyn HandleTask<T>> {
        self.task.as_ref().expect(TAKEN)
    }

    /// Waits for the output. On a worker, of this pool or another, it waits as its pool's [`Wait`](crate::Wait) says; any other thread sleeps.
    ///
    /// On a worker, prefer to await: a pool all of whose workers wait in here under [`Wait::Isolated`](crate::Wait) polls nothing any more.
    /// And a pool that shuts down waits for a worker that waits in here, also if nobody will ever wake what it waits for.
    ///
    /// # Errors
    ///
    /// [`Cancelled`], if it was aborted, or the pool ended.
    ///
    /// # Panics
    ///
    /// If the future did, with what it panicked with.
    pub fn join(mut self) -> Result<T, Cancelled> {
        Worker::with_current(|current| {
            let task = self.task();
            let pool = task.core().pool();
            let waiter = match current.filter(|worker| worker.belongs_to(pool)) {
                Some(worker) => Waiter::Worker(worker.index()),
                None => Waiter::outsider(current),
            };
            let latch = Latch::new();
            // SAFETY: this is the handle, and the latch is waited for.
            if unsafe { task.listen(Listener::Latch(&raw const latch, waiter)) } {
                Waiter::wait(task.core(), current, &latch, None);
            }
        });
        self.take()
    }

    /// Whether it is ready, aborted or dropped: whether [`join`](Self::join) would not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.is_done())
    }

    /// Has the future dropped, on a worker, instead of polled again. One that is ready, or becomes so in the poll that is running, stays so.
    pub fn abort(&self) {
        if let Some(task) = &self.task {
            task.clone().abort();
        }
    }

    /// Lets the future go on, and its output be lost. The same as to drop the handle.
    pub fn detach(self) {}

    /// Takes the output, which is there.
    fn take(&mut self) -> Result<T, Cancelled> {
        let task = self.task.take().expect(TAKEN);
        // SAFETY: the callers have seen that it is done; the handle is `self`, which has no task any more.
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
            // SAFETY: this is the handle, which ends, and the output was not taken.
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
