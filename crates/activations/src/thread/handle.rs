//! What a handle of a thread points to, and what can be done with it by whoever does not know what the thread runs.
//!
//! ```text
//!           Body: Packet<F, T>, or a kernel thread's
//! Handle ──► Inner  shares, verbs ──► run, refuse, discard, free: of that type
//!            F, or what has come of it
//! ```
//!
//! Why not an `Arc` of a trait object: what all threads have would be behind a call, the object would be moved to its place once it is made, and the
//! thread and its claim would need a share each (`ending.rs`).
//!
//! # Invariants
//!
//! 1. A handle points to a whole [`Body`] that was made by [`Handle::new`], and stays there as long as there are shares.
//! 2. A handle is a share. Copies of one that are none are [`ManuallyDrop`](core::mem::ManuallyDrop), and whoever has one knows whose share it lives by.

use core::ptr::NonNull;

use crate::thread::completion::News;
use crate::thread::stacks::StackError;
use crate::thread::header::Inner;

/// What a thread is to its runtime.
///
/// # Safety
///
/// It is `repr(C)`, and begins with an [`Inner`] that has the [`VERBS`](Self::VERBS) of this type.
pub(crate) unsafe trait Body: Send + Sync + Sized {
    /// Runs what the thread is to run, and keeps what comes of it. Never unwinds.
    ///
    /// # Safety
    ///
    /// Once, by who has the thread's own share (`ending.rs`): it is used up.
    unsafe fn run(this: NonNull<Self>) -> News;

    /// There is no stack for it: it ends with that error instead of running.
    ///
    /// # Safety
    ///
    /// As [`run`](Self::run), and instead of it.
    unsafe fn refuse(this: NonNull<Self>, error: StackError) -> News;

    /// Drops what has come of it, if that is still there.
    ///
    /// # Safety
    ///
    /// By the one claim, when the thread has ended.
    unsafe fn discard(this: NonNull<Self>);

    /// All that, of any type.
    const VERBS: &'static Verbs = &Verbs {
        // SAFETY: the caller's promises; it is of this type, as its `Inner` says so.
        run: |inner| unsafe { Self::run(inner.cast()) },
        // SAFETY: likewise.
        refuse: |inner, error| unsafe { Self::refuse(inner.cast(), error) },
        // SAFETY: likewise.
        discard: |inner| unsafe { Self::discard(inner.cast()) },
        // SAFETY: made by `Handle::new` from such a box, and the last handle is gone.
        free: |inner| drop(unsafe { Box::from_raw(inner.cast::<Self>().as_ptr()) }),
    };
}

/// What a [`Body`] does, by a pointer to its [`Inner`].
pub(crate) struct Verbs {
    pub(crate) run: unsafe fn(NonNull<Inner>) -> News,
    pub(crate) refuse: unsafe fn(NonNull<Inner>, StackError) -> News,
    pub(crate) discard: unsafe fn(NonNull<Inner>),
    free: unsafe fn(NonNull<Inner>),
}

/// A share of a body.
pub(crate) struct Handle(NonNull<Inner>);

// SAFETY: a body is `Send` and `Sync`.
unsafe impl Send for Handle {}
// SAFETY: likewise.
unsafe impl Sync for Handle {}

impl Handle {
    /// The first.
    pub(crate) fn new<B: Body>(body: Box<B>) -> Self {
        Self(NonNull::from(Box::leak(body)).cast())
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: Invariant 1.
        unsafe { self.0.as_ref() }
    }

    /// What it points to.
    #[inline]
    pub(crate) fn pointer(&self) -> NonNull<Inner> {
        self.0
    }

    /// The handle whose [`pointer`](Self::pointer) that is.
    ///
    /// # Safety
    ///
    /// The share is the caller's, or it does not drop it (Invariant 2).
    #[inline]
    pub(crate) unsafe fn from_pointer(inner: NonNull<Inner>) -> Self {
        Self(inner)
    }
}

impl Clone for Handle {
    #[inline]
    fn clone(&self) -> Self {
        self.inner().shares().more();
        Self(self.0)
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        if self.inner().shares().less() {
            let free = self.inner().verbs().free;
            // SAFETY: that was the last.
            unsafe { free(self.0) };
        }
    }
}
