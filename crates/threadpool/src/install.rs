//! `install` from outside of a pool: a worker runs a closure for which the calling thread waits.

use std::panic::{self, AssertUnwindSafe};

use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::cell::UnsafeCell;

use crate::sync::Latch;
use crate::waiter::{SendPtr, Waiter, set_and_wake};
use crate::workers::{Core, Fate, JobResult, QueuePosition, UNWOUND, Worker, job};

/// A closure that a worker runs, on the stack of the thread that waits for it.
struct InstallJob<B, R> {
    /// The closure, until a worker takes it.
    body: UnsafeCell<Option<B>>,
    /// Its result. Written by the worker before it sets the latch.
    outcome: UnsafeCell<Option<JobResult<R>>>,
    /// Set by the worker, as its last access.
    latch: Latch,
}

/// Runs `body` on a worker of the pool, and waits for it.
pub(crate) fn install_on<R: Send>(
    core: &dyn Core,
    current: Option<&Worker>,
    body: impl FnOnce(&Worker) -> R + Send,
) -> R {
    let visit = InstallJob {
        body: UnsafeCell::new(Some(body)),
        outcome: UnsafeCell::new(None),
        latch: Latch::new(),
    };
    let mut waiter = Some(Waiter::current(current, core.pool()));
    let sent = SendPtr(&raw const visit);
    let mut run = Some(move |worker: &Worker, _: Fate| {
        // SAFETY: the thread with the job on its stack waits for the latch.
        let visit = unsafe { &*sent.get() };
        // SAFETY: this runs once.
        let body = visit.body.with_mut(|body| unsafe { (*body).take() });
        let outcome = body.map(|body| panic::catch_unwind(AssertUnwindSafe(|| body(worker))));
        // SAFETY: the waiter looks when the latch is set.
        visit.outcome.with_mut(|slot| unsafe { *slot = outcome });
        let latch = &raw const visit.latch;
        // SAFETY: alive until it is set.
        unsafe { set_and_wake(latch, waiter.take().unwrap_or(Waiter::Outside), worker.pool()) };
    });
    // From here on a worker may use the job.
    let bomb = AbortOnUnwind::armed(UNWOUND);
    core.create(None, QueuePosition::Usual, &mut |task| {
        if let Some(run) = run.take() {
            // SAFETY: the thread that owns what it borrows waits below; body and result are `Send`.
            unsafe { job::fill(task, run) };
        }
    });
    Waiter::wait(core, current, &visit.latch, None);
    bomb.defuse();
    // SAFETY: the latch is set: the worker does not touch it any more.
    let outcome = visit.outcome.with_mut(|outcome| unsafe { (*outcome).take() });
    match outcome {
        Some(Ok(result)) => result,
        Some(Err(payload)) => panic::resume_unwind(payload),
        None => unreachable!("a visit ends with an outcome"),
    }
}
