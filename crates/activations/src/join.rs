//! Waiting for the end of a thread.

use core::fmt;
use core::marker::PhantomData;

use machine::clock::Deadline;

use crate::packet::{Outcome, Yields};
use crate::park;
use crate::thread::{self, Thread};

/// What both kinds of handle are.
pub(crate) struct Claim<'a, T> {
    thread: Thread,
    /// In what `thread` shares: a second share would cost each thread two more locked instructions.
    packet: *const (dyn Yields<T> + 'a),
    /// It gives out a `T`, and a shared one gives out nothing but the thread.
    gives: PhantomData<T>,
}

// SAFETY: it gives out a `T`, once.
unsafe impl<T: Send> Send for Claim<'_, T> {}
// SAFETY: a shared one gives out nothing but the thread.
unsafe impl<T: Send> Sync for Claim<'_, T> {}

impl<'a, T> Claim<'a, T> {
    /// # Safety
    ///
    /// `packet` is the thread's.
    pub(crate) unsafe fn new(thread: Thread, packet: *const (dyn Yields<T> + 'a)) -> Self {
        Self { thread, packet, gives: PhantomData }
    }

    fn packet(&self) -> &(dyn Yields<T> + 'a) {
        // SAFETY: `thread` shares it, as `new` was promised.
        unsafe { &*self.packet }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.packet().is_done()
    }

    #[track_caller]
    pub(crate) fn join(self) -> Outcome<T> {
        if !self.packet().is_done() {
            let joiner = thread::current();
            self.thread.inner().home().must_be_here(&joiner);
            // SAFETY: this is the one handle, and is used up.
            if unsafe { self.packet().await_by(joiner) } {
                park::wait_until(Deadline::NEVER, || self.packet().is_done());
            }
        }
        // SAFETY: likewise, and it is done.
        unsafe { self.packet().take() }
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the one handle ends.
        unsafe { self.packet().detach() };
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
