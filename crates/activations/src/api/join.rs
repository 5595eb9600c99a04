//! Waiting for the end of a thread.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use machine::clock::Deadline;

use crate::thread::task_cell::ThreadResult;
use crate::api::park;
use crate::thread::header::{self as thread, Header, Thread};

/// What takes a thread's result out of it, and gives its own share up.
type Take<T> = unsafe fn(NonNull<Header>) -> ThreadResult<T>;

/// What both kinds of handle are.
pub(crate) struct RawJoinHandle<'a, T> {
    /// Of the share that it has together with the thread (`completion.rs`).
    thread: ManuallyDrop<Thread>,
    take: Take<T>,
    /// It gives out a `T`, and a runtime one gives out nothing but the thread.
    gives: PhantomData<(T, &'a ())>,
}

// SAFETY: it gives out a `T`, once.
unsafe impl<T: Send> Send for RawJoinHandle<'_, T> {}
// SAFETY: a runtime one gives out nothing but the thread.
unsafe impl<T: Send> Sync for RawJoinHandle<'_, T> {}

impl<T> RawJoinHandle<'_, T> {
    /// # Safety
    ///
    /// The thread has not begun and has no handle yet, and `take` is the [`take`](crate::thread::task_cell::TaskCell::take) of its kind.
    pub(crate) unsafe fn new(thread: &Thread, take: Take<T>) -> Self {
        // SAFETY: the thread and this share it from now on.
        let thread = unsafe { Thread::from_pointer(thread.pointer()) };
        Self { thread: ManuallyDrop::new(thread), take, gives: PhantomData }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.header().completion().is_done()
    }

    #[track_caller]
    pub(crate) fn join(self) -> ThreadResult<T> {
        let handle = ManuallyDrop::new(self);
        let header = handle.thread.header();
        if !handle.is_finished() {
            // SAFETY: the thread that calls, which is there until this returns.
            let joiner = |joiner: &Thread| unsafe { Thread::from_pointer(joiner.pointer()) };
            let joiner = ManuallyDrop::new(thread::with_current(joiner));
            header.home().must_be_here(joiner.header().home());
            let ends = joiner.header().state().ends();
            // SAFETY: it waits until it is told.
            if unsafe { header.completion().await_by(&joiner) } {
                park::wait_until(Deadline::NEVER, || joiner.header().state().ends() != ends);
            }
        }
        // SAFETY: it is done, and this is the one handle, which is used up.
        unsafe { (handle.take)(handle.thread.pointer()) }
    }
}

impl<T> Drop for RawJoinHandle<'_, T> {
    fn drop(&mut self) {
        let header = self.thread.header();
        if header.completion().detach() {
            // SAFETY: it has ended, and this is the one handle.
            unsafe { (header.vtable().discard)(self.thread.pointer()) };
            // SAFETY: the handle's by now (Invariant 1 of `completion.rs`), and nobody uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.thread) };
        }
    }
}

impl<T> RawJoinHandle<'_, T> {
    pub(crate) fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("thread", &self.thread)
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// The right to wait for a thread, and to have what it returns. Dropping it lets the thread go on unwatched; what it returns is then dropped by itself, and
/// a panic of that drop is lost.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let handle = runtime.spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
///
/// It is `Send` and `Sync` if what the thread returns is `Send`, which it must be:
///
/// ```compile_fail,E0277
/// let runtime = stanchion_activations::Runtime::new(1).unwrap();
/// runtime.spawn(|| std::rc::Rc::new(1));
/// ```
pub struct JoinHandle<T>(RawJoinHandle<'static, T>);

impl<T> JoinHandle<T> {
    pub(crate) fn new(handle: RawJoinHandle<'static, T>) -> Self {
        Self(handle)
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }

    /// Whether it has ended, so that [`join`](Self::join) will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits for the thread's end. A user-level thread that waits, of whichever runtime, leaves its processor to others; a kernel thread sleeps.
    ///
    /// # Errors
    ///
    /// What the thread panicked with; or a [`StackError`](crate::StackError), if the system refused its stack.
    ///
    /// # Panics
    ///
    /// In a forked child, if the thread had not ended: it is not there (see [`Runtime`](crate::Runtime)).
    #[track_caller]
    pub fn join(self) -> ThreadResult<T> {
        self.0.join()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("JoinHandle", f)
    }
}
