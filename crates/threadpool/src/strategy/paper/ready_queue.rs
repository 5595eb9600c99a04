//! A queue of ready tasks under a lock, with a length that can be read without it.
//!
//! Why the length: an idle worker looks at the queue all the time. If it took the lock for that, a
//! creator would wait for workers that have nothing to do (section 3.1). Why beside the lock and
//! not on a line of its own: a worker that does find something needs both.
//!
//! # Invariants
//!
//! 1. `length` is the length of the queue whenever its lock is free.
//!
//! # Orderings
//!
//! `length` is Relaxed. A worker may read 0 although a task was just put in. No wake-up is lost by
//! that: the creator calls `light` after the push, the sleeper `heavy` before it reads
//! (`sleep.rs`).
//!
//! Source: Anderson, Lazowska and Levy 1989, sections 3.1 and 3.5.

use core::marker::PhantomData;

use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};

use crate::strategy::Order;
use crate::strategy::blocks::{Chain, Task};
use crate::sync::Locked;

pub(in crate::strategy::paper) struct ReadyQueue<L, O> {
    /// The length of the queue (Invariant 1). Written under the lock.
    length: AtomicUsize,
    tasks: Locked<L, Chain<Task>>,
    /// The order in which tasks leave.
    order: PhantomData<fn() -> O>,
}

impl<L: RawMutex, O: Order> ReadyQueue<L, O> {
    pub(in crate::strategy::paper) fn new() -> Self {
        Self { length: AtomicUsize::fresh(0), tasks: Locked::new(Chain::new()), order: PhantomData }
    }

    /// Puts a task in, behind all others if it is to be the `last`. Returns how many there are
    /// then.
    #[inline]
    pub(in crate::strategy::paper) fn push(&self, task: Task, last: bool) -> usize {
        self.tasks.with(|tasks| {
            put::<O>(tasks, task, last);
            // Relaxed: a hint, written under the lock.
            self.length.store(tasks.len(), Ordering::Relaxed);
            tasks.len()
        })
    }

    /// Puts a task in, if the lock is free. Returns how many there are then.
    #[inline]
    pub(in crate::strategy::paper) fn try_push(
        &self,
        task: Task,
        last: bool,
    ) -> Result<usize, Task> {
        let mut task = Some(task);
        let length = self.tasks.try_with(|tasks| {
            if let Some(task) = task.take() {
                put::<O>(tasks, task, last);
            }
            // Relaxed: a hint, written under the lock.
            self.length.store(tasks.len(), Ordering::Relaxed);
            tasks.len()
        });
        match task {
            None => Ok(length.unwrap_or(1)),
            Some(task) => Err(task),
        }
    }

    /// Takes the next, if there is one.
    #[inline]
    pub(in crate::strategy::paper) fn pop(&self) -> Option<Task> {
        if self.len() == 0 {
            return None;
        }
        self.tasks.with(|tasks| {
            let task = tasks.pop_front();
            // Relaxed: a hint, written under the lock.
            self.length.store(tasks.len(), Ordering::Relaxed);
            task
        })
    }

    /// Returns how many there are, at some moment not long ago.
    #[inline]
    pub(in crate::strategy::paper) fn len(&self) -> usize {
        // Relaxed: a hint.
        self.length.load(Ordering::Relaxed)
    }
}

/// Puts a task where the order wants it, or behind all others.
#[inline]
pub(in crate::strategy::paper) fn put<O: Order>(tasks: &mut Chain<Task>, task: Task, last: bool) {
    if O::NEWEST_FIRST && !last {
        tasks.push_front(task);
    } else {
        tasks.push_back(task);
    }
}
