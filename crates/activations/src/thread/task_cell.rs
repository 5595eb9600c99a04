//! A spawned thread: what it is to run, and what has come of it, in one allocation.
//!
//! Why one: it is the only thing that a thread which never blocks asks the allocator for.
//!
//! # Invariants
//!
//! 1. `stage` is whose the result is (Invariant 4 of `completion.rs`), and `scope` the thread's until it ends.
//! 2. What `F` and `T` borrow is alive until the thread's scope knows of its end, which is the last that the thread does; and a handle is gone before the
//!    scope ends, or is never dropped. After that there is neither an `F` nor a `T` in `stage`.

use core::mem;
use core::ptr::NonNull;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use machine::cell::UnsafeCell;

use crate::thread::completion::{Completed, CompletionNotice};
use crate::thread::handle::{ThreadBody, Handle};
use crate::thread::home::ThreadHome;
use crate::thread::panics::{Payload, discard, dropping};
use crate::api::scope::ScopeData;
use crate::thread::stacks::StackError;
use crate::thread::header::{Header, Attributes, Thread};

/// What a thread returned, or panicked with.
pub(crate) type ThreadResult<T> = Result<T, Payload>;

enum Stage<F, T> {
    ToRun(F),
    /// It runs, or all is over.
    Empty,
    Done(ThreadResult<T>),
}

/// A thread that runs an `F`, which returns a `T`.
#[repr(C)]
pub(crate) struct TaskCell<F, T> {
    header: Header,
    scope: UnsafeCell<Option<Arc<ScopeData>>>,
    stage: UnsafeCell<Stage<F, T>>,
}

// SAFETY: `stage` and `scope` have one user at a time (Invariant 1), perhaps on another kernel thread than the last.
unsafe impl<F: Send, T: Send> Send for TaskCell<F, T> {}
// SAFETY: likewise.
unsafe impl<F: Send, T: Send> Sync for TaskCell<F, T> {}

impl<F: FnOnce() -> T + Send, T: Send> TaskCell<F, T> {
    /// A new thread.
    #[inline]
    pub(crate) fn thread(
        attributes: Attributes,
        home: ThreadHome,
        scope: Option<Arc<ScopeData>>,
        body: F,
    ) -> Thread {
        // In its place at once.
        let cell = Box::write(
            Box::new_uninit(),
            Self {
                header: Header::new(Self::VTABLE, attributes, home),
                scope: UnsafeCell::new(scope),
                stage: UnsafeCell::new(Stage::ToRun(body)),
            },
        );
        Thread::new(Handle::new(cell))
    }

    /// What has come of the thread. The own share is given up.
    ///
    /// # Safety
    ///
    /// `header` is that of such a thread, and has ended. By the one handle, as the last it does.
    pub(crate) unsafe fn take(header: NonNull<Header>) -> ThreadResult<T> {
        // SAFETY: the handle's by now (Invariant 1 of `completion.rs`).
        let _own = unsafe { Thread::from_pointer(header) };
        // SAFETY: the caller's promise.
        let cell = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the handle's by now (Invariant 1).
        let Stage::Done(outcome) = (unsafe { cell.stage(Stage::Empty) }) else {
            unreachable!("taken once, when it is done")
        };
        outcome
    }

    /// # Safety
    ///
    /// The stage is the caller's (Invariant 1).
    unsafe fn stage(&self, next: Stage<F, T>) -> Stage<F, T> {
        // SAFETY: the caller's promise.
        self.stage.with_mut(|stage| unsafe { mem::replace(&mut *stage, next) })
    }

    /// Drops what is there.
    ///
    /// # Safety
    ///
    /// The stage is the caller's (Invariant 1).
    unsafe fn clear(&self) {
        // SAFETY: the caller's promise.
        let stage = unsafe { self.stage(Stage::Empty) };
        // As the thread does it: whether it or the handle came first, nobody is told.
        dropping(stage).into_iter().for_each(discard);
    }

    /// Keeps what has come of it. What was there before it is dropped, and a panic of that is lost.
    ///
    /// # Safety
    ///
    /// The stage is the caller's (Invariant 1).
    unsafe fn keep(&self, outcome: ThreadResult<T>) {
        // SAFETY: the caller's promise.
        match unsafe { self.stage(Stage::Done(outcome)) } {
            Stage::Empty => {}
            before => dropping(before).into_iter().for_each(discard),
        }
    }

    /// The thread's last act: what has come of it is kept.
    ///
    /// # Safety
    ///
    /// As [`ThreadBody::run`].
    unsafe fn end(this: NonNull<Self>, panicked: bool) -> CompletionNotice {
        // SAFETY: not before the exchange below does it go.
        let cell = unsafe { this.as_ref() };
        // SAFETY: the thread's (Invariant 1).
        let scope = cell.scope.with_mut(|scope| unsafe { (*scope).take() });
        if let (true, Some(scope)) = (panicked, &scope) {
            scope.panicked();
        }
        match cell.header.completion().end() {
            Completed::HandleOwns(joiner) => CompletionNotice { joiner, scope },
            Completed::Detached => {
                // SAFETY: the thread's, as the handle is gone (Invariant 1).
                unsafe { cell.clear() };
                // That may have made new ones.
                cell.header.locals().end().into_iter().for_each(discard);
                // SAFETY: its own share, of which nobody else knows any more (Invariant 1 of `completion.rs`).
                drop(unsafe { Thread::from_pointer(this.cast()) });
                CompletionNotice { joiner: None, scope }
            }
        }
    }
}

// SAFETY: it begins with an `Header` that is given its vtable.
unsafe impl<F: FnOnce() -> T + Send, T: Send> ThreadBody for TaskCell<F, T> {
    unsafe fn run(this: NonNull<Self>) -> CompletionNotice {
        // SAFETY: it has not ended.
        let cell = unsafe { this.as_ref() };
        let body = || {
            // SAFETY: the thread's own, by the caller's promise.
            let Stage::ToRun(body) = (unsafe { cell.stage(Stage::Empty) }) else {
                unreachable!("a thread runs once")
            };
            let value = body();
            // SAFETY: likewise. Here, so that it is moved once.
            unsafe { cell.keep(Ok(value)) };
        };
        let mut panicked = panic::catch_unwind(AssertUnwindSafe(body)).err();
        if let Some(payload) = cell.header.locals().end() {
            match &panicked {
                None => panicked = Some(payload),
                // The first is told.
                Some(_) => discard(payload),
            }
        }
        let panics = panicked.is_some();
        if let Some(payload) = panicked {
            // SAFETY: likewise.
            unsafe { cell.keep(Err(payload)) };
        }
        // SAFETY: the caller's promise.
        unsafe { Self::end(this, panics) }
    }

    unsafe fn refuse(this: NonNull<Self>, error: StackError) -> CompletionNotice {
        // SAFETY: it has not ended.
        let cell = unsafe { this.as_ref() };
        // SAFETY: the thread's own: it does not run.
        unsafe { cell.keep(Err(Box::new(error))) };
        // SAFETY: the caller's promise.
        unsafe { Self::end(this, true) }
    }

    unsafe fn discard(this: NonNull<Self>) {
        // SAFETY: it is there until the handle, which calls, has given up its share.
        let cell = unsafe { this.as_ref() };
        // SAFETY: the handle's by now (Invariant 1).
        unsafe { cell.clear() };
    }
}
