//! The queue of ready threads of normal priority that any worker may run: threads that have not
//! begun, and threads that may migrate.
//!
//! It is a strategy of `stanchion_threadpool`. The tasks hold handles of threads. The type of the
//! strategy is erased here, so that a runtime has no type parameter.

use stanchion_threadpool::{Plan, Strategy};

pub(crate) use stanchion_threadpool::{Task, WakeTarget, WorkerSlot as QueueIndex};

use crate::thread::handle::Thread;

/// A queue of ready threads, by any strategy.
pub(crate) trait ReadyQueue: Send + Sync {
    /// Makes a thread ready. Returns the slots to wake. A `last` thread comes after the others.
    fn put(&self, index: Option<&QueueIndex>, thread: Thread, last: bool) -> WakeTarget;

    /// Takes a thread, and gives back the task of the thread before.
    fn take(&self, index: &QueueIndex, spent: &mut Option<Task>) -> Option<Thread>;

    /// Returns whether [`take`](Self::take) may find a thread.
    fn is_ready(&self, index: &QueueIndex) -> bool;

    /// Returns whether [`take`](Self::take) may find a thread without stealing it.
    fn is_ready_here(&self, index: &QueueIndex) -> bool;

    /// Returns the slots to wake for the threads that the last take has moved.
    fn moved(&self, index: &QueueIndex) -> Option<WakeTarget>;

    /// Says that this slot is idle until it takes again.
    fn idle(&self, index: &QueueIndex);

    /// Says that this slot takes no more. Returns the slots to wake for what it leaves.
    fn leave(&self, index: &QueueIndex) -> Option<WakeTarget>;

    /// Returns the number of threads, as far as is known.
    fn len(&self) -> usize;
}

/// A strategy as a queue of threads.
pub(crate) struct StrategyQueue<S>(S);

impl<S: Strategy> StrategyQueue<S> {
    /// Returns a queue for so many slots, of which the first `active` are always there.
    pub(crate) fn new(slots: usize, active: usize) -> Self {
        Self(S::new(&Plan { active, queues: Some(active), ..Plan::new(slots) }))
    }
}

impl<S: Strategy> ReadyQueue for StrategyQueue<S> {
    fn put(&self, index: Option<&QueueIndex>, thread: Thread, last: bool) -> WakeTarget {
        let mut thread = Some(thread);
        let fill = |task: &Task| {
            let words = task.words().cast::<Option<Thread>>();
            // SAFETY: the task is this strategy's to fill, and large and aligned enough for a
            // handle, which is one word.
            unsafe { words.write(thread.take()) };
        };
        match last {
            true => self.0.create_last(index, fill),
            false => self.0.create(index, fill),
        }
    }

    fn take(&self, index: &QueueIndex, spent: &mut Option<Task>) -> Option<Thread> {
        let task = self.0.next(index, spent.take(), &mut None)?;
        let words = task.words().cast::<Option<Thread>>();
        // SAFETY: `put` has filled it, and it is read once.
        let thread = unsafe { words.read() };
        *spent = Some(task);
        thread
    }

    fn is_ready(&self, index: &QueueIndex) -> bool {
        self.0.is_ready(index)
    }

    fn is_ready_here(&self, index: &QueueIndex) -> bool {
        self.0.is_ready_locally(index)
    }

    fn moved(&self, index: &QueueIndex) -> Option<WakeTarget> {
        self.0.take_moved(index)
    }

    fn idle(&self, index: &QueueIndex) {
        self.0.idle(index);
    }

    fn leave(&self, index: &QueueIndex) -> Option<WakeTarget> {
        self.0.leave(index)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
