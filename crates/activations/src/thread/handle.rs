//! The handle of a thread, and what other threads do with it.
//!
//! The same type stands for a kernel thread that belongs to no runtime. So whatever parks and wakes
//! threads, all of `sync` first, serves both.
//!
//! # Invariants
//!
//! 1. A handle points to the [`Header`] of a whole [`ThreadCell`] that [`Thread::new`] got. The
//!    cell stays there as long as it has references.
//! 2. A handle is a reference. A copy that is none is wrapped in [`ManuallyDrop`], and its owner
//!    knows by which reference it lives.

use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use super::header::{Header, ThreadCell};
use super::home::ThreadHome;
use super::id::ThreadId;
use super::notice::{CompletionNotice, Joiner};
use super::park_state::{Pause, WakeReason};
use super::stacks::StackError;

/// A handle of a thread: a user-level one, or a kernel thread that belongs to no runtime.
pub struct Thread(NonNull<Header>);

// SAFETY: a cell is `Send` and `Sync`.
unsafe impl Send for Thread {}
// SAFETY: as above.
unsafe impl Sync for Thread {}

impl Thread {
    /// Returns the first handle of a cell.
    #[doc(hidden)]
    pub fn new<C: ThreadCell>(cell: Box<C>) -> Self {
        Self(NonNull::from(Box::leak(cell)).cast())
    }

    /// Returns the header.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn header(&self) -> &Header {
        // SAFETY: Invariant 1.
        unsafe { self.0.as_ref() }
    }

    /// Returns the address of the header.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub fn pointer(&self) -> NonNull<Header> {
        self.0
    }

    /// Turns the reference into a pointer, for [`from_pointer`](Self::from_pointer).
    pub(super) fn into_pointer(self) -> NonNull<Header> {
        ManuallyDrop::new(self).pointer()
    }

    /// Returns the handle with this [`pointer`](Self::pointer).
    ///
    /// # Safety
    ///
    /// The reference is the caller's, or the caller does not drop the handle (Invariant 2).
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub unsafe fn from_pointer(header: NonNull<Header>) -> Self {
        Self(header)
    }

    /// Runs the thread. The own reference is used up.
    ///
    /// # Safety
    ///
    /// As for [`ThreadCell::run`].
    #[doc(hidden)]
    pub unsafe fn run(&self) -> CompletionNotice {
        // SAFETY: the caller's promise.
        unsafe { (self.header().vtable().run)(self.pointer()) }
    }

    /// Ends the thread because there is no stack for it. The own reference is used up.
    ///
    /// # Safety
    ///
    /// As for [`ThreadCell::refuse`].
    pub(crate) unsafe fn refuse(&self, error: StackError) -> CompletionNotice {
        // SAFETY: the caller's promise.
        unsafe { (self.header().vtable().refuse)(self.pointer(), error) }
    }

    /// Parks the thread after its stack was laid aside. From now on a wake-up makes it ready, with
    /// the own reference, which is the caller's. Returns the thread if a wake-up has come already.
    #[doc(hidden)]
    pub fn settle(self, pause: Pause) -> Option<Self> {
        let thread = ManuallyDrop::new(self);
        let has_settled = thread.header().park_state().settle(pause);
        (!has_settled).then(|| ManuallyDrop::into_inner(thread))
    }

    /// Has `joiner` notified of the end of this thread. Returns `false` if it has ended already.
    /// Called by the join handle, once.
    ///
    /// # Safety
    ///
    /// `joiner` is the calling thread, and does not go on before it is notified.
    #[doc(hidden)]
    pub unsafe fn await_by(&self, joiner: &Self) -> bool {
        let joiner = Joiner::new(joiner);
        let waits = self.header().completion().await_by(joiner.pointer());
        if !waits {
            joiner.withdraw();
        }
        waits
    }

    /// Returns the number of the thread: no two threads of the process ever have the same.
    #[must_use]
    pub fn id(&self) -> ThreadId {
        self.header().id()
    }

    /// Returns the name of the thread, if it was given one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.header().name()
    }

    /// Notifies the thread that what it waits for may have come.
    #[doc(hidden)]
    pub fn notify(&self) {
        self.wake_for(WakeReason::Notify);
    }

    /// Wakes the thread if it sleeps in the kernel, and makes it ready if it is parked.
    pub(crate) fn wake_for(&self, reason: WakeReason) {
        let header = self.header();
        let is_kernel = matches!(header.home(), ThreadHome::Kernel);
        if !header.park_state().wake_for(reason, is_kernel) {
            return;
        }
        if is_kernel {
            header.park_state().wake_in_kernel();
        } else {
            let make_ready = header.vtable().make_ready;
            // SAFETY: its own reference, which was with its state (Invariant 1 of `park_state.rs`).
            let thread = unsafe { Self::from_pointer(self.pointer()) };
            // SAFETY: it was parked, so it has not ended; the vtable is that of its type.
            unsafe { make_ready(thread) };
        }
    }
}

impl Clone for Thread {
    #[inline]
    fn clone(&self) -> Self {
        self.header().references().increment();
        Self(self.0)
    }
}

impl Drop for Thread {
    #[inline]
    fn drop(&mut self) {
        if self.header().references().decrement() {
            let free = self.header().vtable().free;
            // SAFETY: that was the last reference.
            unsafe { free(self.0) };
        }
    }
}

impl fmt::Debug for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Thread").field("id", &self.id()).field("name", &self.name()).finish()
    }
}
