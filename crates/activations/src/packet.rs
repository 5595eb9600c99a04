//! A spawned thread: what it is to run, and what has come of it, in one allocation.
//!
//! Why one: it is the only thing that a thread which never blocks asks the allocator for.
//!
//! | `end` | meaning | left by |
//! | --- | --- | --- |
//! | `OPEN` | it has not ended | the thread, for `DONE`; who joins, for `AWAITED`; who drops the handle, for `DETACHED` |
//! | `AWAITED` | likewise, and `joiner` is to be woken | the thread, for `DONE` |
//! | `DETACHED` | likewise, and nobody wants the result | the thread, for `DONE` |
//! | `DONE` | it has ended, and the result is there, or was not wanted | nobody |
//!
//! # Invariants
//!
//! 1. `stage` belongs to the thread until `DONE`, then to its one [`JoinHandle`](crate::JoinHandle), unless that had gone before.
//! 2. `joiner` belongs to the handle until `AWAITED`, then to the thread.
//! 3. Whoever has the stage last leaves nothing of the user's in it: the packet's memory is freed where no code of the user may run.

use core::mem;
use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;

use crate::stack::StackError;
use crate::thread::{Body, Inner, Thread};

const OPEN: u32 = 0;
const AWAITED: u32 = 1;
const DONE: u32 = 2;
const DETACHED: u32 = 3;

/// What a thread returned, or panicked with.
pub(crate) type Outcome<T> = Result<T, Box<dyn Any + Send>>;

enum Stage<F, T> {
    ToRun(F),
    Running,
    Done(Outcome<T>),
}

/// A thread that runs an `F`, which returns a `T`.
pub(crate) struct Packet<F, T> {
    inner: Inner,
    end: AtomicU32,
    stage: UnsafeCell<Stage<F, T>>,
    joiner: UnsafeCell<Option<Thread>>,
}

// SAFETY: `stage` and `joiner` have one user at a time (Invariants 1 and 2), perhaps on another kernel thread than the last.
unsafe impl<F: Send, T: Send> Send for Packet<F, T> {}
// SAFETY: likewise.
unsafe impl<F: Send, T: Send> Sync for Packet<F, T> {}

/// What a handle sees of it.
pub(crate) trait Yields<T>: Body {
    /// Whether the thread has ended.
    fn is_done(&self) -> bool;

    /// Has `joiner` woken when the thread has ended; `false` if it has already.
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

    /// Nobody wants what comes of it; drops it if it is there.
    ///
    /// # Safety
    ///
    /// By the one handle, as its last act.
    unsafe fn detach(&self);
}

impl<F: FnOnce() -> T, T> Packet<F, T> {
    pub(crate) fn new(inner: Inner, body: F) -> Self {
        Self {
            inner,
            end: AtomicU32::fresh(OPEN),
            stage: UnsafeCell::new(Stage::ToRun(body)),
            joiner: UnsafeCell::new(None),
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
        let Stage::ToRun(body) = (unsafe { self.stage(Stage::Running) }) else {
            unreachable!("a thread runs once")
        };
        self.end(panic::catch_unwind(AssertUnwindSafe(body)));
    }

    fn refuse(&self, error: StackError) {
        self.end(Err(Box::new(error)));
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Packet<F, T> {
    /// The thread's last act.
    fn end(&self, outcome: Outcome<T>) {
        // SAFETY: still the thread's (Invariant 1).
        let before = unsafe { self.stage(Stage::Done(outcome)) };
        drop_quietly(before);
        // Release: pairs with the Acquire of `is_done`. Acquire: pairs with the Release of `await_by`.
        match self.end.swap(DONE, Ordering::AcqRel) {
            AWAITED => {
                // SAFETY: the thread's by now (Invariant 2).
                let joiner = self.joiner.with_mut(|joiner| unsafe { (*joiner).take() });
                if let Some(joiner) = joiner {
                    joiner.unpark();
                }
            }
            DETACHED => {
                // SAFETY: the handle has gone (Invariant 1).
                let outcome = unsafe { self.stage(Stage::Running) };
                drop_quietly(outcome);
            }
            _ => {}
        }
    }
}

/// Drops what is the user's. If that panics, the hook has said so; nobody can be handed what it panicked with, and dropping that might panic again.
fn drop_quietly<V>(value: V) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(value))) {
        mem::forget(payload);
    }
}

impl<F: FnOnce() -> T + Send, T: Send> Yields<T> for Packet<F, T> {
    fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `run`.
        self.end.load(Ordering::Acquire) == DONE
    }

    unsafe fn await_by(&self, joiner: Thread) -> bool {
        // SAFETY: the handle's (Invariant 2).
        self.joiner.with_mut(|place| unsafe { *place = Some(joiner) });
        // Release: the joiner. Acquire on failure: pairs with the Release of `run`.
        self.end.compare_exchange(OPEN, AWAITED, Ordering::Release, Ordering::Acquire).is_ok()
    }

    unsafe fn take(&self) -> Outcome<T> {
        // SAFETY: the handle's by now (Invariant 1).
        match unsafe { self.stage(Stage::Running) } {
            Stage::Done(outcome) => outcome,
            _ => unreachable!("taken once, when it is done"),
        }
    }

    unsafe fn detach(&self) {
        // Relaxed: the thread reads nothing of the handle's. Acquire on failure: pairs with the Release of `end`.
        let seen = self.end.compare_exchange(OPEN, DETACHED, Ordering::Relaxed, Ordering::Acquire);
        if seen == Err(DONE) {
            // SAFETY: the handle's by now (Invariant 1).
            drop(unsafe { self.stage(Stage::Running) });
        }
    }
}
