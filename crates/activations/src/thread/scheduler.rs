//! The runtime as its threads see it. Everything above this room is behind this trait.

use core::ptr::NonNull;

use super::handle::Thread;
use super::process::Process;

/// The part of a runtime's state that its threads use.
pub trait Scheduler: Send + Sync + Sized {
    /// Returns the process in which the runtime was made.
    fn process(&self) -> Process;

    /// Makes a parked thread of this runtime ready to run.
    ///
    /// # Safety
    ///
    /// `runtime` is the runtime of `thread`, which has not ended (Invariant 1 of `home.rs`).
    unsafe fn make_ready(runtime: NonNull<Self>, thread: Thread);
}
