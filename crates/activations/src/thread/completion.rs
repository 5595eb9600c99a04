//! The end of a thread: one word, on which the thread and its join handle agree.
//!
//! The thread and its join handle have one reference to the header together. The word says which of
//! the two comes later, and therefore frees it. A reference each would cost each thread one more
//! locked instruction.
//!
//! - `OPEN`. Meaning: the thread has not ended. Changed by: the thread, to `DONE`; a joiner, to
//!   its own address; a handle that is dropped, to `DETACHED`.
//! - a thread. Meaning: the same, and this thread waits for the end. Changed by: the ending
//!   thread, to `DONE`.
//! - `DETACHED`. Meaning: the same, and the handle is gone. Changed by: the ending thread, to
//!   `DONE`.
//! - `DONE`. Meaning: the thread has ended, and its result is there if the handle is. Changed by:
//!   final.
//!
//! ```text
//!          join: the joiner's address
//!        ┌─────────────► joiner ────────┐
//! OPEN ──┤                              ├──► DONE
//!        ├─────────────► DETACHED ──────┤
//!        │  drop of the handle          │
//!        └──────────────────────────────┘
//!                   the thread ends
//! ```
//!
//! # Invariants
//!
//! 1. A thread and its join handle share one reference to the header, the thread's *own* reference.
//!    If the thread's exchange finds `DETACHED`, the thread drops it. Otherwise the handle does:
//!    the thread touches nothing of itself after an exchange that has found anything else.
//! 2. Until then the own reference travels with the thread. The worker that runs the thread has it,
//!    then the queue in which the thread is ready. While the thread is parked, its park state has
//!    it (`park_state.rs`), and the thread that wakes it takes it from there.
//! 3. A joiner stays until it is notified (Invariant 2 of `park_state.rs`). A kernel thread is
//!    woken after that, so the word has a reference of its own to a joiner that is a kernel
//!    thread.
//! 4. The result belongs to the thread until its exchange, and then to the side that drops the own
//!    reference.
//!
//! # Orderings
//!
//! - the thread's exchange in `end`. Ordering: Release. Partner: the Acquire of `is_done`, and of
//!   a failed exchange by the handle: the result, and all that the thread did to itself.
//! - the thread's exchange in `end`. Ordering: Acquire. Partner: the Release of `await_by`: the
//!   joiner; and of `detach`: all that the handle did to the thread.

use core::ptr::{self, NonNull};

use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering};

/// The word. `H` is the header of a thread.
pub struct Completion<H>(AtomicPtr<H>);

/// The finding of a thread that ends.
pub(crate) enum Completed<H> {
    /// The join handle drops the own reference. The joiner, if one waits.
    HandleOwns(Option<NonNull<H>>),
    /// The join handle is gone: the thread drops the own reference.
    Detached,
}

impl<H> Completion<H> {
    const OPEN: *mut H = ptr::null_mut();
    // Addresses that no header has.
    const DONE: *mut H = ptr::without_provenance_mut(1);
    const DETACHED: *mut H = ptr::without_provenance_mut(2);

    pub(crate) fn new() -> Self {
        Self(AtomicPtr::fresh(Self::OPEN))
    }

    /// Ends the thread. Called by the thread, once.
    pub(crate) fn end(&self) -> Completed<H> {
        // AcqRel: see the header.
        let before = self.0.swap(Self::DONE, Ordering::AcqRel);
        if before == Self::DETACHED {
            Completed::Detached
        } else {
            Completed::HandleOwns(NonNull::new(before))
        }
    }

    /// Returns whether the thread has ended. Called by the join handle.
    #[inline]
    pub fn is_done(&self) -> bool {
        // Acquire: pairs with the Release of `end`.
        self.0.load(Ordering::Acquire) == Self::DONE
    }

    /// Registers the joiner; returns `false` if the thread has ended already. Called by the join
    /// handle, once.
    pub(crate) fn await_by(&self, joiner: NonNull<H>) -> bool {
        // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
        let (word, joiner) = (&self.0, joiner.as_ptr());
        word.compare_exchange(Self::OPEN, joiner, Ordering::Release, Ordering::Acquire).is_ok()
    }

    /// Gives the join handle up. Returns whether the thread had ended, so that the caller drops the
    /// own reference. Otherwise this is the last use of the thread by the join handle.
    pub fn detach(&self) -> bool {
        let exchange = || {
            let word = &self.0;
            // Release: pairs with the Acquire of `end`. Acquire on failure: pairs with its Release.
            word.compare_exchange(Self::OPEN, Self::DETACHED, Ordering::Release, Ordering::Acquire)
        };
        self.is_done() || exchange().is_err()
    }
}
