//! `blocking`: while a task blocks in a system call, on a lock, or for another process, a spare
//! thread takes part in its place.
//!
//! Why not simply more threads than processors: a pool of computing tasks then pays for switches
//! all the time. Why ask the programmer: not every system lets a pool see that its thread has
//! blocked, and a pool that is told knows at once. (`registry/monitor.rs` does without.)
//!
//! The spare has a slot of its own. Tasks in the blocked worker's queue are found by the other
//! workers, as thieves find them at any time. When the worker comes back there is one thread too
//! many, until some spare has ended its task.

use crate::workers::{SpareLease, Worker};

/// Marks the worker as inside of `blocking`.
struct Blocks<'w>(&'w Worker);

impl Drop for Blocks<'_> {
    fn drop(&mut self) {
        self.0.in_blocking.set(false);
    }
}

/// Runs `body`, which may block, on the calling worker, while a spare thread takes part in its
/// place. On a thread that is no worker it only calls `body`.
///
/// It costs a lock and a wake-up of some microseconds, or, the first times, the start of a thread.
/// So it is for calls that block for at least some 50 µs. If there is no spare thread left (see
/// [`ThreadPoolBuilder::spare_threads`](crate::ThreadPoolBuilder::spare_threads)), the pool has one
/// thread less until another task comes back and leaves its spare. Inside of another call on the
/// same thread it costs nothing, and leases no second spare.
///
/// Meanwhile other workers, the spare thread among them, can take the second halves of forks below
/// on the same stack.
///
/// ```
/// use std::sync::mpsc;
/// use stanchion_threadpool::{ThreadPool, blocking};
///
/// let pool = ThreadPool::new(1)?;
/// let (send, receive) = mpsc::channel();
/// // One worker, but the second task runs while the first waits for it.
/// pool.spawn(move || assert_eq!(blocking(|| receive.recv()), Ok(7)));
/// pool.spawn(move || send.send(7).unwrap());
/// pool.shutdown();
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
pub fn blocking<R>(body: impl FnOnce() -> R) -> R {
    Worker::with_current(|worker| {
        // One spare takes part in place of a thread, however often the thread calls this.
        let first = worker.filter(|worker| !worker.in_blocking.replace(true));
        let _blocks = first.map(Blocks);
        let _excused = first.and_then(|worker| worker.pool().excuse(worker));
        let _lease = first.map(|worker| SpareLease::take(worker.core()));
        body()
    })
}
