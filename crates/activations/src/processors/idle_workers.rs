//! The workers without a slot: those that have nothing to do, and those with threads that only
//! they can run.
//!
//! Why they queue for slots instead of sharing them: a thread that has begun stays on its kernel
//! thread, because the compiler may have kept the address of a thread-local. So a worker that lost
//! its slot while a thread of it was in the kernel still has that thread, and all others that began
//! there.
//!
//! A worker queues at the highest priority of its ready threads. If one of a higher priority is
//! mailed to it, it moves to the end of that one's queue. It does not move back: the thread stays
//! ready until the worker runs.
//!
//! # Invariants
//!
//! 1. A worker in `wanting` stands `WANTING`, and one in `free` or `spares` stands `SPARE`,
//!    whenever the lock is free. A worker that was taken out of one of them belongs to the thread
//!    that took it out, which gives it a slot.
//! 2. `waiting` are the lengths of the queues in `wanting` whenever the lock is free, and
//!    `waiting_in_all` is their sum.
//! 3. A slot in `closed` is nobody's, and its number was not below `ProcessorLimit::allowed` when it was
//!    put there.
//! 4. A slot in `vacant` is nobody's, and nobody is in the other lists when it is put there.
//!
//! # Orderings
//!
//! A worker stands `SPARE` or `WANTING`, then a fence, then looks at its mail. A thread that mails
//! it has a fence, then looks how it stands. One of the two sees the other.

use std::collections::VecDeque;

use machine::atomic::{AtomicUsize, Fresh, Ordering, fence};
use stanchion_competitive::Mutex;

use crate::processors::worker_record::WorkerRecord;
use crate::thread::priority::Priority;

#[derive(Default)]
struct Lists {
    /// Those without bound_threads (`history.rs`).
    free: Vec<usize>,
    /// Those with bound_threads.
    spares: Vec<usize>,
    /// A queue for each priority.
    wanting: [VecDeque<usize>; Priority::ALL.len()],
    vacant: Vec<usize>,
    closed: Vec<usize>,
}

/// What a worker without a slot does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// There is a slot that nobody has: it is the caller's.
    Slot(usize),
    /// It sleeps, and wants one.
    Wanting,
    /// It sleeps.
    Spare,
}

/// The workers without a slot.
pub(crate) struct IdleWorkers {
    lists: Mutex<Lists>,
    waiting: [AtomicUsize; Priority::ALL.len()],
    /// The sum of `waiting`.
    waiting_in_all: AtomicUsize,
}

impl IdleWorkers {
    pub(crate) fn new() -> Self {
        Self {
            lists: Mutex::new(Lists::default()),
            waiting: Priority::ALL.map(|_| AtomicUsize::fresh(0)),
            waiting_in_all: AtomicUsize::fresh(0),
        }
    }

    /// How many workers want a slot, as far as is known.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        // Relaxed: a hint. A worker that goes to sleep has a fence before it looks.
        self.waiting_in_all.load(Ordering::Relaxed)
    }

    /// Returns how many workers with a ready thread of that priority or a higher one want a slot,
    /// as far as is known.
    #[inline]
    pub(crate) fn waiting_from(&self, priority: Priority) -> usize {
        let counts = &self.waiting[priority as usize..];
        // Relaxed: a hint. A worker that goes to sleep has a fence before it looks.
        counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Lets the calling worker, which has no slot, sleep, unless a slot is vacant. `wants` is the
    /// highest priority of its ready threads. It has bound_threads if threads have begun on it that have
    /// not ended.
    pub(crate) fn rest(
        &self,
        index: usize,
        worker: &WorkerRecord,
        wants: Option<Priority>,
        has_guests: bool,
    ) -> Rest {
        let mut lists = self.lists.lock();
        if let Some(slot) = lists.vacant.pop() {
            return Rest::Slot(slot);
        }
        worker.ownership().rest(wants.is_some());
        fence(Ordering::SeqCst);
        let mailed = if worker.has_mail() { worker.mail_priority() } else { None };
        if let Some(priority) = wants.max(mailed) {
            worker.ownership().rest(true);
            self.queue(&mut lists, index, priority);
            return Rest::Wanting;
        }
        let list = if has_guests { &mut lists.spares } else { &mut lists.free };
        list.push(index);
        Rest::Spare
    }

    /// Nobody could be given this slot, which the caller has: the next that rests has it, or who
    /// has begun to rest meanwhile, whom this returns.
    pub(crate) fn vacate(&self, slot: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let to = self.next(&mut lists, true).or_else(|| lists.spares.pop());
        if to.is_none() {
            lists.vacant.push(slot);
        }
        to
    }

    fn next(&self, lists: &mut Lists, free: bool) -> Option<usize> {
        let first = Priority::ALL.into_iter().rev().find_map(|priority| {
            let first = lists.wanting[priority as usize].pop_front()?;
            self.count(lists, priority);
            Some(first)
        });
        first.or_else(|| if free { lists.free.pop() } else { None })
    }

    /// Takes out a worker that has neither a slot nor bound_threads; it is the caller's, to be given a
    /// slot.
    pub(crate) fn take_free(&self) -> Option<usize> {
        self.lists.lock().free.pop()
    }

    /// The caller's slot closes, unless `stays` says that it is to stay after all. Whether it has.
    pub(crate) fn close(&self, slot: usize, stays: impl FnOnce() -> bool) -> bool {
        let mut lists = self.lists.lock();
        let closes = !stays();
        if closes {
            lists.closed.push(slot);
        }
        closes
    }

    /// A slot that has been closed, with a number below `allowed`: it is the caller's.
    pub(crate) fn open(&self, allowed: usize) -> Option<usize> {
        let mut lists = self.lists.lock();
        let place = lists.closed.iter().position(|&slot| slot < allowed)?;
        Some(lists.closed.swap_remove(place))
    }

    /// Whether somebody could be given a slot.
    pub(crate) fn has_any(&self) -> bool {
        let lists = self.lists.lock();
        let Lists { wanting, free, spares, .. } = &*lists;
        let nothing = wanting.iter().all(VecDeque::is_empty) && free.is_empty();
        !(nothing && spares.is_empty())
    }

    fn queue(&self, lists: &mut Lists, index: usize, priority: Priority) {
        lists.wanting[priority as usize].push_back(index);
        self.count(lists, priority);
    }

    fn count(&self, lists: &Lists, priority: Priority) {
        let level = priority as usize;
        // Relaxed: under the lock.
        self.waiting[level].store(lists.wanting[level].len(), Ordering::Relaxed);
        let all = lists.wanting.iter().map(VecDeque::len).sum();
        // Relaxed: likewise.
        self.waiting_in_all.store(all, Ordering::Relaxed);
    }

    /// A thread of that worker has been mailed to it, of that priority. Whether it slept without a
    /// slot and now wants one, so that a worker must be told.
    pub(crate) fn call(&self, index: usize, worker: &WorkerRecord, priority: Priority) -> bool {
        fence(Ordering::SeqCst);
        if worker.ownership().is_wanting() {
            self.raise(index, priority);
            return false;
        }
        if !worker.ownership().is_spare() {
            return false;
        }
        let mut lists = self.lists.lock();
        // Invariant 1.
        let Some(place) = lists.spares.iter().position(|&spare| spare == index) else {
            return false;
        };
        lists.spares.swap_remove(place);
        worker.ownership().rest(true);
        self.queue(&mut lists, index, priority);
        true
    }

    /// Moves a worker that wants a slot to the queue of that priority, if it waits in that of a
    /// lower one.
    fn raise(&self, index: usize, priority: Priority) {
        let mut lists = self.lists.lock();
        for lower in Priority::ALL.into_iter().filter(|&lower| lower < priority) {
            let queue = &mut lists.wanting[lower as usize];
            if let Some(place) = queue.iter().position(|&waiting| waiting == index) {
                queue.remove(place);
                self.count(&lists, lower);
                return self.queue(&mut lists, index, priority);
            }
        }
    }

    /// Gives the caller's slot to the worker that has wanted one longest, or else, with `free`, to
    /// one that has neither threads to run nor bound_threads; `give` does it. Whether there was one.
    pub(crate) fn give(&self, free: bool, give: impl FnOnce(usize)) -> bool {
        let to = self.next(&mut self.lists.lock(), free);
        to.map(give).is_some()
    }

    /// Calls `end` with each of them, which are in no list any more.
    pub(crate) fn end(&self, mut end: impl FnMut(usize)) {
        let mut lists = self.lists.lock();
        let Lists { free, spares, wanting, vacant: _, closed: _ } = &mut *lists;
        let wanting = wanting.iter_mut().flat_map(|queue| queue.drain(..));
        free.drain(..).chain(spares.drain(..)).chain(wanting).for_each(&mut end);
        Priority::ALL.into_iter().for_each(|priority| self.count(&lists, priority));
    }
}
