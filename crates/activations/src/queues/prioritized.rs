//! The queues of ready threads that know priorities: the queue of one worker, and the queues of the
//! runtime.
//!
//! The strategies of `threadpool` know no priorities, and need not. Threads of normal priority that
//! any worker may run are in the strategy's queues. The others are few or can wait: they are in a
//! queue with a lock for each priority. Threads that have begun are in a queue of their worker, one
//! for each priority.
//!
//! Why this costs next to nothing if no thread asks for it: `is_used` says whether a thread of
//! another priority has ever been made. It is written once, and each scheduling point looks at it.
//!
//! # Invariants
//!
//! 1. `counts` are the lengths of the queues whenever the locks are free.
//!
//! # Orderings
//!
//! All are Relaxed. A thread that puts another one here wakes a sleeping worker afterwards. The
//! fences of that (`processors/parking.rs`) order the counts. `is_used` is looked at again and
//! again.

use std::collections::VecDeque;

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicBool, AtomicUsize, Fresh, Ordering};

use crate::thread::handle::Thread;
use crate::thread::id::ThreadId;
use crate::thread::priority::Priority;

/// The ready threads that are bound to one worker.
#[derive(Default)]
pub(crate) struct LocalQueue {
    /// A queue for each priority.
    queues: [VecDeque<Thread>; Priority::ALL.len()],
    /// The threads of all queues together.
    len: usize,
}

impl LocalQueue {
    pub(crate) fn push_back(&mut self, thread: Thread) {
        self.len += 1;
        self.queues[thread.header().priority() as usize].push_back(thread);
    }

    pub(crate) fn push_front(&mut self, thread: Thread) {
        self.len += 1;
        self.queues[thread.header().priority() as usize].push_front(thread);
    }

    pub(crate) fn pop(&mut self, priority: Priority) -> Option<Thread> {
        let thread = self.queues[priority as usize].pop_front();
        self.len -= usize::from(thread.is_some());
        thread
    }

    /// Takes this thread out, if it is there.
    pub(crate) fn take(&mut self, thread: &Thread) -> Option<Thread> {
        let queue = &mut self.queues[thread.header().priority() as usize];
        let index = queue.iter().position(|ready| ready.pointer() == thread.pointer())?;
        self.len -= 1;
        queue.remove(index)
    }

    /// Returns whether there is no thread but this one.
    pub(crate) fn has_only(&self, thread: ThreadId) -> bool {
        self.queues.iter().flatten().all(|ready| ready.id() == thread)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the highest priority of a thread that is here.
    pub(crate) fn highest(&self) -> Option<Priority> {
        let has = |priority: &Priority| !self.queues[*priority as usize].is_empty();
        Priority::ALL.into_iter().rev().find(has)
    }

    /// Returns whether there is a thread of a higher priority.
    pub(crate) fn any_above(&self, priority: Priority) -> bool {
        self.queues[priority as usize + 1..].iter().any(|queue| !queue.is_empty())
    }
}

/// The ready threads of a runtime that any worker may run and that are not of normal priority.
pub(crate) struct PrioritizedQueues {
    /// Set once there has been such a thread, by the thread that spawns the first.
    is_used: AtomicBool,
    /// The length of each queue (Invariant 1).
    counts: [AtomicUsize; Priority::ALL.len()],
    /// A queue for each priority.
    queues: [Mutex<VecDeque<Thread>>; Priority::ALL.len()],
}

impl PrioritizedQueues {
    pub(crate) fn new() -> Self {
        Self {
            is_used: AtomicBool::fresh(false),
            counts: Priority::ALL.map(|_| AtomicUsize::fresh(0)),
            queues: Priority::ALL.map(|_| Mutex::default()),
        }
    }

    /// Says that a thread of this priority will be made.
    pub(crate) fn announce(&self, priority: Priority) {
        if priority != Priority::Normal {
            self.is_used.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether there has been a thread of another priority than normal.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Makes a thread ready. The caller wakes a worker.
    pub(crate) fn put(&self, thread: Thread) {
        let level = thread.header().priority() as usize;
        let mut queue = self.queues[level].lock();
        queue.push_back(thread);
        self.counts[level].store(queue.len(), Ordering::Relaxed);
    }

    /// Returns whether there is a thread of this priority, as far as is known.
    pub(crate) fn has(&self, priority: Priority) -> bool {
        self.counts[priority as usize].load(Ordering::Relaxed) != 0
    }

    /// Takes the first thread of this priority.
    pub(crate) fn take(&self, priority: Priority) -> Option<Thread> {
        self.take_unless(priority, || false)
    }

    /// Takes the first thread of this priority, unless a thread that comes before it `is_ready`.
    ///
    /// `is_ready` is called under the lock. So it sees all threads that were made ready before the
    /// one that this takes. An answer from before the lock may be older than that one.
    pub(crate) fn take_unless(
        &self,
        priority: Priority,
        is_ready: impl FnOnce() -> bool,
    ) -> Option<Thread> {
        if !self.has(priority) {
            return None;
        }
        let level = priority as usize;
        let mut queue = self.queues[level].lock();
        if is_ready() {
            return None;
        }
        let thread = queue.pop_front();
        self.counts[level].store(queue.len(), Ordering::Relaxed);
        thread
    }

    /// Returns whether there is a thread of a higher priority, as far as is known.
    pub(crate) fn any_above(&self, priority: Priority) -> bool {
        self.counts[priority as usize + 1..].iter().any(|count| count.load(Ordering::Relaxed) != 0)
    }

    /// Returns the number of threads, as far as is known.
    pub(crate) fn count(&self) -> usize {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Returns whether there is a thread, as far as is known.
    pub(crate) fn any(&self) -> bool {
        self.counts.iter().any(|count| count.load(Ordering::Relaxed) != 0)
    }
}
