//! Tasks that no thread waits for.

use crate::workers::{Fate, PoolState, QueuePosition, Worker};

/// Returns the closure of a task for which no thread waits. It contains a panic of `body`.
pub(crate) fn detached<F: FnOnce() + Send + 'static>(body: F) -> impl FnOnce(&Worker, Fate) + Send {
    move |worker, fate| {
        worker.pool().contain(|| match fate {
            Fate::Run => body(),
            Fate::Dropped => drop(body),
        });
    }
}

/// Creates a task that no thread waits for.
#[inline]
pub(crate) fn spawn_on<F: FnOnce() + Send + 'static>(worker: &Worker, body: F) {
    // SAFETY: it borrows nothing, and is `Send`.
    unsafe { worker.create(QueuePosition::Usual, detached(body)) };
}

/// Creates a task for which no thread waits, behind those that the worker has created so before.
pub(crate) fn spawn_fifo_on<F: FnOnce() + Send + 'static>(worker: &Worker, body: F) {
    let ticket = ticket(worker.pool(), Some(worker.index()), body);
    // SAFETY: it borrows nothing, and is `Send`.
    unsafe { worker.create(QueuePosition::Usual, ticket) };
}

/// Puts `body` into the creator's queue and returns the ticket for it.
pub(crate) fn ticket<F: FnOnce() + Send + 'static>(
    pool: &PoolState,
    creator: Option<usize>,
    body: F,
) -> impl FnOnce(&Worker, Fate) + Send + 'static {
    pool.fifo(creator).push(Box::new(detached(body)));
    move |worker, fate| worker.pool().fifo(creator).pop()(worker, fate)
}
