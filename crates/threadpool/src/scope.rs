//! Scopes: tasks that borrow, and a waiter that returns when all have ended.
//!
//! A scope lies on the stack of its waiter. It counts the tasks that have not ended, and the body
//! (`count_latch.rs`).
//!
//! If the waiter runs no other tasks, the tasks of its scope lie in a list (`scope_tasks.rs`). A
//! thread that puts a task there wakes the waiter: if a task blocks or the pool becomes smaller,
//! perhaps no other worker is left to run it.
//!
//! # Invariants
//!
//! 1. A scope is not left before `count` is zero, neither by return nor by panic.
//! 2. `count` counts the body until it has ended. So it is not zero while tasks can be created. A
//!    task creates others while it is counted itself.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_competitive::Mutex;

use crate::queues::Fifo;
use crate::sync::CountLatch;
use crate::waiter::{SendPtr, Waiter};
use crate::workers::{
    Call, CallOf, Core, Fate, PoolState, QueuePosition, ScopeTask, Wait, Worker, job,
};

/// A scope, in which tasks can be created that borrow values which live longer than the scope.
///
/// ```
/// use stanchion_threadpool::ThreadPool;
///
/// let pool = ThreadPool::new(2)?;
/// let text = String::from("borrowed");
/// let mut lengths = (0, 0);
/// pool.scope(|s| {
///     let (first, second) = (&mut lengths.0, &mut lengths.1);
///     let text = &text;
///     s.spawn(move |s| {
///         *first = text.len();
///         s.spawn(move |_| *second = text.len() + 1);
///     });
/// });
/// assert_eq!(lengths, (8, 9));
/// # Ok::<(), stanchion_threadpool::BuildError>(())
/// ```
///
/// Values that a task borrows must outlive the scope, not just its body:
///
/// ```compile_fail,E0597
/// let pool = stanchion_threadpool::ThreadPool::new(2).unwrap();
/// pool.scope(|s| {
///     let text = String::from("gone when the body ends");
///     let borrowed = &text;
///     s.spawn(move |_| assert!(!borrowed.is_empty()));
/// });
/// ```
///
/// The scope itself cannot leave it:
///
/// ```compile_fail,E0521
/// let pool = stanchion_threadpool::ThreadPool::new(2).unwrap();
/// let mut kept = None;
/// pool.in_place_scope(|s| kept = Some(s));
/// ```
pub struct Scope<'scope> {
    /// The pool's registry, which lives longer than its scopes.
    core: *const dyn Core,
    /// The body and the tasks that have not ended. Written by each of them.
    count: CountLatch,
    /// The thread that waits for the scope.
    waiter: Waiter,
    /// Closures of `spawn_fifo`.
    fifo: Fifo<ScopeTask>,
    /// The payload of the first panic. Written by the task that panicked.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Its level in the list of its waiter's slot, if its tasks lie there.
    level: Option<usize>,
    /// Makes it invariant in the lifetime: neither shorter nor longer.
    borrows: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

/// Another name of [`Scope`], for programs that were written for rayon. There a scope of this type
/// creates tasks in their order of creation. Here every scope has
/// [`spawn_fifo`](Scope::spawn_fifo).
pub type ScopeFifo<'scope> = Scope<'scope>;

// SAFETY: all that changes is atomic or locked; `core` is alive while the scope is.
unsafe impl Sync for Scope<'_> {}
// SAFETY: as above; nothing in it belongs to a thread.
unsafe impl Send for Scope<'_> {}

impl<'scope> Scope<'scope> {
    fn new(core: *const dyn Core, waiter: Waiter) -> Self {
        Self {
            core,
            count: CountLatch::new(1),
            waiter,
            fifo: Fifo::new(),
            panic: Mutex::new(None),
            level: None,
            borrows: PhantomData,
        }
    }

    /// Creates a task that ends before the scope does.
    ///
    /// If it panics, the scope does. The other tasks run to the end.
    #[inline]
    pub fn spawn<F: FnOnce(&Self) + Send + 'scope>(&self, body: F) {
        let run = self.counted(body);
        self.make_ready(run);
    }

    /// Creates a task as [`spawn`](Self::spawn) does, which begins after all those that this
    /// scope's `spawn_fifo` has created before, whichever workers create and run them.
    ///
    /// Costs an allocation and two locks more than [`spawn`](Self::spawn).
    pub fn spawn_fifo<F: FnOnce(&Self) + Send + 'scope>(&self, body: F) {
        let run: Box<dyn FnOnce(&Worker) + Send + '_> = Box::new(self.counted(body));
        // SAFETY: only the lifetime changes: it runs before the scope ends (Invariant 1).
        self.fifo.push(unsafe {
            core::mem::transmute::<Box<dyn FnOnce(&Worker) + Send + '_>, ScopeTask>(run)
        });
        let sent = SendPtr(ptr(self));
        self.make_ready(move |worker: &Worker| {
            // SAFETY: the queue has a closure for each ticket that has not taken one, and the scope
            // waits for it (Invariant 1).
            let scope = unsafe { &*sent.get().cast::<Self>() };
            let run = scope.fifo.pop();
            run(worker);
        });
    }

    /// Has `body` run once on each thread of the pool, spares excepted, before the scope ends.
    ///
    /// A thread makes the call between two tasks, or while it waits. If a call panics, the scope
    /// does. The other calls are made.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use stanchion_threadpool::ThreadPool;
    ///
    /// let pool = ThreadPool::new(3)?;
    /// let sum = AtomicUsize::new(0);
    /// pool.scope(|s| {
    ///     s.spawn_broadcast(|_, worker| {
    ///         sum.fetch_add(worker.index(), Ordering::Relaxed);
    ///     });
    /// });
    /// assert_eq!(sum.into_inner(), 0 + 1 + 2);
    /// # Ok::<(), stanchion_threadpool::BuildError>(())
    /// ```
    pub fn spawn_broadcast<F>(&self, body: F)
    where
        F: Fn(&Self, &Worker) + Send + Sync + 'scope,
    {
        let body = Arc::new(body);
        // SAFETY: the pool lives longer than its scopes.
        let pool = unsafe { &*self.core }.pool();
        // All are counted before one can end (Invariant 2).
        let count = |members| (0..members).for_each(|_| self.count.increment());
        pool.call_all(count, || {
            let body = body.clone();
            let sent = SendPtr(ptr(self));
            let call: CallOf<'_> = Box::new(move |pool, worker| {
                // SAFETY: the scope waits for this call (Invariant 1).
                let scope = unsafe { &*sent.get().cast::<Self>() };
                let called = panic::catch_unwind(AssertUnwindSafe(|| {
                    if let Some(worker) = worker {
                        body(scope, worker);
                    }
                    // It may borrow: the last drop must come before the scope's end.
                    drop(body);
                }));
                if let Err(payload) = called {
                    scope.keep(payload);
                }
                // SAFETY: counted above, once.
                unsafe { Self::end(scope, pool) };
            });
            // SAFETY: only the lifetime changes: it runs before the scope ends (Invariant 1).
            unsafe { core::mem::transmute::<CallOf<'_>, Call>(call) }
        });
        // The caller is counted, so the scope has not ended, and the drop may use what it borrows.
        drop(body);
    }

    /// Counts a task. Returns its closure, which counts its end as well.
    fn counted<F: FnOnce(&Self) + Send + 'scope>(
        &self,
        body: F,
    ) -> impl FnOnce(&Worker) + Send + use<'scope, F> {
        // Before it can end, by a caller that is counted itself (Invariant 2).
        self.count.increment();
        let sent = SendPtr(ptr(self));
        move |worker: &Worker| {
            // SAFETY: the scope waits for this task (Invariant 1).
            let scope = unsafe { &*sent.get().cast::<Self>() };
            if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| body(scope))) {
                scope.keep(payload);
            }
            // SAFETY: counted above, once.
            unsafe { Self::end(scope, worker.pool()) };
        }
    }

    /// Creates a task that calls `run`.
    #[inline]
    fn make_ready<F: FnOnce(&Worker) + Send>(&self, run: F) {
        match (&self.waiter, self.level) {
            (&Waiter::Worker(owner), Some(level)) => {
                let run: Box<dyn FnOnce(&Worker) + Send + '_> = Box::new(run);
                // SAFETY: only the lifetime changes: it runs before the scope ends (Invariant 1).
                let run: ScopeTask = unsafe { core::mem::transmute(run) };
                // SAFETY: the pool lives longer than its scopes.
                let pool = unsafe { &*self.core }.pool();
                let (ready, another) =
                    pool.info(owner).scope_tasks.push(level, run, pool.num_slots());
                if another {
                    self.create(voucher(owner));
                } else {
                    // The vouchers that there are may lie in a queue at which no worker looks
                    // without being notified.
                    pool.sleep.notify(ready);
                }
                pool.sleep.notify_worker(owner);
            }
            _ => self.create(move |worker: &Worker, _: Fate| run(worker)),
        }
    }

    #[inline]
    fn create<F: FnOnce(&Worker, Fate) + Send>(&self, run: F) {
        // SAFETY: the pool lives longer than its scopes.
        let core = unsafe { &*self.core };
        Worker::with_current(|current| {
            let slot = current.filter(|worker| worker.belongs_to(core.pool())).map(Worker::slot);
            let mut run = Some(run);
            core.create(slot, QueuePosition::Usual, &mut |task| {
                if let Some(run) = run.take() {
                    // SAFETY: what it borrows lives until it has run, as the scope waits.
                    unsafe { job::fill(task, run) };
                }
            });
        });
    }

    /// Keeps the first panic.
    fn keep(&self, payload: Box<dyn Any + Send>) {
        let mut kept = self.panic.lock();
        if kept.is_none() {
            *kept = Some(payload);
            return;
        }
        drop(kept);
        // SAFETY: as in `create`.
        unsafe { &*self.core }.pool().panicked(payload);
    }

    /// Counts the end of a task.
    ///
    /// # Safety
    ///
    /// Called once for each counted task, as its last access.
    unsafe fn end(scope: *const Self, pool: &PoolState) {
        // SAFETY: alive until all have ended, of which this is one.
        let this = unsafe { &*scope };
        let waiter = this.waiter.clone();
        // SAFETY: as the caller promises.
        if let Some(latch) = unsafe { CountLatch::decrement(&raw const this.count) } {
            waiter.wake(latch, pool);
        }
    }

    /// Runs the body, waits for the tasks, and resumes the first panic.
    fn run<R>(&self, current: Option<&Worker>, body: impl FnOnce(&Self) -> R) -> R {
        let result = panic::catch_unwind(AssertUnwindSafe(|| body(self)));
        if !self.count.decrement_own() {
            // SAFETY: as in `create`.
            let core = unsafe { &*self.core };
            Waiter::wait(core, current, self.count.latch(), self.level);
        }
        let panicked = self.panic.lock().take();
        match (result, panicked) {
            (Ok(result), None) => result,
            (Err(payload), None) | (Ok(_), Some(payload)) => panic::resume_unwind(payload),
            (Err(payload), Some(second)) => {
                // SAFETY: as in `create`.
                unsafe { &*self.core }.pool().panicked(second);
                panic::resume_unwind(payload)
            }
        }
    }
}

/// Returns the scope without its lifetime.
fn ptr(scope: &Scope<'_>) -> *const Scope<'static> {
    (&raw const *scope).cast()
}

/// Runs `body` with a scope on a worker.
pub(crate) fn on<'scope, R>(worker: &Worker, body: impl FnOnce(&Scope<'scope>) -> R) -> R {
    struct End<'w>(&'w Worker);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.scope_tasks().end_scope();
        }
    }
    let mut scope = Scope::new(worker.core(), Waiter::Worker(worker.index()));
    let lists = !worker.runs_any_task();
    scope.level = lists.then(|| worker.scope_tasks().begin_scope());
    let _end = lists.then(|| End(worker));
    scope.run(Some(worker), body)
}

/// Runs `body` with a scope of a pool of which the calling thread is no worker.
pub(crate) fn from_outside<'scope, R>(
    core: &(dyn Core + 'static),
    current: Option<&Worker>,
    body: impl FnOnce(&Scope<'scope>) -> R,
) -> R {
    Scope::new(core, Waiter::current(current, core.pool())).run(current, body)
}

/// Returns a voucher: a task that runs one task of the list of `slot`. It does so even when tasks
/// are dropped that have not begun, because a thread waits for the scope.
fn voucher(slot: usize) -> impl FnOnce(&Worker, Fate) + Send {
    move |worker, _| {
        let pool = worker.pool();
        // The newest are parts of what the thief waits for. Else the outermost are the largest.
        let innermost_first = pool.wait() == Wait::Leapfrog;
        let (task, another) = pool.info(slot).scope_tasks.redeem(innermost_first, pool.num_slots());
        if another {
            // SAFETY: it borrows nothing, and is `Send`.
            unsafe { worker.create(QueuePosition::Usual, voucher(slot)) };
        }
        if let Some(task) = task {
            task(worker);
        }
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("open", &self.count.count()).finish_non_exhaustive()
    }
}
