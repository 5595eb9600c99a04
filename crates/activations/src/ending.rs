//! The end of a thread: one word, by which the thread and its claim, the right to join it, agree who is told of it and who cleans up.
//!
//! | word | meaning | left by |
//! | --- | --- | --- |
//! | `OPEN` | it has not ended | the thread, for `DONE`; who joins, for itself; a claim that is dropped, for `DETACHED` |
//! | a thread | likewise, and that is to be called | the thread, for `DONE` |
//! | `DETACHED` | it has not ended, or has just done so, and nobody wants what comes of it | nobody |
//! | `DONE` | it has ended, and the result is there | nobody |
//!
//! Why they have one share together: one of the two is the later, and the word says which. A share each would cost each thread a locked instruction more.
//!
//! # Invariants
//!
//! 1. A thread and its claim have one share (`shares.rs`) together, the thread's *own*. It is given up by the thread if its exchange finds `DETACHED`, else
//!    by the claim: the thread touches nothing of itself after an exchange that has found anything else.
//! 2. Until then the own share goes around with the thread: who runs it has it, then the queue in which it is ready; and while it is asleep its state
//!    (`thread.rs`), from which who wakes it takes it.
//! 3. The result belongs to the thread until its exchange; then to whoever gives up the own share.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | the thread's exchange | Release | the Acquire of `is_done`, and of a claim whose exchange fails: the result, and all that the thread did to itself |
//! | | Acquire | the Release of `await_by`: who waits; and of `detach`: all that the claim did to the thread |

use core::ptr::{self, NonNull};
use std::sync::Arc;

use machine::atomic::{AtomicPtr, Fresh, Ordering};

use crate::scope::Bounds;
use crate::thread::{Inner, Thread};

const OPEN: *mut Inner = ptr::null_mut();
/// Addresses of no thread.
const DONE: *mut Inner = ptr::without_provenance_mut(1);
const DETACHED: *mut Inner = ptr::without_provenance_mut(2);

/// The word.
pub(crate) struct Ending(AtomicPtr<Inner>);

/// What a thread finds that ends.
pub(crate) enum Last {
    /// The rest is the claim's. Who waits for the end, if anybody does.
    Claim(Option<Thread>),
    /// There is no claim any more: the rest is the thread's.
    Own,
}

impl Ending {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::fresh(OPEN))
    }

    /// The thread ends. By the thread, once.
    pub(crate) fn end(&self) -> Last {
        // Release and Acquire: see the header.
        match self.0.swap(DONE, Ordering::AcqRel) {
            DETACHED => Last::Own,
            joiner => {
                // SAFETY: `OPEN`, or the share that `await_by` has put there.
                let thread = |joiner| unsafe { Thread::from_pointer(joiner) };
                Last::Claim(NonNull::new(joiner).map(thread))
            }
        }
    }

    /// Whether the thread has ended. By the claim.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `end`.
        self.0.load(Ordering::Acquire) == DONE
    }

    /// Has `joiner` called when the thread has ended; `false` if it has already. By the claim, once.
    pub(crate) fn await_by(&self, joiner: Thread) -> bool {
        let joiner = joiner.into_pointer();
        // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
        let word = &self.0;
        let waits = word
            .compare_exchange(OPEN, joiner.as_ptr(), Ordering::Release, Ordering::Acquire)
            .is_ok();
        if !waits {
            // SAFETY: the share that has just been given, and that nobody has taken.
            drop(unsafe { Thread::from_pointer(joiner) });
        }
        waits
    }

    /// The claim goes; whether the thread had ended, so that the rest is the claim's. By the claim, as the last it does if not.
    pub(crate) fn detach(&self) -> bool {
        // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
        let exchange =
            || self.0.compare_exchange(OPEN, DETACHED, Ordering::Release, Ordering::Acquire);
        self.is_done() || exchange().is_err()
    }
}

/// Who is to be told that a thread has ended, when it is not needed any more.
#[must_use]
#[derive(Default)]
pub(crate) struct News {
    pub(crate) joiner: Option<Thread>,
    pub(crate) scope: Option<Arc<Bounds>>,
}

impl News {
    pub(crate) fn tell(self) {
        if let Some(joiner) = self.joiner {
            joiner.call();
        }
        if let Some(scope) = self.scope {
            scope.ended();
        }
    }
}
