//! The queues in which threads wait: for a worker, or for a time.
//!
//! - `ready`. The threads in it: ready threads of normal priority that any worker may run: a
//!   strategy of `threadpool`.
//! - `prioritized`. The threads in it: ready threads of other priorities that any worker may run;
//!   the queue of one worker.
//! - `mailbox`. The threads in it: threads bound to one worker that other threads have made ready.
//! - `timers`. The threads in it: threads that wait for a time.
//!
//! This room imports `thread`.

pub(crate) mod mailbox;
pub(crate) mod prioritized;
pub(crate) mod ready;
pub(crate) mod timers;

use prioritized::PrioritizedQueues;
use ready::ReadyQueue;
use timers::Timers;

/// The part of a runtime's state with the threads that any worker may run.
pub(crate) struct ReadyThreads {
    /// Ready threads of normal priority.
    pub(crate) normal: Box<dyn ReadyQueue>,
    /// Ready threads of the other priorities.
    pub(crate) prioritized: PrioritizedQueues,
    /// Threads that wait for a time.
    pub(crate) timers: Timers,
}

impl ReadyThreads {
    pub(crate) fn new(normal: Box<dyn ReadyQueue>) -> Self {
        Self { normal, prioritized: PrioritizedQueues::new(), timers: Timers::new() }
    }

    /// Returns whether a thread is ready, or a time has come, as far as is known.
    pub(crate) fn has_any(&self) -> bool {
        self.normal.len() > 0 || self.prioritized.any() || self.timers.is_due()
    }
}
