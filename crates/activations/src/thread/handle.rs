//! What a handle of a thread points to, and what can be done with it by whoever does not know what the thread runs.
//!
//! ```text
//!           ThreadBody: TaskCell<F, T>, or a kernel thread's
//! Handle ──► Header  shares, vtable ──► run, refuse, discard, free: of that type
//!            F, or what has come of it
//! ```
//!
//! Why not an `Arc` of a trait object: what all threads have would be behind a call, the object would be moved to its place once it is made, and the
//! thread and its handle would need a share each (`completion.rs`).
//!
//! # Invariants
//!
//! 1. A handle points to a whole [`ThreadBody`] that was made by [`Handle::new`], and stays there as long as there are shares.
//! 2. A handle is a share. Copies of one that are none are [`ManuallyDrop`](core::mem::ManuallyDrop), and whoever has one knows whose share it lives by.

use core::ptr::NonNull;

use crate::thread::completion::CompletionNotice;
use crate::thread::stacks::StackError;
use crate::thread::header::Header;

/// What a thread is to its runtime.
///
/// # Safety
///
/// It is `repr(C)`, and begins with an [`Header`] that has the [`VTABLE`](Self::VTABLE) of this type.
pub(crate) unsafe trait ThreadBody: Send + Sync + Sized {
    /// Runs what the thread is to run, and keeps what comes of it. Never unwinds.
    ///
    /// # Safety
    ///
    /// Once, by who has the thread's own share (`completion.rs`): it is used up.
    unsafe fn run(this: NonNull<Self>) -> CompletionNotice;

    /// There is no stack for it: it ends with that error instead of running.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), and instead of it.
    unsafe fn refuse(this: NonNull<Self>, error: StackError) -> CompletionNotice;

    /// Drops what has come of it, if that is still there.
    ///
    /// # Safety
    ///
    /// By the one handle, when the thread has ended.
    unsafe fn discard(this: NonNull<Self>);

    /// All that, of any type.
    const VTABLE: &'static VTable = &VTable {
        // SAFETY: the caller's promises; it is of this type, as its `Header` says so.
        run: |header| unsafe { Self::run(header.cast()) },
        // SAFETY: likewise.
        refuse: |header, error| unsafe { Self::refuse(header.cast(), error) },
        // SAFETY: likewise.
        discard: |header| unsafe { Self::discard(header.cast()) },
        // SAFETY: made by `Handle::new` from such a box, and the last handle is gone.
        free: |header| drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) }),
    };
}

/// What a [`ThreadBody`] does, by a pointer to its [`Header`].
pub(crate) struct VTable {
    pub(crate) run: unsafe fn(NonNull<Header>) -> CompletionNotice,
    pub(crate) refuse: unsafe fn(NonNull<Header>, StackError) -> CompletionNotice,
    pub(crate) discard: unsafe fn(NonNull<Header>),
    free: unsafe fn(NonNull<Header>),
}

/// A share of a body.
pub(crate) struct Handle(NonNull<Header>);

// SAFETY: a body is `Send` and `Sync`.
unsafe impl Send for Handle {}
// SAFETY: likewise.
unsafe impl Sync for Handle {}

impl Handle {
    /// The first.
    pub(crate) fn new<B: ThreadBody>(body: Box<B>) -> Self {
        Self(NonNull::from(Box::leak(body)).cast())
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: Invariant 1.
        unsafe { self.0.as_ref() }
    }

    /// What it points to.
    #[inline]
    pub(crate) fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    /// The handle whose [`pointer`](Self::pointer) that is.
    ///
    /// # Safety
    ///
    /// The share is the caller's, or it does not drop it (Invariant 2).
    #[inline]
    pub(crate) unsafe fn from_pointer(header: NonNull<Header>) -> Self {
        Self(header)
    }
}

impl Clone for Handle {
    #[inline]
    fn clone(&self) -> Self {
        self.header().shares().increment();
        Self(self.0)
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if self.header().shares().decrement() {
            let free = self.header().vtable().free;
            // SAFETY: that was the last.
            unsafe { free(self.0) };
        }
    }
}
