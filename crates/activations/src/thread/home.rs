//! The runtime that a thread belongs to.
//!
//! Why a pointer and not a reference to the runtime that is counted: each thread would take one and
//! give it back, which is two locked instructions on a word that all processors share.
//!
//! # Invariants
//!
//! 1. A runtime stays until all its threads have ended. Its workers have counted references to it.
//!    They end when all threads have ended (`stats/live_threads.rs`), and a thread is counted
//!    before it is handed on. So code that knows that a thread has not ended may use its runtime.
//! 2. Making a thread ready may end its runtime: the thread can run and finish at once. A caller
//!    that is not one of the runtime's own workers therefore takes a counted reference to the
//!    runtime first.

use core::ptr::NonNull;
use std::sync::Arc;

use super::process::Process;

/// The runtime that a thread belongs to, if any.
#[derive(Clone, Copy)]
pub enum ThreadHome {
    /// None: it is a kernel thread, and sleeps in the kernel.
    Kernel,
    /// It is a user-level thread of this runtime.
    Runtime(RuntimePointer),
}

/// The address of a runtime's state, and the process in which it was made.
#[derive(Clone, Copy)]
pub struct RuntimePointer {
    /// The state's address. Its type is the `Scheduler` of the thread's cell.
    address: NonNull<()>,
    /// The process that has the runtime's kernel threads.
    process: Process,
}

impl ThreadHome {
    /// Returns the home of a thread of this runtime, which was made in `process`.
    pub fn of<S>(runtime: &Arc<S>, process: Process) -> Self {
        let pointer = NonNull::new(Arc::as_ptr(runtime).cast_mut());
        let address = pointer.expect("an `Arc` points to something").cast();
        Self::Runtime(RuntimePointer { address, process })
    }

    /// Panics if a wait for a thread of this home, by a thread of `joiner`'s home, would never end:
    /// in a forked child the runtime has no kernel threads.
    #[track_caller]
    pub(crate) fn assert_in_process(&self, joiner: &Self) {
        // The process is read from the thread: the thread may have ended meanwhile, and the runtime
        // may be gone.
        if let (Self::Runtime(pointer), Self::Kernel) = (self, joiner) {
            pointer.process.assert_current();
        }
    }
}

impl RuntimePointer {
    /// Returns the address of the runtime's state. The state is there while the thread has not
    /// ended (Invariant 1).
    pub(crate) fn address<S>(&self) -> NonNull<S> {
        self.address.cast()
    }
}
