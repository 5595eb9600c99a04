//! The handle of the calling kernel thread, where it is not a worker of a runtime.

use core::cell::Cell;
use core::ptr::NonNull;

use super::attributes::Attributes;
use super::handle::Thread;
use super::header::{Header, ThreadCell};
use super::home::ThreadHome;
use super::notice::CompletionNotice;
use super::panics;
use super::stacks::StackError;

stanchion_machine::thread_local! {
    /// The handle, once it was asked for. Without a destructor, so that it is there until the very
    /// end of the kernel thread.
    static HANDLE: Cell<*const Thread> = Cell::new(core::ptr::null());
    /// Frees the allocation that `HANDLE` points to.
    static CLEANUP: Cell<Option<Cleanup>> = Cell::new(None);
}

/// The cell of a kernel thread.
#[repr(C)]
struct KernelThread(Header);

// SAFETY: it is a `Header` that is given this vtable.
unsafe impl ThreadCell for KernelThread {
    unsafe fn run(_this: NonNull<Self>) -> CompletionNotice {
        unreachable!("the kernel runs kernel threads")
    }

    unsafe fn refuse(_this: NonNull<Self>, _error: StackError) -> CompletionNotice {
        unreachable!("a kernel thread has a stack")
    }

    unsafe fn discard(_this: NonNull<Self>) {
        unreachable!("a kernel thread has no join handle")
    }

    unsafe fn make_ready(_thread: Thread) {
        unreachable!("the kernel readies kernel threads")
    }
}

/// Returns the handle of the calling kernel thread.
pub(crate) fn current() -> *const Thread {
    let known = HANDLE.try_with(Cell::get).unwrap_or(core::ptr::null());
    if !known.is_null() {
        return known;
    }
    let attributes =
        Attributes { name: stanchion_machine::thread::name(), ..Attributes::default() };
    let header = Header::new(KernelThread::VTABLE, attributes, ThreadHome::Kernel);
    let thread = Thread::new(Box::new(KernelThread(header)));
    let thread = Box::into_raw(Box::new(thread)).cast_const();
    // In the last destructors of a kernel thread this fails, and the handle is never freed.
    let _ = HANDLE.try_with(|handle| handle.set(thread));
    let _ = CLEANUP.try_with(|cleanup| cleanup.set(Some(Cleanup(thread))));
    thread
}

/// Drops a kernel thread's locals and its handle when the kernel thread ends.
struct Cleanup(*const Thread);

impl Drop for Cleanup {
    fn drop(&mut self) {
        // SAFETY: `current` made it, and it is freed only here.
        let header = unsafe { &*self.0 }.header();
        // No thread joins this one, so a panic cannot be reported.
        header.locals().end().into_iter().for_each(panics::discard);
        // The thread-locals of a model may be gone by now.
        let _ = HANDLE.try_with(|handle| handle.set(core::ptr::null()));
        // SAFETY: as above; nothing points to it any more.
        drop(unsafe { Box::from_raw(self.0.cast_mut()) });
    }
}
