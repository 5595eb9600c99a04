//! Where a thread runs.
//!
//! Why a pointer and not a share of the runtime: each thread would take one and give it back, two locked instructions on a word that all processors share.
//!
//! # Invariants
//!
//! 1. A runtime is there until all its threads have ended: its workers have shares of it, and end when the live_threads (`live_threads.rs`) says that all have, in which a
//!    thread that is to be is counted before it is handed on. So who knows that a thread has not ended may look at its runtime.
//! 2. Who makes a thread ready may know so no more: from then on it runs, and ends, and the runtime with it. If that is no worker of the runtime, it
//!    takes a share before.

use core::ptr::NonNull;
use std::sync::Arc;

use crate::thread::process::Process;
use crate::runtime::state::RuntimeState;

/// Where a thread runs.
#[derive(Clone, Copy)]
pub(crate) enum ThreadHome {
    /// It is a kernel thread, and sleeps in the kernel.
    Kernel,
    /// It is a thread of a runtime.
    Runtime(RuntimePointer),
}

/// Where a runtime is, and was made.
#[derive(Clone, Copy)]
pub(crate) struct RuntimePointer {
    runtime: NonNull<RuntimeState>,
    process: Process,
}

impl ThreadHome {
    /// With that runtime.
    pub(crate) fn with(runtime: &Arc<RuntimeState>) -> Self {
        let pointer = Arc::as_ptr(runtime).cast_mut();
        let shared_pointer = NonNull::new(pointer).expect("a share points to something");
        Self::Runtime(RuntimePointer { runtime: shared_pointer, process: runtime.process() })
    }

    /// # Panics
    ///
    /// If a thread that is at home at `joiner` would wait for ever for one of here, in a forked child.
    #[track_caller]
    pub(crate) fn must_be_here(&self, joiner: &Self) {
        // By what is in the thread: that may have ended meanwhile, and the runtime be gone.
        if let (Self::Runtime(address), Self::Kernel) = (self, joiner) {
            address.process.must_be_here();
        }
    }
}

impl RuntimePointer {
    /// Whether it is that runtime's.
    pub(crate) fn is_of(&self, runtime: &Arc<RuntimeState>) -> bool {
        core::ptr::eq(self.runtime.as_ptr(), Arc::as_ptr(runtime))
    }

    /// The runtime.
    ///
    /// # Safety
    ///
    /// The thread has not ended, nor does it while that is used (Invariant 1).
    pub(crate) unsafe fn runtime(&self) -> &RuntimeState {
        // SAFETY: the caller's promise.
        unsafe { self.runtime.as_ref() }
    }

    /// A share of the runtime.
    ///
    /// # Safety
    ///
    /// The thread has not ended (Invariant 1).
    pub(crate) unsafe fn share(&self) -> Arc<RuntimeState> {
        let pointer = self.runtime.as_ptr();
        // SAFETY: a share's pointer, and there are shares, by the caller's promise.
        unsafe { Arc::increment_strong_count(pointer) };
        // SAFETY: the share that has just been counted.
        unsafe { Arc::from_raw(pointer) }
    }
}
