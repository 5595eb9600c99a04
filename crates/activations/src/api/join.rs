//! The join handle: waiting for the end of a thread.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use stanchion_machine::clock::Deadline;

use crate::thread::handle::Thread;
use crate::thread::header::Header;
use crate::thread::task_cell::ThreadResult;
use crate::worker::context;
use crate::worker::wait::wait_until;

/// A function that takes a thread's result out of its cell, and drops the own reference.
type Take<T> = unsafe fn(NonNull<Header>) -> ThreadResult<T>;

/// The common part of both kinds of join handle.
pub(super) struct RawJoinHandle<'a, T> {
    /// The thread, by the reference that it shares with this handle (`thread/completion.rs`).
    thread: ManuallyDrop<Thread>,
    take: Take<T>,
    /// It gives out a `T`. A shared one gives out nothing but the thread.
    result: PhantomData<(T, &'a ())>,
}

// SAFETY: it gives out a `T`, once.
unsafe impl<T: Send> Send for RawJoinHandle<'_, T> {}
// SAFETY: a shared one gives out nothing but the thread.
unsafe impl<T: Send> Sync for RawJoinHandle<'_, T> {}

impl<T> RawJoinHandle<'_, T> {
    /// Returns the join handle of a thread.
    ///
    /// # Safety
    ///
    /// The thread has not begun and has no join handle yet. `take` is
    /// [`TaskCell::take`](crate::thread::task_cell::TaskCell::take) for the type of its cell.
    pub(super) unsafe fn new(thread: &Thread, take: Take<T>) -> Self {
        // SAFETY: the thread and this share the reference from now on.
        let thread = unsafe { Thread::from_pointer(thread.pointer()) };
        Self { thread: ManuallyDrop::new(thread), take, result: PhantomData }
    }

    pub(super) fn thread(&self) -> &Thread {
        &self.thread
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.header().completion().is_done()
    }

    #[track_caller]
    pub(super) fn join(self) -> ThreadResult<T> {
        let handle = ManuallyDrop::new(self);
        if !handle.is_finished() {
            // SAFETY: the thread that calls, which is there until this returns.
            let joiner = |joiner: &Thread| unsafe { Thread::from_pointer(joiner.pointer()) };
            let joiner = ManuallyDrop::new(context::with_current(joiner));
            handle.thread.header().home().assert_in_process(joiner.header().home());
            let ends = joiner.header().park_state().ends();
            // SAFETY: the calling thread waits until it is notified.
            if unsafe { handle.thread.await_by(&joiner) } {
                let is_notified = || joiner.header().park_state().ends() != ends;
                wait_until(Deadline::NEVER, is_notified);
            }
        }
        // SAFETY: the thread has ended, and this is its join handle, which is used up.
        unsafe { (handle.take)(handle.thread.pointer()) }
    }

    pub(super) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("thread", &self.thread)
            .field("finished", &self.is_finished())
            .finish()
    }
}

impl<T> Drop for RawJoinHandle<'_, T> {
    fn drop(&mut self) {
        let header = self.thread.header();
        if header.completion().detach() {
            // SAFETY: the thread has ended, and this is its join handle.
            unsafe { (header.vtable().discard)(self.thread.pointer()) };
            // SAFETY: the join handle owns the reference by now (Invariant 1 of `completion.rs`),
            // and does not use it after this.
            unsafe { ManuallyDrop::drop(&mut self.thread) };
        }
    }
}

/// An owned permission to join a thread: to wait for its end, and to have its result.
///
/// Dropping the handle detaches the thread: it goes on, and its result is dropped when it ends. If
/// that drop panics, the panic is lost.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let handle = runtime.spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
///
/// It is `Send` and `Sync` if the result of the thread is `Send`, which it must be:
///
/// ```compile_fail,E0277
/// let runtime = stanchion_activations::Runtime::new(1).unwrap();
/// runtime.spawn(|| std::rc::Rc::new(1));
/// ```
pub struct JoinHandle<T>(RawJoinHandle<'static, T>);

impl<T> JoinHandle<T> {
    pub(super) fn new(handle: RawJoinHandle<'static, T>) -> Self {
        Self(handle)
    }

    /// Returns the thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }

    /// Returns whether the thread has ended, so that [`join`](Self::join) will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the thread's end, and returns its result. A user-level thread that waits, of any
    /// runtime, leaves its processor to others. A kernel thread sleeps.
    ///
    /// # Errors
    ///
    /// The payload of the thread's panic; or a [`StackError`](crate::StackError), if the system
    /// refused its stack.
    ///
    /// # Panics
    ///
    /// In a forked child, if the thread had not ended: it is not there (see
    /// [`Runtime`](crate::Runtime)).
    #[track_caller]
    pub fn join(self) -> ThreadResult<T> {
        self.0.join()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt("JoinHandle", f)
    }
}
