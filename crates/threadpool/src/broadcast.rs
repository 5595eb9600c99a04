//! Broadcasts: one call on each thread of a pool.
//!
//! Why not a task for each thread: an idle worker would run two. Each thread has a mailbox for
//! calls that are meant for it alone. It empties the mailbox between two tasks, and while it waits.
//!
//! A broadcast sends to all members under the lock of the thread table. So the calls of two
//! broadcasts come in the same order on each thread.
//!
//! A member may have no thread any more, or never get one: the thread that built the pool has
//! ended, or the program has dropped its `ThreadBuilder`. It gets no call. A call that is in its
//! mailbox already ends without having run (`PoolState::abandon`).

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::cell::UnsafeCell;

use crate::sync::CountLatch;
use crate::waiter::{SendPtr, Waiter};
use crate::workers::{Call, CallOf, Core, Fate, JobResult, PoolState, UNWOUND, Worker};

/// A broadcast, on the stack of the thread that waits for it.
struct Calls<'b, B, R> {
    body: &'b B,
    /// The result of each call. Written by the worker that makes the call.
    outcomes: Box<[UnsafeCell<Option<JobResult<R>>>]>,
    /// The calls that have not ended.
    count: CountLatch,
}

/// Runs `body` on each member and returns what the calls return, by index.
pub(crate) fn broadcast<B, R>(core: &dyn Core, body: &B) -> Vec<R>
where
    B: Fn(&Worker) -> R + Sync,
    R: Send,
{
    Worker::with_current(|current| {
        // The members do not change while the calls are sent.
        let table = core.pool().threads.lock();
        let members = table.present_members().count();
        if members == 0 {
            return Vec::new();
        }
        let calls = Calls {
            body,
            outcomes: (0..members).map(|_| UnsafeCell::new(None)).collect(),
            count: CountLatch::new(members),
        };
        // From here on workers may use the calls.
        let bomb = AbortOnUnwind::armed(UNWOUND);
        for (position, slot) in table.present_members().enumerate() {
            let waiter = Waiter::current(current, core.pool());
            let sent = SendPtr(&raw const calls);
            let call: CallOf<'_> = Box::new(move |pool, worker| {
                // SAFETY: the thread with the calls on its stack waits for the latch. The outcome
                // at this position belongs to this call.
                unsafe { Calls::<B, R>::call(sent.get(), position, waiter, pool, worker) };
            });
            // SAFETY: only the lifetime changes: the thread that owns what it borrows waits below.
            let call: Call = unsafe { core::mem::transmute(call) };
            core.pool().send_call(slot, call);
        }
        drop(table);
        Waiter::wait(core, current, calls.count.latch(), None);
        bomb.defuse();
        let outcomes = calls.outcomes.into_iter().map(UnsafeCell::into_inner);
        let mut results = Vec::with_capacity(members);
        for outcome in outcomes {
            match outcome {
                Some(Ok(result)) => results.push(result),
                Some(Err(payload)) => panic::resume_unwind(payload),
                // That thread has ended before its call.
                None => {}
            }
        }
        results
    })
}

/// Has `body` run on each member, and does not wait.
pub(crate) fn spawn<B: Fn(&Worker) + Send + Sync + 'static>(pool: &PoolState, body: B) {
    let body = Arc::new(body);
    pool.call_all(
        |_| (),
        || {
            let body = body.clone();
            Box::new(move |pool, worker| {
                pool.contain(|| {
                    if let Some(worker) = worker.filter(|_| pool.fate() == Fate::Run) {
                        body(worker);
                    }
                    // Inside, because its drop may panic.
                    drop(body);
                });
            })
        },
    );
}

impl<B, R> Calls<'_, B, R>
where
    B: Fn(&Worker) -> R + Sync,
{
    /// Makes the call of one member, or leaves it out if there is no worker.
    ///
    /// # Safety
    ///
    /// `calls` is alive until its latch is set, and this is the call of `position`.
    unsafe fn call(
        calls: *const Self,
        position: usize,
        waiter: Waiter,
        pool: &PoolState,
        worker: Option<&Worker>,
    ) {
        // SAFETY: the caller's promise.
        let these = unsafe { &*calls };
        if let Some(worker) = worker {
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| (these.body)(worker)));
            // SAFETY: the outcome belongs to this call.
            these.outcomes[position].with_mut(|position| unsafe { *position = Some(outcome) });
        }
        // SAFETY: each call does this once, as its last access.
        if let Some(latch) = unsafe { CountLatch::decrement(&raw const these.count) } {
            waiter.wake(latch, pool);
        }
    }
}
