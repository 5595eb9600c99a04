//! The model's threads.

use super::world::World;

pub use loom::thread::{JoinHandle, yield_now};

/// Spawns a model thread: at most four beside the one that runs the body.
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    let label = World::current().child_label();
    loom::thread::spawn(move || {
        World::current().enroll(label);
        body()
    })
}

/// Lets the others run; time does not pass in a model.
pub fn sleep(_duration: core::time::Duration) {
    yield_now();
}

/// The running thread's index, in order of arrival.
pub(crate) fn index() -> Option<usize> {
    World::current().index()
}
