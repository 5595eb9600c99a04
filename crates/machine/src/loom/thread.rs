//! The model's threads.

use super::world::{World, published};

pub use loom::thread::{JoinHandle, yield_now};

/// Spawns a model thread: at most four beside the one that runs the body.
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    let label = World::current().child_label();
    let handle = loom::thread::spawn(move || {
        let first_frame = 0_u8;
        World::current().enroll(label, (&raw const first_frame).cast());
        body()
    });
    published();
    handle
}

/// A builder of a thread. Names and stack sizes have no use in a model and are ignored.
#[derive(Debug, Default)]
pub struct Builder(());

impl Builder {
    /// Returns a builder of a thread.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// Ignores the name.
    #[must_use]
    pub fn name(self, _name: std::string::String) -> Self {
        self
    }

    /// Ignores the size of the stack.
    #[must_use]
    pub fn stack_size(self, _bytes: usize) -> Self {
        self
    }

    /// Spawns it.
    ///
    /// # Errors
    ///
    /// Never; a model that spawns too many threads fails.
    #[track_caller]
    pub fn spawn<F, T>(self, body: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        Ok(spawn(body))
    }
}

/// Lets the other threads run; time does not pass in a model.
pub fn sleep(_duration: core::time::Duration) {
    yield_now();
}

/// Returns the running thread's index, in the order in which the threads began.
pub(crate) fn index() -> Option<usize> {
    World::current().index()
}

/// Does nothing: the model's scheduler has no such hint.
pub(crate) fn wake_politely() {}
