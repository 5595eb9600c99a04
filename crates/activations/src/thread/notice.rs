//! The threads that are told when a thread ends: its joiner, and the thread that waits for a scope.
//!
//! # Invariants
//!
//! 1. A scope is not left before `running` is zero, neither by return nor by panic. It counts its
//!    threads itself, so a join handle may be forgotten.
//! 2. A thread is counted before it can end. The thread that counts it is counted itself, or is the
//!    scope's body. So the count does not come back from zero.
//! 3. A thread leaves the count when nothing of its closure is left, and of its result only the
//!    part that its join handle owns (Invariant 2 of `task_cell.rs`).
//!
//! Orderings of the count: the last `leave` is a Release, and pairs with the Acquire of the
//! `has_ended` that finds zero.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use std::sync::Arc;

use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use super::handle::Thread;
use super::header::Header;
use super::home::ThreadHome;
use super::park_state::WakeReason;

/// The thread that waits for an end (Invariant 3 of `completion.rs`). For a kernel thread this is a
/// reference.
pub(crate) struct Joiner(NonNull<Header>);

impl Joiner {
    pub(super) fn new(thread: &Thread) -> Self {
        match thread.header().home() {
            ThreadHome::Kernel => Self(thread.clone().into_pointer()),
            ThreadHome::Runtime(_) => Self(thread.pointer()),
        }
    }

    /// Wakes the joiner.
    fn wake(self) {
        let reference = self.reference();
        self.thread().wake_for(WakeReason::Completion);
        drop(reference);
    }

    /// Gives up the reference to a joiner that is not to be woken.
    pub(super) fn withdraw(self) {
        drop(self.reference());
    }

    pub(super) fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    pub(super) fn from_pointer(pointer: NonNull<Header>) -> Self {
        Self(pointer)
    }

    fn thread(&self) -> ManuallyDrop<Thread> {
        // SAFETY: the joiner stays until it is woken, and only `reference` drops this.
        ManuallyDrop::new(unsafe { Thread::from_pointer(self.0) })
    }

    /// Returns the reference that there is to a kernel thread.
    fn reference(&self) -> Option<Thread> {
        let thread = self.thread();
        let is_kernel = matches!(thread.header().home(), ThreadHome::Kernel);
        is_kernel.then(|| ManuallyDrop::into_inner(thread))
    }
}

/// The count that the threads of a scope share with it. (std's name for it.)
pub struct ScopeData {
    /// Threads of the scope that have not ended. Raised by the thread that spawns, lowered by the
    /// thread that ends.
    running: AtomicUsize,
    /// Threads that have panicked, less the panics that a join handle has reported.
    panics: AtomicUsize,
    /// The thread that waits for the scope's end.
    waiter: Thread,
}

impl ScopeData {
    /// Returns a count of zero. `waiter` is the thread that waits for the scope's end.
    pub fn new(waiter: Thread) -> Self {
        Self { running: AtomicUsize::fresh(0), panics: AtomicUsize::fresh(0), waiter }
    }

    /// Counts a thread that is about to be made ready.
    pub fn enter(&self) {
        // Relaxed: the thread is handed on with a Release.
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a panic of a thread that has not left yet.
    pub(super) fn count_panic(&self) {
        // Relaxed: `leave` follows.
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back the count of one panic, which a join handle has reported.
    pub(crate) fn panic_reported(&self) {
        // Relaxed: join handles are used before the scope ends, by its body or by threads that
        // leave afterwards.
        self.panics.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the end of a thread. The scope may be gone after this.
    fn leave(&self) {
        // Release: see the header. The other ends are in the release sequence that the last one
        // completes.
        if self.running.fetch_sub(1, Ordering::Release) == 1 {
            self.waiter.notify();
        }
    }

    /// Returns whether all threads have ended.
    pub fn has_ended(&self) -> bool {
        // Acquire: see the header.
        self.running.load(Ordering::Acquire) == 0
    }

    /// Returns whether a panic is left that no join handle has reported.
    pub(crate) fn has_panicked(&self) -> bool {
        // Relaxed: after the Acquire of `has_ended`.
        self.panics.load(Ordering::Relaxed) != 0
    }

    /// Returns the number of threads that have not ended, for display.
    pub(crate) fn running(&self) -> usize {
        // Relaxed: out of date when it is returned.
        self.running.load(Ordering::Relaxed)
    }
}

/// The threads to tell that a thread has ended. They are told when the thread is not needed any
/// more.
#[must_use]
pub struct CompletionNotice {
    /// The thread that joins it.
    pub(super) joiner: Option<Joiner>,
    /// The scope that it belongs to.
    pub(super) scope: Option<Arc<ScopeData>>,
}

impl CompletionNotice {
    /// Wakes the joiner, and lowers the scope's count.
    pub fn send(self) {
        if let Some(joiner) = self.joiner {
            joiner.wake();
        }
        if let Some(scope) = self.scope {
            scope.leave();
        }
    }
}
