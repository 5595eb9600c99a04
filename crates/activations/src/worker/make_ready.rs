//! A thread becomes ready: on the calling worker, on the worker that it is bound to, or for any
//! worker.

use core::ptr::NonNull;
use std::sync::Arc;

use super::context;
use super::state::Worker;
use crate::runtime::state::RuntimeState;
use crate::thread::handle::Thread;
use crate::thread::priority::Priority;
use crate::thread::process::Process;
use crate::thread::scheduler::Scheduler;

impl Scheduler for RuntimeState {
    fn process(&self) -> Process {
        self.process
    }

    unsafe fn make_ready(runtime: NonNull<Self>, thread: Thread) {
        context::with(|worker| {
            let is_here = |worker: &&Worker| Arc::as_ptr(&worker.runtime) == runtime.as_ptr();
            // The caller is a worker of the runtime.
            if let Some(worker) = worker.filter(is_here) {
                return worker.make_ready(thread, false);
            }
            // SAFETY: the state is in an `Arc`, and is alive: the thread has not ended, by the
            // caller's promise.
            unsafe { Arc::increment_strong_count(runtime.as_ptr()) };
            // SAFETY: the reference that has just been counted. It is needed from here on, because
            // the runtime may end when the thread is ready (Invariant 2 of `thread/home.rs`).
            let runtime = unsafe { Arc::from_raw(runtime.as_ptr().cast_const()) };
            match thread.header().bound_to() {
                Some(worker) => runtime.send_to(worker, thread),
                None => runtime.make_ready_outside(thread),
            }
        });
    }
}

/// Makes a new thread ready, and counts it.
pub(crate) fn admit(runtime: &Arc<RuntimeState>, thread: Thread) {
    context::with(|worker| {
        match worker.filter(|worker| Arc::ptr_eq(&worker.runtime, runtime)) {
            // A thread of the runtime spawns it.
            Some(worker) => {
                worker.record().counts().count_creation();
                worker.make_ready(thread, false);
            }
            None => {
                runtime.live_threads.count_creation_outside();
                runtime.make_ready_outside(thread);
            }
        }
    });
}

impl Worker {
    /// Makes a thread of this worker's runtime ready. A `last` thread comes after the others.
    pub(super) fn make_ready(&self, thread: Thread, last: bool) {
        match thread.header().bound_to() {
            // It is bound to this worker.
            Some(index) if index == self.index => {
                let mut local_queue = self.local_queue.borrow_mut();
                local_queue.push_back(thread);
                self.record().set_local_ready(local_queue.len());
            }
            Some(index) => self.runtime.send_to(index, thread),
            None if thread.header().priority() != Priority::Normal => {
                self.runtime.make_ready_prioritized(thread);
            }
            None => self.put_ready(thread, last),
        }
    }
}
