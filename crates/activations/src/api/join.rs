//! Waiting for the end of a thread.

use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use machine::clock::Deadline;

use crate::thread::task_cell::Outcome;
use crate::api::park;
use crate::thread::header::{self as thread, Inner, Thread};

/// What takes a thread's result out of it, and gives its own share up.
type Take<T> = unsafe fn(NonNull<Inner>) -> Outcome<T>;

/// What both kinds of handle are.
pub(crate) struct Claim<'a, T> {
    /// Of the share that it has together with the thread (`ending.rs`).
    thread: ManuallyDrop<Thread>,
    take: Take<T>,
    /// It gives out a `T`, and a shared one gives out nothing but the thread.
    gives: PhantomData<(T, &'a ())>,
}

// SAFETY: it gives out a `T`, once.
unsafe impl<T: Send> Send for Claim<'_, T> {}
// SAFETY: a shared one gives out nothing but the thread.
unsafe impl<T: Send> Sync for Claim<'_, T> {}

impl<T> Claim<'_, T> {
    /// # Safety
    ///
    /// The thread has not begun and has no claim yet, and `take` is the [`take`](crate::thread::task_cell::Packet::take) of its kind.
    pub(crate) unsafe fn new(thread: &Thread, take: Take<T>) -> Self {
        // SAFETY: the thread and this share it from now on.
        let thread = unsafe { Thread::from_pointer(thread.pointer()) };
        Self { thread: ManuallyDrop::new(thread), take, gives: PhantomData }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.inner().ending().is_done()
    }

    #[track_caller]
    pub(crate) fn join(self) -> Outcome<T> {
        let claim = ManuallyDrop::new(self);
        let inner = claim.thread.inner();
        if !claim.is_finished() {
            // SAFETY: the thread that calls, which is there until this returns.
            let joiner = |joiner: &Thread| unsafe { Thread::from_pointer(joiner.pointer()) };
            let joiner = ManuallyDrop::new(thread::with_current(joiner));
            inner.home().must_be_here(joiner.inner().home());
            let ends = joiner.inner().state().ends();
            // SAFETY: it waits until it is told.
            if unsafe { inner.ending().await_by(&joiner) } {
                park::wait_until(Deadline::NEVER, || joiner.inner().state().ends() != ends);
            }
        }
        // SAFETY: it is done, and this is the one claim, which is used up.
        unsafe { (claim.take)(claim.thread.pointer()) }
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let inner = self.thread.inner();
        if inner.ending().detach() {
            // SAFETY: it has ended, and this is the one claim.
            unsafe { (inner.verbs().discard)(self.thread.pointer()) };
            // SAFETY: the claim's by now (Invariant 1 of `ending.rs`), and nobody uses it after this.
            unsafe { ManuallyDrop::drop(&mut self.thread) };
        }
    }
}

impl<T> Claim<'_, T> {
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
pub struct JoinHandle<T>(Claim<'static, T>);

impl<T> JoinHandle<T> {
    pub(crate) fn new(claim: Claim<'static, T>) -> Self {
        Self(claim)
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
    pub fn join(self) -> Outcome<T> {
        self.0.join()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("JoinHandle", f)
    }
}
