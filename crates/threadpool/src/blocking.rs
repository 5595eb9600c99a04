//! Tasks that block: in a system call, on a lock, for another process. While one does, a spare
//! thread takes part in its place.
//!
//! Why not simply more threads than processors: a pool of computing tasks then pays for switches
//! all the time. Why ask the programmer: not every system lets a pool see that its thread has
//! blocked, and who is told knows at once. (`lookout.rs` does without being told.)
//!
//! The spare has a seat of its own; what the blocked worker has in its queue is found by the
//! others, as it is found by thieves at any time. When the worker comes back there is one thread
//! too many until some spare has ended its task.

use crate::workers::core::SpareLease;
use crate::workers::worker::Worker;

/// The worker has said that it blocks.
struct Blocks<'w>(&'w Worker);

impl Drop for Blocks<'_> {
    fn drop(&mut self) {
        self.0.in_blocking.set(false);
    }
}

/// Runs `body`, which may block, on the calling worker, while a spare thread takes part in its
/// place. On a thread that is no worker it is just called.
///
/// Costs a lock, and a wake-up (some microseconds) or, the first times, the start of a thread; for
/// what blocks at least some 50 µs. If there is no spare thread to be had (see
/// [`ThreadPoolBuilder::spare_threads`](crate::ThreadPoolBuilder::spare_threads)) the pool does
/// with one less until another task comes back and leaves its spare. Inside of another call on the
/// same thread it costs nothing, and lends no second one.
///
/// The second halves of forks below are there for other workers meanwhile, the spare thread among
/// them.
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
        // One thread takes part in place of one that blocks, however often that says so.
        let first = worker.filter(|worker| !worker.in_blocking.replace(true));
        let _blocks = first.map(Blocks);
        let _excused = first.and_then(|worker| worker.pool().excuse(worker));
        let _lease = first.map(|worker| SpareLease::take(worker.core()));
        body()
    })
}
