//! The queues of ready threads that know priorities: those of one worker, and those of the
//! runtime.
//!
//! The strategies of `threadpool` know no priorities, and need not. Threads of the normal priority
//! that any worker may run are in the strategy's queues. The others are few or can wait: they are
//! in a queue with a lock for each priority. Threads that have begun are in queues of their
//! worker, one for each priority.
//!
//! Why it costs next to nothing if no thread asks for it: `used` says whether a thread of another
//! priority has ever been made. It is written once, and each scheduling point looks at it.
//!
//! # Invariants
//!
//! 1. `counts` are the lengths of the queues whenever the locks are free.
//!
//! # Orderings
//!
//! All are Relaxed. A thread that puts another one here wakes a parked worker afterwards
//! (`parked.rs`), whose fences order the counts; and `used` is looked at again and again.

use std::collections::VecDeque;

use machine::atomic::{AtomicBool, AtomicUsize, Fresh, Ordering};
use stanchion_competitive::Mutex;

use crate::thread::priority::Priority;
use crate::thread::header::{Thread, ThreadId};

/// The ready threads of one worker that have begun there.
#[derive(Default)]
pub(crate) struct LocalQueue {
    queues: [VecDeque<Thread>; Priority::ALL.len()],
    /// Of all queues together.
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

    /// Takes this thread out, if it is there; returns it.
    pub(crate) fn take(&mut self, thread: &Thread) -> Option<Thread> {
        let queue = &mut self.queues[thread.header().priority() as usize];
        let place = queue.iter().position(|ready| ready.pointer() == thread.pointer())?;
        self.len -= 1;
        queue.remove(place)
    }

    /// Whether no other thread than that one is there.
    pub(crate) fn has_only(&self, thread: ThreadId) -> bool {
        self.queues.iter().flatten().all(|ready| ready.id() == thread)
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the highest priority of a thread that is here.
    pub(crate) fn highest(&self) -> Option<Priority> {
        Priority::ALL.into_iter().rev().find(|&priority| self.has(priority))
    }

    /// Whether there is one of that priority.
    pub(crate) fn has(&self, priority: Priority) -> bool {
        !self.queues[priority as usize].is_empty()
    }

    /// Whether there is one more urgent than that.
    pub(crate) fn any_above(&self, priority: Priority) -> bool {
        self.queues[priority as usize + 1..].iter().any(|queue| !queue.is_empty())
    }
}

/// The ready threads of a runtime that any worker may run, if they are not of the usual priority.
pub(crate) struct PrioritizedQueues {
    used: AtomicBool,
    counts: [AtomicUsize; Priority::ALL.len()],
    queues: [Mutex<VecDeque<Thread>>; Priority::ALL.len()],
}

impl PrioritizedQueues {
    pub(crate) fn new() -> Self {
        Self {
            used: AtomicBool::fresh(false),
            counts: Priority::ALL.map(|_| AtomicUsize::fresh(0)),
            queues: Priority::ALL.map(|_| Mutex::default()),
        }
    }

    /// A thread of that priority will be made.
    pub(crate) fn note(&self, priority: Priority) {
        if priority != Priority::Normal {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether there has been one.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// A thread is ready, which has that place in its queue. The caller tells.
    pub(crate) fn put(&self, thread: Thread) {
        let level = thread.header().priority() as usize;
        let mut queue = self.queues[level].lock();
        queue.push_back(thread);
        self.counts[level].store(queue.len(), Ordering::Relaxed);
    }

    /// Whether there is one of that priority.
    pub(crate) fn has(&self, priority: Priority) -> bool {
        self.counts[priority as usize].load(Ordering::Relaxed) != 0
    }

    /// Takes the first of that priority.
    pub(crate) fn take(&self, priority: Priority) -> Option<Thread> {
        self.take_unless(priority, || false)
    }

    /// Takes the first of that priority, unless one that comes before it `is_ready`.
    ///
    /// That is asked under the lock: it sees all that was made ready before the one that this
    /// takes. An answer from before the lock may be older than that one.
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

    /// Whether there is one more urgent than that.
    pub(crate) fn any_above(&self, priority: Priority) -> bool {
        self.counts[priority as usize + 1..].iter().any(|count| count.load(Ordering::Relaxed) != 0)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Whether there is one.
    pub(crate) fn any(&self) -> bool {
        self.counts.iter().any(|count| count.load(Ordering::Relaxed) != 0)
    }
}
