//! A future on a pool: one allocation with its state, the future, and then its output.
//!
//! Its owners are its handle, its wakers, the task that will run it, and, once it has waited, its
//! worker slot (`waiting_futures.rs`). So the future lives until it is done, even if all others
//! forget it. It is done when the pool has ended at the latest.
//!
//! # Invariants
//!
//! 1. `Stage::Future` is not moved: it is dropped where it is.
//! 2. The code here does not unwind: it calls code of others inside of `catch_unwind`.

use core::future::Future;
use core::pin::Pin;
use core::ptr;
use core::task::{Context, Poll, Waker};
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::task::Wake;

use super::state::{Finished, FutureState};
use crate::sync::Latch;
use crate::waiter::{Waiter, set_and_wake};
use crate::workers::{Abort, Core, Fate, QueuePosition, Worker, job};

/// The reason why there is no output.
pub(super) enum Failure {
    Cancelled,
    Panicked(Box<dyn Any + Send>),
}

/// The thing that is notified when a future is done.
pub(super) enum Listener {
    Waker(Waker),
    /// A thread that waits for the latch, which is alive until it is set.
    Latch(*const Latch, Waiter),
}

// SAFETY: a latch is set from any thread, once, while its waiter waits.
unsafe impl Send for Listener {}

struct Body<F: Future> {
    stage: Stage<F>,
    /// The slot that holds the future while it waits, and its number there. Written by the runner.
    waiting_at: Option<(usize, usize)>,
}

enum Stage<F: Future> {
    /// The future (Invariant 1).
    Future(F),
    Done(Result<F::Output, Failure>),
    Gone,
}

pub(super) struct FutureTask<F: Future> {
    /// The pool on which it runs.
    core: Arc<dyn Core>,
    /// Says which thread may touch the body.
    state: FutureState<Body<F>, Listener>,
}

/// A future as its handle sees it: only the type of the output is known.
pub(super) trait HandleTask<T>: Abort {
    fn is_done(&self) -> bool;

    /// Registers a listener as [`FutureState::listen`] does.
    ///
    /// # Safety
    ///
    /// The caller has the handle. If this returns true, a latch is waited for.
    unsafe fn listen(&self, listener: Listener) -> bool;

    /// Takes the output.
    ///
    /// # Safety
    ///
    /// The future is done. The caller has the handle, and calls this once.
    unsafe fn take(&self) -> Result<T, Failure>;

    /// Gives up the output as [`FutureState::detach`] does. Drops it if it is there.
    ///
    /// # Safety
    ///
    /// The caller has the handle, has not taken the output, and gives the handle up.
    unsafe fn detach(&self);

    fn core(&self) -> &dyn Core;
}

impl<F> FutureTask<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// Allocates a future and makes it ready.
    pub(super) fn spawn(core: Arc<dyn Core>, future: F) -> Arc<Self> {
        let body = Body { stage: Stage::Future(future), waiting_at: None };
        let task = Arc::new(Self { core, state: FutureState::new(body) });
        task.clone().schedule();
        task
    }

    /// Creates the task that runs the future, behind all that is ready. Before it, a future that
    /// waits for the worker's newest tasks to end might be polled for ever.
    fn schedule(self: Arc<Self>) {
        Worker::with_current(|current| {
            match current.filter(|worker| worker.belongs_to(self.core.pool())) {
                // SAFETY: it borrows nothing, and is `Send`.
                Some(worker) => unsafe {
                    worker.create(QueuePosition::Last, move |w, fate| self.run(w, fate));
                },
                None => {
                    // The task may run and be gone before `create` returns.
                    let owner = self.clone();
                    self.schedule_outside(&*owner.core);
                }
            }
        });
    }

    /// Creates the task as a thread outside of the pool does.
    fn schedule_outside(self: Arc<Self>, core: &dyn Core) {
        let mut task = Some(self);
        core.create(None, QueuePosition::Last, &mut |block| {
            if let Some(task) = task.take() {
                // SAFETY: it borrows nothing, and is `Send`.
                unsafe { job::fill(block, move |w, fate| task.run(w, fate)) };
            }
        });
    }

    /// Runs the task: polls the future, or drops it.
    fn run(self: Arc<Self>, worker: &Worker, fate: Fate) {
        // SAFETY: this is the task that was owed: each `true` of `wake`, `abort` and `pause`, and
        // `new`, is followed by one `schedule`.
        let goes_on = unsafe { self.state.begin() };
        if !goes_on || fate == Fate::Dropped {
            return self.finish(worker, Err(Failure::Cancelled));
        }
        let waker = Waker::from(self.clone());
        match panic::catch_unwind(AssertUnwindSafe(|| self.poll(&waker))) {
            Ok(Poll::Ready(output)) => self.finish(worker, Ok(output)),
            Err(payload) => self.finish(worker, Err(Failure::Panicked(payload))),
            Ok(Poll::Pending) if !self.register_waiting(worker) => {
                self.finish(worker, Err(Failure::Cancelled));
            }
            Ok(Poll::Pending) => {
                // SAFETY: this runs it, and does not touch it afterwards.
                if unsafe { self.state.pause() } {
                    // It has woken itself. In the worker's own queue it could come back for ever
                    // before the tasks of others.
                    self.schedule_outside(worker.core());
                }
            }
        }
    }

    fn poll(&self, waker: &Waker) -> Poll<F::Output> {
        let poll = |body: *mut Body<F>| {
            // SAFETY: this runs it, so the body is its own.
            let Stage::Future(future) = (unsafe { &mut (*body).stage }) else {
                unreachable!("a future that is not done is there");
            };
            // SAFETY: Invariant 1.
            let future = unsafe { Pin::new_unchecked(future) };
            future.poll(&mut Context::from_waker(waker))
        };
        // SAFETY: as above.
        unsafe { self.state.body(poll) }
    }

    /// Registers the future with the worker's slot, if no slot has it yet. Returns false if the
    /// pool has ended.
    fn register_waiting(self: &Arc<Self>, worker: &Worker) -> bool {
        // SAFETY: called by the runner, so the body is its own; so below.
        let is_waiting = |body: *mut Body<F>| unsafe { (*body).waiting_at.is_some() };
        // SAFETY: as above.
        if unsafe { self.state.body(is_waiting) } {
            return true;
        }
        let waiting_at = worker.pool().info(worker.index()).waiting_futures.insert(self.clone());
        let entry = waiting_at.map(|number| (worker.index(), number));
        // SAFETY: as above.
        let note = |body: *mut Body<F>| unsafe { (*body).waiting_at = entry };
        // SAFETY: as above.
        unsafe { self.state.body(note) };
        waiting_at.is_some()
    }

    /// Drops the future, leaves `outcome` in its place, and notifies the listener.
    fn finish(self: Arc<Self>, worker: &Worker, outcome: Result<F::Output, Failure>) {
        let pool = worker.pool();
        let drop_it = |body: *mut Body<F>| {
            // SAFETY: called by the runner, so the body is its own; so below.
            let stage = unsafe { &raw mut (*body).stage };
            let dropped = panic::catch_unwind(AssertUnwindSafe(|| {
                // SAFETY: it is not used again: it is overwritten.
                unsafe { ptr::drop_in_place(stage) };
            }));
            // SAFETY: the old stage is gone, even if its drop has unwound.
            unsafe { ptr::write(stage, Stage::Gone) };
            dropped
        };
        // SAFETY: as above.
        let dropped = unsafe { self.state.body(drop_it) };
        let outcome = match (outcome, dropped) {
            (outcome, Ok(())) => outcome,
            (Ok(output), Err(payload)) => {
                pool.contain(|| drop(output));
                Err(Failure::Panicked(payload))
            }
            (Err(failure), Err(payload)) => {
                pool.panicked(payload);
                Err(failure)
            }
        };
        let leave = |body: *mut Body<F>| {
            // SAFETY: as above.
            let body = unsafe { &mut *body };
            body.stage = Stage::Done(outcome);
            body.waiting_at.take()
        };
        // SAFETY: as above.
        let waiting_at = unsafe { self.state.body(leave) };
        if let Some((slot, number)) = waiting_at {
            pool.info(slot).waiting_futures.remove(number);
        }
        // SAFETY: this runs it; the body is touched only where it is said to be detached.
        match unsafe { self.state.finish() } {
            Finished::NoListener => {}
            Finished::Listener(Listener::Waker(waker)) => pool.contain(|| waker.wake()),
            Finished::Listener(Listener::Latch(latch, waiter)) => {
                // SAFETY: its waiter waits for it, and this is the one call for it.
                unsafe { set_and_wake(latch, waiter, worker.pool()) };
            }
            // SAFETY: Invariant 3 of `state.rs`: the output is this thread's.
            Finished::Detached => unsafe { self.discard() },
        }
    }

    /// Drops the output. Hands a panic to the panic handler, as no thread waits for it.
    ///
    /// # Safety
    ///
    /// The future is done, and the output is the caller's.
    unsafe fn discard(&self) {
        let pool = self.core.pool();
        // SAFETY: the caller's promise.
        match unsafe { self.take() } {
            Ok(output) => pool.contain(|| drop(output)),
            Err(Failure::Panicked(payload)) => pool.panicked(payload),
            Err(Failure::Cancelled) => {}
        }
    }
}

impl<F> Wake for FutureTask<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn wake(self: Arc<Self>) {
        if self.state.wake() {
            self.schedule();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.wake() {
            self.clone().schedule();
        }
    }
}

impl<F> Abort for FutureTask<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn abort(self: Arc<Self>) {
        if self.state.abort() {
            self.schedule();
        }
    }
}

impl<F> HandleTask<F::Output> for FutureTask<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn is_done(&self) -> bool {
        self.state.is_done()
    }

    unsafe fn listen(&self, listener: Listener) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.state.listen(listener) }
    }

    unsafe fn take(&self) -> Result<F::Output, Failure> {
        let take = |body: *mut Body<F>| {
            // SAFETY: the future is done, and the output is the caller's.
            let stage = unsafe { &mut (*body).stage };
            let Stage::Done(outcome) = stage else {
                unreachable!("what is done has one outcome");
            };
            // SAFETY: it is overwritten, so it is read once. The whole stage is as large as the
            // future, which need not be copied.
            let outcome = unsafe { ptr::read(outcome) };
            // SAFETY: the value that was there has been read out.
            unsafe { ptr::write(stage, Stage::Gone) };
            outcome
        };
        // SAFETY: as above.
        unsafe { self.state.body(take) }
    }

    unsafe fn detach(&self) {
        // SAFETY: the caller's promise.
        if unsafe { self.state.detach() } {
            // SAFETY: Invariant 3 of `state.rs`: the output is this thread's.
            unsafe { self.discard() };
        }
    }

    fn core(&self) -> &dyn Core {
        &*self.core
    }
}
