//! The workers without a slot: those that have nothing to do, and those with ready threads that
//! only they can run.
//!
//! Why they queue for slots instead of sharing them: a thread that has begun stays on its kernel
//! thread, because the compiler may have kept the address of a thread-local. So a worker that lost
//! its slot while a thread of it was in the kernel still has that thread, and all others that are
//! bound to it.
//!
//! A worker queues at the highest priority of its ready threads. If a thread of a higher priority
//! is sent to it, it moves to the end of that priority's queue. It does not move back: the thread
//! stays ready until the worker runs.
//!
//! # Invariants
//!
//! 1. A worker in `waiting` has the ownership `WAITING`, and one in `free` or `bound` has `IDLE`,
//!    whenever the lock is free. A worker that was taken out of one of them belongs to the thread
//!    that took it out, which gives it a slot.
//! 2. `waiting_counts` are the lengths of the queues in `waiting` whenever the lock is free, and
//!    `waiting_total` is their sum.
//! 3. No worker owns a slot in `closed`. Its number was not below `ProcessorLimit::allowed` when it
//!    was put there.
//! 4. No worker owns a slot in `vacant`. The lists of workers are empty when it is put there.
//!
//! # Orderings
//!
//! A worker sets its ownership to `IDLE` or `WAITING`, then looks at its mailbox. A thread that
//! fills the mailbox then looks at the ownership. At least one of the two sees the other, by the
//! handshake `REST`.

use std::collections::VecDeque;

use stanchion_competitive::Mutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::handshake::{Handshake, Reach, Symmetric};

use super::ownership::Ownership;
use crate::thread::priority::Priority;

/// A thread in a mailbox against the mailbox's worker, which goes to rest: the sender sees the
/// worker at rest, or the worker sees the thread. Any thread may send. A sender comes about as
/// often as a worker rests, so both sides pay for the same fence.
const REST: Handshake<Symmetric> = Handshake::symmetric("Mailbox", "Ownership", Reach::AllThreads);

#[derive(Default)]
struct Lists {
    /// Idle workers without bound threads (`thread/kind.rs`).
    free: Vec<usize>,
    /// Idle workers with bound threads, none of which is ready.
    bound: Vec<usize>,
    /// Workers that wait for a slot: a queue for each priority.
    waiting: [VecDeque<usize>; Priority::ALL.len()],
    /// Slots that no worker could be given (Invariant 4).
    vacant: Vec<usize>,
    /// Slots above the limit (Invariant 3).
    closed: Vec<usize>,
}

/// The next step of a worker without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is a vacant slot, which is the caller's now.
    Slot(usize),
    /// It sleeps, and waits for a slot.
    Waiting,
    /// It sleeps.
    Idle,
}

/// The workers without a slot. The counts are written under the lock.
pub struct IdleWorkers {
    /// Changed by workers that rest, and by threads that have a slot to give.
    lists: Mutex<Lists>,
    /// The workers that wait for a slot at each priority (Invariant 2).
    waiting_counts: [AtomicUsize; Priority::ALL.len()],
    /// The sum of `waiting_counts`.
    waiting_total: AtomicUsize,
}

impl IdleWorkers {
    /// Returns empty lists.
    pub fn new() -> Self {
        Self {
            lists: Mutex::new(Lists::default()),
            waiting_counts: Priority::ALL.map(|_| AtomicUsize::fresh(0)),
            waiting_total: AtomicUsize::fresh(0),
        }
    }

    /// Returns the number of workers that wait for a slot, as far as is known.
    #[inline]
    pub fn waiting(&self) -> usize {
        // Relaxed: a hint. A worker that goes to sleep has a fence before it looks.
        self.waiting_total.load(Ordering::Relaxed)
    }

    /// Returns the number of workers that wait for a slot with a ready thread of this priority or a
    /// higher one, as far as is known.
    #[inline]
    pub fn waiting_from(&self, priority: Priority) -> usize {
        let counts = &self.waiting_counts[priority as usize..];
        // Relaxed: as above.
        counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Lets the calling worker, which has no slot, sleep, unless a slot is vacant.
    ///
    /// `ready` is the highest priority of its ready threads, and `mailed` returns that of the
    /// threads in its mailbox. `has_bound` says whether threads are bound to it.
    pub fn rest(
        &self,
        index: usize,
        ownership: &Ownership,
        ready: Option<Priority>,
        mailed: impl FnOnce() -> Option<Priority>,
        has_bound: bool,
    ) -> Rest {
        let mut lists = self.lists.lock();
        // A slot is vacant: the worker goes on.
        if let Some(slot) = lists.vacant.pop() {
            return Rest::Slot(slot);
        }
        ownership.rest(ready.is_some());
        REST.fence();
        // It has ready threads: it waits for a slot.
        if let Some(priority) = ready.max(mailed()) {
            ownership.rest(true);
            self.queue(&mut lists, index, priority);
            return Rest::Waiting;
        }
        let list = if has_bound { &mut lists.bound } else { &mut lists.free };
        list.push(index);
        Rest::Idle
    }

    /// Leaves vacant a slot that the caller has and that no worker could be given. The next worker
    /// that rests has it. If a worker has begun to rest meanwhile, returns that one instead.
    pub fn vacate(&self, slot: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let to = self.next(&mut lists, true).or_else(|| lists.bound.pop());
        if to.is_none() {
            lists.vacant.push(slot);
        }
        to
    }

    /// Takes out the worker that is next to have a slot. With `also_free` that may be one without
    /// ready threads.
    fn next(&self, lists: &mut Lists, also_free: bool) -> Option<usize> {
        let first = Priority::ALL.into_iter().rev().find_map(|priority| {
            let first = lists.waiting[priority as usize].pop_front()?;
            self.count(lists, priority);
            Some(first)
        });
        first.or_else(|| if also_free { lists.free.pop() } else { None })
    }

    /// Takes out a worker without bound threads. The caller gives it a slot.
    pub(crate) fn take_free(&self) -> Option<usize> {
        self.lists.lock().free.pop()
    }

    /// Closes the caller's slot, unless `stays` returns that it is to stay after all. Returns
    /// whether it was closed.
    pub(crate) fn close(&self, slot: usize, stays: impl FnOnce() -> bool) -> bool {
        let mut lists = self.lists.lock();
        let closes = !stays();
        if closes {
            lists.closed.push(slot);
        }
        closes
    }

    /// Takes a closed slot with a number below `allowed`. It is the caller's.
    pub(crate) fn open(&self, allowed: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let index = lists.closed.iter().position(|&slot| slot < allowed)?;
        Some(lists.closed.swap_remove(index))
    }

    /// Returns whether there is a worker without a slot.
    pub(crate) fn any(&self) -> bool {
        let lists = self.lists.lock();
        let Lists { waiting, free, bound, .. } = &*lists;
        !(waiting.iter().all(VecDeque::is_empty) && free.is_empty() && bound.is_empty())
    }

    fn queue(&self, lists: &mut Lists, index: usize, priority: Priority) {
        lists.waiting[priority as usize].push_back(index);
        self.count(lists, priority);
    }

    fn count(&self, lists: &Lists, priority: Priority) {
        let level = priority as usize;
        // Relaxed: under the lock.
        self.waiting_counts[level].store(lists.waiting[level].len(), Ordering::Relaxed);
        let total = lists.waiting.iter().map(VecDeque::len).sum();
        // Relaxed: under the lock.
        self.waiting_total.store(total, Ordering::Relaxed);
    }

    /// Tells a worker of a thread of this priority in its mailbox. Returns whether the worker was
    /// idle and now waits for a slot, so that the caller wakes another worker.
    pub fn notify(&self, index: usize, ownership: &Ownership, priority: Priority) -> bool {
        REST.fence();
        // It waits for a slot already.
        if ownership.is_waiting() {
            self.raise(index, priority);
            return false;
        }
        // It runs, or is about to rest, and looks at its mailbox itself.
        if !ownership.is_idle() {
            return false;
        }
        let mut lists = self.lists.lock();
        // Another thread has taken it out meanwhile (Invariant 1).
        let Some(place) = lists.bound.iter().position(|&bound| bound == index) else {
            return false;
        };
        lists.bound.swap_remove(place);
        ownership.rest(true);
        self.queue(&mut lists, index, priority);
        true
    }

    /// Moves a worker that waits for a slot to the queue of this priority, if it waits in that of a
    /// lower one.
    fn raise(&self, index: usize, priority: Priority) {
        let mut lists = self.lists.lock();
        for lower in Priority::ALL.into_iter().filter(|&lower| lower < priority) {
            let queue = &mut lists.waiting[lower as usize];
            if let Some(place) = queue.iter().position(|&waiting| waiting == index) {
                queue.remove(place);
                self.count(&lists, lower);
                return self.queue(&mut lists, index, priority);
            }
        }
    }

    /// Takes out the waiting worker of the highest priority that has waited longest, or else, with
    /// `also_free`, one that has neither ready nor bound threads. The caller gives it a slot.
    pub(crate) fn take_next(&self, also_free: bool) -> Option<usize> {
        self.next(&mut self.lists.lock(), also_free)
    }

    /// Takes out all workers, and calls `end` with each.
    pub fn end(&self, mut end: impl FnMut(usize)) {
        let mut lists = self.lists.lock();
        let Lists { free, bound, waiting, vacant: _, closed: _ } = &mut *lists;
        let waiting = waiting.iter_mut().flat_map(|queue| queue.drain(..));
        free.drain(..).chain(bound.drain(..)).chain(waiting).for_each(&mut end);
        Priority::ALL.into_iter().for_each(|priority| self.count(&lists, priority));
    }
}
