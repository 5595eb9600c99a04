//! The run's virtual threads, in the shape of the standard library's.

use core::fmt;
use core::time::Duration;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::string::String;
use std::sync::{Arc, Mutex, PoisonError};

use super::topology;
use crate::thread::INDICES;
use stanchion_simulator::{ThreadId, inside};

/// The result of a thread, for the thread that joins it. Its lock is free whenever it is taken,
/// because no thread is switched while it holds the lock.
type Packet<T> = Arc<Mutex<Option<std::thread::Result<T>>>>;

/// The right to join a virtual thread. Dropping it detaches the thread. A run ends when all threads
/// have ended.
pub struct JoinHandle<T> {
    /// The thread in its run.
    thread: ThreadId,
    /// The thread's result, which the thread writes when it ends.
    packet: Packet<T>,
}

impl<T> JoinHandle<T> {
    /// Waits for the end of the thread.
    ///
    /// # Errors
    ///
    /// The value with which the thread panicked.
    pub fn join(self) -> std::thread::Result<T> {
        inside::join(self.thread);
        let mut packet = self.packet.lock().unwrap_or_else(PoisonError::into_inner);
        packet.take().expect("a thread that has ended has left its result")
    }

    /// Returns whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        inside::has_ended(self.thread)
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("thread", &self.thread.index()).finish_non_exhaustive()
    }
}

/// Starts a virtual thread. It is pinned to the same processor as the caller, if the caller is
/// pinned.
///
/// # Panics
///
/// Outside a run.
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_named(None, body)
}

fn spawn_named<F, T>(name: Option<String>, body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let packet = Packet::<T>::default();
    let pinned = topology::pinned();
    let ends = Arc::clone(&packet);
    let thread = inside::spawn(
        name,
        pinned,
        Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            *ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }),
    );
    JoinHandle { thread, packet }
}

/// A builder of a thread. The name is for reports of the run. All stacks have the same size.
#[derive(Debug, Default)]
pub struct Builder {
    /// The name, if one was given.
    name: Option<String>,
}

impl Builder {
    /// Returns a builder of a thread without a name.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets its name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// Ignores the size of the stack.
    #[must_use]
    pub fn stack_size(self, _bytes: usize) -> Self {
        self
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// Never: if a run has no room for another thread, the run fails.
    pub fn spawn<F, T>(self, body: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(spawn_named(self.name, body))
    }
}

/// Sleeps for `duration` by the code's clock.
pub fn sleep(duration: Duration) {
    inside::sleep(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
}

/// Gives the processor to another thread that is ready, if there is one.
pub fn yield_now() {
    inside::yield_now();
}

/// Returns the thread's number. Virtual threads are numbered as they start, and a run uses no
/// number twice.
pub(crate) fn index() -> Option<usize> {
    let index = inside::current().index();
    (index < INDICES).then_some(index)
}

/// Does nothing: the model's scheduler has no such hint.
pub(crate) fn wake_politely() {}
