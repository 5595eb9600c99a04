//! The cell of a spawned thread: its header, its closure and its result in one allocation. (tokio's
//! name for it.)
//!
//! Why one allocation: it is the only thing that a thread which never blocks asks the allocator
//! for.
//!
//! ```text
//! stage    ToRun(F) ── run ──► Empty ── returns, panics ──► Done(result) ── join, drop ──► Empty
//!             └──────────── no stack: refuse ──────────────────▲
//! ```
//!
//! # Invariants
//!
//! 1. `stage` belongs to the owner of the result (Invariant 4 of `completion.rs`). `scope` belongs
//!    to the thread until it ends.
//! 2. What `F` and `T` borrow is alive until the thread's scope knows of its end, which is the
//!    thread's last act. A join handle is gone before the scope ends, or is never dropped. After
//!    that there is neither an `F` nor a `T` in `stage`.

use core::marker::PhantomData;
use core::mem;
use core::ptr::NonNull;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use stanchion_machine::cell::UnsafeCell;

use super::attributes::Attributes;
use super::completion::Completed;
use super::handle::Thread;
use super::header::{Header, ThreadCell};
use super::home::ThreadHome;
use super::notice::{CompletionNotice, Joiner, ScopeData};
use super::panics::{Payload, catch_drop, discard};
use super::scheduler::Scheduler;
use super::stacks::StackError;

/// The result of a thread, or the payload of its panic.
pub(crate) type ThreadResult<T> = Result<T, Payload>;

enum Stage<F, T> {
    ToRun(F),
    /// The thread runs, or the result has been taken.
    Empty,
    Done(ThreadResult<T>),
}

/// The cell of a thread of a runtime `S` that runs an `F`, which returns a `T`.
#[repr(C)]
pub struct TaskCell<F, T, S> {
    /// First: the header's address is that of the cell.
    header: Header,
    /// The scope that the thread belongs to. Taken by the thread when it ends.
    scope: UnsafeCell<Option<Arc<ScopeData>>>,
    /// The closure, then the result (Invariant 1).
    stage: UnsafeCell<Stage<F, T>>,
    /// The type of the state that `header.home` points to. The cell owns none.
    runtime: PhantomData<fn(S)>,
}

// SAFETY: `stage` and `scope` have one user at a time (Invariant 1), perhaps on another kernel
// thread than the last; the header is `Send`.
unsafe impl<F: Send, T: Send, S> Send for TaskCell<F, T, S> {}
// SAFETY: as above.
unsafe impl<F: Send, T: Send, S> Sync for TaskCell<F, T, S> {}

impl<F: FnOnce() -> T + Send, T: Send, S: Scheduler> TaskCell<F, T, S> {
    /// Returns a new thread of the runtime.
    #[inline]
    pub fn thread(
        attributes: Attributes,
        runtime: &Arc<S>,
        scope: Option<Arc<ScopeData>>,
        body: F,
    ) -> Thread {
        let home = ThreadHome::of(runtime, runtime.process());
        // Constructed in place.
        let cell = Box::write(
            Box::new_uninit(),
            Self {
                header: Header::new(Self::VTABLE, attributes, home),
                scope: UnsafeCell::new(scope),
                stage: UnsafeCell::new(Stage::ToRun(body)),
                runtime: PhantomData,
            },
        );
        Thread::new(cell)
    }

    /// Takes the result of the thread, and drops the own reference.
    ///
    /// # Safety
    ///
    /// `header` is that of a thread with this type of cell, which has ended. The caller is the join
    /// handle, which does not use it afterwards.
    pub unsafe fn take(header: NonNull<Header>) -> ThreadResult<T> {
        // SAFETY: the join handle owns it by now (Invariant 1 of `completion.rs`).
        let _own = unsafe { Thread::from_pointer(header) };
        // SAFETY: the caller's promise.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the join handle owns it by now (Invariant 1).
        let Stage::Done(result) = (unsafe { cell.replace_stage(Stage::Empty) }) else {
            unreachable!("taken once, after the end")
        };
        result
    }

    /// Replaces the stage.
    ///
    /// # Safety
    ///
    /// The stage belongs to the caller (Invariant 1).
    unsafe fn replace_stage(&self, next: Stage<F, T>) -> Stage<F, T> {
        // SAFETY: the caller's promise.
        self.stage.with_mut(|stage| unsafe { mem::replace(&mut *stage, next) })
    }

    /// Moves to the next stage, and drops what was there before. A panic of that drop is discarded.
    ///
    /// # Safety
    ///
    /// The stage belongs to the caller (Invariant 1).
    unsafe fn set_stage(&self, next: Stage<F, T>) {
        // SAFETY: the caller's promise.
        match unsafe { self.replace_stage(next) } {
            Stage::Empty => {}
            // The same whether the thread or its join handle does it: no thread is told of a panic.
            before => catch_drop(before).into_iter().for_each(discard),
        }
    }

    /// Ends the thread, after its result was stored.
    ///
    /// # Safety
    ///
    /// As for [`ThreadCell::run`].
    unsafe fn end(this: NonNull<Self>, has_panicked: bool) -> CompletionNotice {
        // SAFETY: it does not go before the exchange below.
        let cell = unsafe { this.as_ref() };
        // SAFETY: it belongs to the thread (Invariant 1).
        let scope = cell.scope.with_mut(|scope| unsafe { (*scope).take() });
        if let (true, Some(scope)) = (has_panicked, &scope) {
            scope.count_panic();
        }
        let joiner = match cell.header.completion().end() {
            Completed::HandleOwns(joiner) => joiner.map(Joiner::from_pointer),
            Completed::Detached => {
                // SAFETY: the join handle is gone, so it belongs to the thread (Invariant 1).
                unsafe { cell.set_stage(Stage::Empty) };
                // That drop may have made new locals.
                cell.header.locals().end().into_iter().for_each(discard);
                // SAFETY: the own reference, which no other code knows of any more (Invariant 1 of
                // `completion.rs`).
                drop(unsafe { Thread::from_pointer(this.cast()) });
                None
            }
        };
        CompletionNotice { joiner, scope }
    }
}

// SAFETY: it begins with a `Header` that is given this vtable.
unsafe impl<F: FnOnce() -> T + Send, T: Send, S: Scheduler> ThreadCell for TaskCell<F, T, S> {
    unsafe fn run(this: NonNull<Self>) -> CompletionNotice {
        // SAFETY: the thread has not ended.
        let cell = unsafe { this.as_ref() };
        let body = || {
            // SAFETY: it belongs to the thread, by the caller's promise.
            let Stage::ToRun(body) = (unsafe { cell.replace_stage(Stage::Empty) }) else {
                unreachable!("a thread runs once")
            };
            let value = body();
            // SAFETY: as above. Stored here, so that the value is moved once.
            unsafe { cell.set_stage(Stage::Done(Ok(value))) };
        };
        let mut panicked = panic::catch_unwind(AssertUnwindSafe(body)).err();
        if let Some(payload) = cell.header.locals().end() {
            match &panicked {
                None => panicked = Some(payload),
                // The first panic is reported.
                Some(_) => discard(payload),
            }
        }
        let has_panicked = panicked.is_some();
        if let Some(payload) = panicked {
            // SAFETY: as above.
            unsafe { cell.set_stage(Stage::Done(Err(payload))) };
        }
        // SAFETY: the caller's promise.
        unsafe { Self::end(this, has_panicked) }
    }

    unsafe fn refuse(this: NonNull<Self>, error: StackError) -> CompletionNotice {
        // SAFETY: the thread has not ended.
        let cell = unsafe { this.as_ref() };
        // SAFETY: it belongs to the thread, which does not run.
        unsafe { cell.set_stage(Stage::Done(Err(Box::new(error)))) };
        // SAFETY: the caller's promise.
        unsafe { Self::end(this, true) }
    }

    unsafe fn discard(this: NonNull<Self>) {
        // SAFETY: it stays until the join handle, which calls this, has dropped its reference.
        let cell = unsafe { this.as_ref() };
        // SAFETY: it belongs to the join handle by now (Invariant 1).
        unsafe { cell.set_stage(Stage::Empty) };
    }

    unsafe fn make_ready(thread: Thread) {
        let Some(runtime) = thread.header().runtime() else {
            unreachable!("`thread` has set the home")
        };
        // SAFETY: the caller's promise; `thread` was given an `S`.
        unsafe { S::make_ready(runtime, thread) };
    }
}
