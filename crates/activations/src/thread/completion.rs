//! The end of a thread: one word, by which the thread and its handle, the right to join it, agree who is told of it and who cleans up.
//!
//! | word | meaning | left by |
//! | --- | --- | --- |
//! | `OPEN` | it has not ended | the thread, for `DONE`; who joins, for itself; a handle that is dropped, for `DETACHED` |
//! | a thread | likewise, and that is to be told | the thread, for `DONE` |
//! | `DETACHED` | likewise, and nobody wants what comes of it | the thread, for `DONE` |
//! | `DONE` | it has ended, and the result is there, if anybody wants it | nobody |
//!
//! Why they have one share together: one of the two is the later, and the word says which. A share each would cost each thread a locked instruction more.
//!
//! # Invariants
//!
//! 1. A thread and its handle have one share (`shares.rs`) together, the thread's *own*. It is given up by the thread if its exchange finds `DETACHED`, else
//!    by the handle: the thread touches nothing of itself after an exchange that has found anything else.
//! 2. Until then the own share goes around with the thread: who runs it has it, then the queue in which it is ready; and while it is asleep its state
//!    (`state.rs`), from which who wakes it takes it.
//! 3. Who waits is there until it is told (Invariant 2 of `state.rs`). A kernel thread is woken after that, so the word has a share of it.
//! 4. The result belongs to the thread until its exchange; then to whoever gives up the own share.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | the thread's exchange | Release | the Acquire of `is_done`, and of a handle whose exchange fails: the result, and all that the thread did to itself |
//! | | Acquire | the Release of `await_by`: who waits; and of `detach`: all that the handle did to the thread |

use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use std::sync::Arc;

use machine::atomic::{AtomicPtr, Fresh, Ordering};

use crate::thread::home::ThreadHome;
use crate::api::scope::ScopeData;
use crate::thread::park_state::WakeReason;
use crate::thread::header::{Header, Thread};

const OPEN: *mut Header = ptr::null_mut();
/// Addresses of no thread.
const DONE: *mut Header = ptr::without_provenance_mut(1);
const DETACHED: *mut Header = ptr::without_provenance_mut(2);

/// The word.
pub(crate) struct Completion(AtomicPtr<Header>);

/// What a thread finds that ends.
pub(crate) enum Completed {
    /// The rest is the handle's. Who waits for the end, if anybody does.
    RawJoinHandle(Option<Joiner>),
    /// There is no handle any more: the rest is the thread's.
    Own,
}

impl Completion {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::fresh(OPEN))
    }

    /// The thread ends. By the thread, once.
    pub(crate) fn end(&self) -> Completed {
        // Release and Acquire: see the header.
        match self.0.swap(DONE, Ordering::AcqRel) {
            DETACHED => Completed::Detached,
            joiner => Completed::HandleOwns(NonNull::new(joiner).map(Joiner)),
        }
    }

    /// Whether the thread has ended. By the handle.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `end`.
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Has `joiner` told of the end; `false` if the thread has ended already. By the handle, once.
    ///
    /// # Safety
    ///
    /// `joiner` is the calling thread, and does not go on before it is told.
    pub(crate) unsafe fn await_by(&self, joiner: &Thread) -> bool {
        let waits = Joiner::new(joiner);
        // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
        let (word, pointer) = (&self.0, waits.0.as_ptr());
        let asked = word.compare_exchange(OPEN, pointer, Ordering::Release, Ordering::Acquire);
        if asked.is_err() {
            waits.leave();
        }
        asked.is_ok()
    }

    /// The handle goes; whether the thread had ended, so that the rest is the handle's. By the handle, as the last it does if not.
    pub(crate) fn detach(&self) -> bool {
        // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
        let exchange =
            || self.0.compare_exchange(OPEN, DETACHED, Ordering::Release, Ordering::Acquire);
        self.is_done() || exchange().is_err()
    }
}

/// Who waits for an end (Invariant 3).
pub(crate) struct Joiner(NonNull<Header>);

impl Joiner {
    fn new(thread: &Thread) -> Self {
        match thread.header().home() {
            ThreadHome::Kernel => Self(thread.clone().into_pointer()),
            ThreadHome::Runtime(_) => Self(thread.pointer()),
        }
    }

    /// Tells it.
    fn wake(self) {
        let leaves = self.shares();
        self.thread().wake_for(WakeReason::Completion);
        drop(leaves);
    }

    /// It is not to be told.
    fn leave(self) {
        drop(self.shares());
    }

    fn thread(&self) -> ManuallyDrop<Thread> {
        // SAFETY: it is there until it is told, and this is dropped by `shares` only.
        ManuallyDrop::new(unsafe { Thread::from_pointer(self.0) })
    }

    /// The share that there is of a kernel thread.
    fn shares(&self) -> Option<Thread> {
        let thread = self.thread();
        matches!(thread.header().home(), ThreadHome::Kernel).then(|| ManuallyDrop::into_inner(thread))
    }
}

/// Who is to be told that a thread has ended, when it is not needed any more.
#[must_use]
pub(crate) struct CompletionNotice {
    pub(crate) joiner: Option<Joiner>,
    pub(crate) scope: Option<Arc<ScopeData>>,
}

impl CompletionNotice {
    pub(crate) fn wake(self) {
        if let Some(joiner) = self.joiner {
            joiner.wake();
        }
        if let Some(scope) = self.scope {
            scope.ended();
        }
    }
}
