//! A spawned thread: what it is to run, and what has come of it, in one allocation.
//!
//! Why one: it is the only thing that a thread which never blocks asks the allocator for.
//!
//! | `end` | meaning | left by |
//! | --- | --- | --- |
//! | `OPEN` | it has not ended | the thread, for `DONE`; who joins, for `AWAITED`; a handle that is dropped, for `DETACHED` |
//! | `AWAITED` | likewise, and `joiner` is to be called | the thread, for `DONE` |
//! | `DETACHED` | likewise, and nobody wants what comes of it | the thread, for `DONE` |
//! | `DONE` | it has ended, and the result is there | nobody |
//!
//! # Invariants
//!
//! 1. `stage` belongs to the thread until `DONE`, then to its one handle; if that had been dropped, to the thread.
//! 2. `joiner` belongs to the handle until `AWAITED`, then to the thread.
//! 3. What `F` and `T` borrow is alive until the thread's scope knows of its end, which is the last that the thread does; and a handle is gone before the
//!    scope ends, or is never dropped. After that there is neither an `F` nor a `T` in `stage`.

use core::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;

use crate::panics::{Payload, discard, dropping};
use crate::scope::Bounds;
use crate::stack::StackError;
use crate::thread::{Body, Inner, Thread};

const OPEN: u32 = 0;
const AWAITED: u32 = 1;
const DETACHED: u32 = 2;
const DONE: u32 = 3;

/// What a thread returned, or panicked with.
pub(crate) type Outcome<T> = Result<T, Payload>;

enum Stage<F, T> {
    ToRun(F),
    /// It runs, or all is over.
    Empty,
    Done(Outcome<T>),
}

/// A thread that runs an `F`, which returns a `T`.
pub(crate) struct Packet<F, T> {
    inner: Inner,
    end: AtomicU32,
    stage: UnsafeCell<Stage<F, T>>,
    joiner: UnsafeCell<Option<Thread>>,
    scope: Option<Arc<Bounds>>,
}

// SAFETY: `stage` and `joiner` have one user at a time (Invariants 1 and 2), perhaps on another kernel thread than the last.
unsafe impl<F: Send, T: Send> Send for Packet<F, T> {}
// SAFETY: likewise.
unsafe impl<F: Send, T: Send> Sync for Packet<F, T> {}

/// What a handle sees of it.
pub(crate) trait Yields<T>: Body {
    /// Whether the thread has ended.
    fn is_done(&self) -> bool;

    /// Has `joiner` called when the thread has ended; `false` if it has already.
    ///
    /// # Safety
    ///
    /// By the one handle, once.
    unsafe fn await_by(&self, joiner: Thread) -> bool;

    /// What has come of it.
    ///
    /// # Safety
    ///
    /// By the one handle, once, when it is done.
    unsafe fn take(&self) -> Outcome<T>;

    /// The handle is dropped. Also after `take`.
    ///
    /// # Safety
    ///
    /// By the one handle, as the last it does.
    unsafe fn detach(&self);
}

impl<F: FnOnce() -> T, T> Packet<F, T> {
    pub(crate) fn new(inner: Inner, scope: Option<Arc<Bounds>>, body: F) -> Self {
        Self {
            inner,
            end: AtomicU32::fresh(OPEN),
            stage: UnsafeCell::new(Stage::ToRun(body)),
            joiner: UnsafeCell::new(None),
            scope,
        }
    }

    /// # Safety
    ///
    /// The stage is the caller's (Invariant 1).
    unsafe fn stage(&self, next: Stage<F, T>) -> Stage<F, T> {
        // SAFETY: the caller's promise.
        self.stage.with_mut(|stage| unsafe { mem::replace(&mut *stage, next) })
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Body for Packet<F, T> {
    fn inner(&self) -> &Inner {
        &self.inner
    }

    unsafe fn run(&self) {
        // SAFETY: the thread's own, by the caller's promise.
        let Stage::ToRun(body) = (unsafe { self.stage(Stage::Empty) }) else {
            unreachable!("a thread runs once")
        };
        let mut outcome = panic::catch_unwind(AssertUnwindSafe(body));
        if let Some(payload) = self.inner.locals().end() {
            match mem::replace(&mut outcome, Err(payload)) {
                Ok(value) => dropping(value).into_iter().for_each(discard),
                // The first is told.
                first => discard(mem::replace(&mut outcome, first).err().expect("put there above")),
            }
        }
        self.end(outcome);
    }

    fn refuse(&self, error: StackError) {
        // SAFETY: the thread's own: it does not run.
        let stage = unsafe { self.stage(Stage::Empty) };
        dropping(stage).into_iter().for_each(discard);
        self.end(Err(Box::new(error)));
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Packet<F, T> {
    /// The thread's last act. What is left of `F` has been dropped.
    fn end(&self, outcome: Outcome<T>) {
        if let (Err(_), Some(scope)) = (&outcome, &self.scope) {
            scope.panicked();
        }
        // SAFETY: still the thread's (Invariant 1).
        drop(unsafe { self.stage(Stage::Done(outcome)) });
        // Release: pairs with the Acquire of `is_done`. Acquire: pairs with the Release of `await_by`.
        match self.end.swap(DONE, Ordering::AcqRel) {
            AWAITED => {
                // SAFETY: the thread's by now (Invariant 2).
                let joiner = self.joiner.with_mut(|joiner| unsafe { (*joiner).take() });
                joiner.into_iter().for_each(Thread::call_by);
            }
            DETACHED => {
                // SAFETY: the thread's, as the handle is gone (Invariant 1).
                let stage = unsafe { self.stage(Stage::Empty) };
                dropping(stage).into_iter().for_each(discard);
                // That may have made new ones.
                self.inner.locals().end().into_iter().for_each(discard);
            }
            _ => {}
        }
        if let Some(scope) = &self.scope {
            scope.ended();
        }
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Yields<T> for Packet<F, T> {
    fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `end`.
        self.end.load(Ordering::Acquire) == DONE
    }

    unsafe fn await_by(&self, joiner: Thread) -> bool {
        // SAFETY: the handle's (Invariant 2).
        self.joiner.with_mut(|place| unsafe { *place = Some(joiner) });
        // Release: the joiner. Acquire on failure: pairs with the Release of `end`.
        self.end.compare_exchange(OPEN, AWAITED, Ordering::Release, Ordering::Acquire).is_ok()
    }

    unsafe fn take(&self) -> Outcome<T> {
        // SAFETY: the handle's by now (Invariant 1).
        let Stage::Done(outcome) = (unsafe { self.stage(Stage::Empty) }) else {
            unreachable!("taken once, when it is done")
        };
        if let (Err(_), Some(scope)) = (&outcome, &self.scope) {
            scope.told();
        }
        outcome
    }

    unsafe fn detach(&self) {
        let open = || {
            // Relaxed: the thread reads nothing of the handle's. Acquire on failure: pairs with the Release of `end`.
            self.end.compare_exchange(OPEN, DETACHED, Ordering::Relaxed, Ordering::Acquire)
        };
        if self.is_done() || open() == Err(DONE) {
            // SAFETY: the handle's by now (Invariant 1).
            let stage = unsafe { self.stage(Stage::Empty) };
            // As the thread does it: whether it or the handle came first, nobody is told.
            dropping(stage).into_iter().for_each(discard);
        }
    }
}
