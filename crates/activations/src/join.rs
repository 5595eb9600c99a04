//! Waiting for the end of a thread.

use core::fmt;
use std::any::Any;
use std::sync::Arc;

use crate::packet::Yields;
use crate::park;
use crate::thread::{self, Thread};

/// The right to wait for a thread, and to have what it returns. Dropping it lets the thread go on unwatched.
///
/// ```
/// let runtime = stanchion_activations::Runtime::new(1)?;
/// let handle = runtime.spawn(|| 6 * 7);
/// assert_eq!(handle.join().unwrap(), 42);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub struct JoinHandle<T> {
    thread: Thread,
    packet: Arc<dyn Yields<T>>,
}

// SAFETY: it gives out a `T`, once.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: a shared one gives out nothing but the thread.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    pub(crate) fn new(thread: Thread, packet: Arc<dyn Yields<T>>) -> Self {
        Self { thread, packet }
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Whether it has ended, so that [`join`](Self::join) will not wait.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.packet.is_done()
    }

    /// Waits for the thread's end. A user-level thread that waits leaves its processor to others; a kernel thread sleeps.
    ///
    /// # Errors
    ///
    /// What the thread panicked with.
    pub fn join(self) -> Result<T, Box<dyn Any + Send>> {
        // SAFETY: this is the one handle, and is used up.
        if !self.packet.is_done() && unsafe { self.packet.await_by(thread::current()) } {
            while !self.packet.is_done() {
                park::park();
            }
        }
        // SAFETY: likewise, and it is done.
        unsafe { self.packet.take() }
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: this is the one handle, and goes.
        unsafe { self.packet.detach() };
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("thread", &self.thread)
            .field("finished", &self.is_finished())
            .finish()
    }
}
