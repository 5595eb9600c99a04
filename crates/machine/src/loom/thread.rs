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

/// A thread to be spawned. A model has no use for names and stack sizes, and ignores them.
#[derive(Debug, Default)]
pub struct Builder(());

impl Builder {
    /// A thread like any other.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }

    /// Names it.
    #[must_use]
    pub fn name(self, _name: std::string::String) -> Self {
        self
    }

    /// Sizes its stack, in bytes.
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

/// Lets the others run; time does not pass in a model.
pub fn sleep(_duration: core::time::Duration) {
    yield_now();
}

/// The running thread's index, in order of arrival.
pub(crate) fn index() -> Option<usize> {
    World::current().index()
}

/// The model's scheduler has no such hint.
pub(crate) fn wake_politely() {}
