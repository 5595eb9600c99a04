//! The barrier: no thread continues before all have come.
//!
//! Why not one that spins, as those of `stanchion_gang`: a missing thread may be ready and wait for
//! this very processor. Why not a tree: a park and an unpark cost as much as the cache lines that a
//! central count moves about.
//!
//! # Invariants
//!
//! 1. The length of the queue is the number of threads that have come this time. The last thread
//!    takes the whole queue away, in the step in which it would have joined it. So a thread that
//!    comes again already waits for the next time.
//! 2. No thread leaves the queue otherwise: there is no deadline.
//!
//! # Orderings
//!
//! All threads see everything that was done before the last one came: the last thread through the
//! queue's lock, and the others through their answers.

use core::fmt;

use stanchion_machine::bomb::AbortOnUnwind;
use stanchion_machine::clock::Deadline;

use super::queue::{Answer, BATCH, Queue, Waiter, notify_all};
use crate::worker::context;

/// A barrier that lets a number of threads wait for each other, time after time.
///
/// - coming: a spin lock, then a park; for the last thread instead the price of an
///   [`unpark`](crate::Thread::unpark), for each of the others.
/// - size: 40 bytes; threads that wait bring their own memory.
/// - deadline: no.
///
/// ```
/// use stanchion_activations::{Runtime, spawn, sync::Barrier};
///
/// static BARRIER: Barrier = Barrier::new(10);
/// let leaders = Runtime::new(2)?.run(|| {
///     let threads: Vec<_> = (0..10).map(|_| spawn(|| BARRIER.wait().is_leader())).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).filter(|&leads| leads).count()
/// });
/// assert_eq!(leaders, 1);
/// # Ok::<(), stanchion_activations::BuildError>(())
/// ```
pub struct Barrier {
    /// The threads that meet.
    size: usize,
    /// The threads that have come this time.
    queue: Queue,
}

/// The result of [`Barrier::wait`]: it says whether this thread leads.
///
/// ```
/// use stanchion_activations::sync::Barrier;
///
/// assert!(Barrier::new(1).wait().is_leader());
/// ```
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// Returns a barrier for so many threads. With 0 or 1 no thread waits, and each leads.
    #[must_use]
    pub const fn new(size: usize) -> Self {
        Self { size, queue: Queue::new() }
    }

    /// Waits until so many threads have come. One of them leads: the thread that came last.
    pub fn wait(&self) -> BarrierWaitResult {
        if self.size <= 1 {
            return BarrierWaitResult(true);
        }
        let waiter = Waiter::new(0);
        let bomb = AbortOnUnwind::armed("a thread unwound out of a barrier");
        let all = self.queue.with(|line| {
            if line.length() + 1 == self.size {
                return Some(line.take_all());
            }
            // SAFETY: it is new, and this goes on by `Queue::wait`, or the process ends.
            unsafe { line.put(&waiter, false) };
            None
        });
        let leads = all.is_some();
        if let Some(mut all) = all {
            // Those that were taken out wait for their answers. No other thread touches them
            // (Invariant 2).
            while !all.is_empty() {
                let mut batch = [const { None }; BATCH];
                for place in &mut batch {
                    *place = all.answer_first(Answer::Go, 0);
                }
                notify_all(&mut batch);
            }
            context::give_way();
        } else {
            self.queue.wait(&waiter, Deadline::NEVER, |_| ());
        }
        bomb.defuse();
        BarrierWaitResult(leads)
    }
}

impl BarrierWaitResult {
    /// Returns whether this thread was the last to come. There is one each time.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.is_leader()).finish()
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("size", &self.size).finish_non_exhaustive()
    }
}
