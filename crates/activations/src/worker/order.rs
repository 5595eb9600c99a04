//! The order in which a worker runs ready threads. The documentation of
//! [`Runtime`](crate::Runtime#order) states it for users, and `tests/order.rs` has a test for each
//! bound.
//!
//! A *turn* is what one thread runs between two scheduling points. Three kinds of threads wait for
//! turns on a slot:
//!
//! | kind | where they wait | in which order |
//! | --- | --- | --- |
//! | begun: threads that began on the worker and are ready again | the worker's own queue | first come, first served |
//! | new, and such as may migrate | the runtime's ready queue | the strategy's; of another priority, first come, first served |
//! | those that began on workers without a slot | those workers queue for a slot (`idle_workers.rs`) | first come, first served |
//!
//! All of a higher priority come first. Among those of one priority:
//!
//! 1. If another worker wants a slot and this one has had its tenure, it gives its slot away. A
//!    tenure ends after [`TENURE_NS`] or [`TENURE_TURNS`] turns, whichever is sooner.
//! 2. If a turn of a new thread is *due*, a new one runs. It is due when a begun thread has
//!    yielded, and after [`BEGUN_IN_A_ROW`] turns of begun ones.
//! 3. Else a begun thread runs, then a new one.
//! 4. If there is neither, another worker that wants a slot gets this one.
//!
//! So neither kind can keep another waiting: after the turn of a new thread a begun one comes
//! first, and a slot keeps the count of its turns when it changes hands.
//!
//! Why not a new thread after each turn of a begun one: a thread that has begun holds a stack.
//! Threads that wait often would all be begun before the first ends. Why after each yield: a thread
//! that yields asks for just that. Why a tenure ends by time: to give a slot away costs two
//! switches of kernel threads, some 5 µs. That is little beside [`TENURE_NS`], and much beside a
//! turn of 100 ns. Why also by turns: no clock needs to move for the bound.

use core::cell::Cell;

use machine::clock::{self, Ticks};

use crate::thread::priority::Priority;
use crate::thread::header::Thread;

use super::scheduler_loop::Worker;

/// A new thread is due after so many turns of begun ones in a row.
const BEGUN_IN_A_ROW: u32 = 8;

/// A worker that another one waits for gives its slot away after so many ns.
const TENURE_NS: u64 = 50_000;

/// A worker that another one waits for gives its slot away after so many turns.
const TENURE_TURNS: u32 = 61;

/// The turns that a worker has given to threads.
pub(super) struct TurnCounts {
    /// TurnCounts of begun threads since the last one of a new thread, [`BEGUN_IN_A_ROW`] at most.
    begun: Cell<u32>,
    /// The number of looks (`Worker::looks`) when its tenure began.
    first: Cell<u32>,
    /// When its tenure began.
    since: Cell<Ticks>,
}

impl TurnCounts {
    pub(super) fn new() -> Self {
        Self { begun: Cell::new(0), first: Cell::new(0), since: Cell::new(Ticks::from_bits(0)) }
    }
}

/// What a worker does at one priority.
enum Choice {
    /// It runs this thread.
    Run(Thread),
    /// It has given its slot away.
    Gave,
    /// No thread of that priority is ready for it.
    Nothing,
}

impl Worker {
    /// Returns the thread whose turn it is on this slot; `None` if there is none, or if the slot
    /// was given away.
    #[inline]
    pub(super) fn choose(&self) -> Option<Thread> {
        let begun = &self.turns.begun;
        if begun.get() < BEGUN_IN_A_ROW && !self.has_rivals() {
            // As `choose_among` would, for threads of the normal priority only.
            let own = self.local_queue.borrow_mut().pop(Priority::Normal);
            if own.is_some() {
                begun.set(begun.get() + 1);
                return own;
            }
            begun.set(0);
            return self.take_ready();
        }
        self.choose_closely()
    }

    /// Whether threads of other priorities, or on other workers, may come before the worker's
    /// own.
    #[inline]
    fn has_rivals(&self) -> bool {
        self.runtime.prioritized().is_used() || self.runtime.idle_workers().waiting() > 0
    }

    #[cold]
    fn choose_closely(&self) -> Option<Thread> {
        if !self.runtime.prioritized().is_used() {
            return match self.choose_among(Priority::Normal) {
                Choice::Run(thread) => Some(thread),
                Choice::Gave | Choice::Nothing => None,
            };
        }
        for priority in Priority::ALL.into_iter().rev() {
            match self.choose_among(priority) {
                Choice::Run(thread) => return Some(thread),
                Choice::Gave => return None,
                Choice::Nothing => {}
            }
        }
        None
    }

    #[inline]
    fn choose_among(&self, priority: Priority) -> Choice {
        let begun = &self.turns.begun;
        if self.owes_slot(priority) && self.give_slot() {
            return Choice::Gave;
        }
        let due = begun.get() >= BEGUN_IN_A_ROW;
        if due && let Some(thread) = self.take_due(priority) {
            return Choice::Run(thread);
        }
        let own = self.local_queue.borrow_mut().pop(priority);
        if let Some(thread) = own {
            // No new one is ready. One that is from now on waits for as many turns as any other.
            begun.set(if due { 1 } else { begun.get() + 1 });
            return Choice::Run(thread);
        }
        if let Some(thread) = self.take_new(priority) {
            begun.set(0);
            return Choice::Run(thread);
        }
        if self.runtime.idle_workers().waiting_from(priority) > 0 && self.give_slot() {
            return Choice::Gave;
        }
        Choice::Nothing
    }

    /// Takes a new thread whose turn has come, though begun ones may be ready.
    #[cold]
    fn take_due(&self, priority: Priority) -> Option<Thread> {
        // A look first: a search in vain would count as one that did not pay (`steal_throttle.rs`).
        if priority == Priority::Normal && !self.is_any_ready() {
            return None;
        }
        let thread = self.take_new(priority)?;
        self.turns.begun.set(0);
        // Of turns before a worker had the slot, too.
        self.runtime.slot(self.worker().slot()).set_turns(0);
        Some(thread)
    }

    /// Takes a thread of that priority that any worker may run.
    fn take_new(&self, priority: Priority) -> Option<Thread> {
        let prioritized = self.runtime.prioritized();
        match priority {
            Priority::Normal => self.take_ready(),
            Priority::High => prioritized.take(Priority::High),
            Priority::Low if prioritized.has(Priority::Low) => self.take_low(),
            Priority::Low => None,
        }
    }

    /// Whether this worker has had its tenure, and another one with a thread of that priority or a
    /// higher one wants a slot.
    #[inline]
    pub(super) fn owes_slot(&self, priority: Priority) -> bool {
        let idle_workers = self.runtime.idle_workers();
        // Both counts: most often no worker waits, and one look says so.
        idle_workers.waiting() > 0 && idle_workers.waiting_from(priority) > 0 && self.has_had_its_tenure()
    }

    #[cold]
    fn has_had_its_tenure(&self) -> bool {
        let TurnCounts { first, since, .. } = &self.turns;
        self.looks.get().wrapping_sub(first.get()) >= TENURE_TURNS
            || clock::now().nanos_since(since.get()) >= TENURE_NS
    }

    /// The thread that ran has yielded: a new one is due, unless it was new itself and begun ones
    /// are ready.
    pub(super) fn has_yielded(&self) {
        let begun = &self.turns.begun;
        if begun.get() > 0 || self.local_queue.borrow().is_empty() {
            begun.set(BEGUN_IN_A_ROW);
        }
    }

    /// The worker has been given a slot.
    pub(super) fn begin_turns(&self) {
        let TurnCounts { begun, first, since } = &self.turns;
        begun.set(self.runtime.slot(self.worker().slot()).turns().min(BEGUN_IN_A_ROW));
        first.set(self.looks.get());
        since.set(clock::now());
    }

    /// The worker is about to give its slot to another one, which goes on with the count.
    pub(super) fn leave_turns(&self) {
        self.runtime.slot(self.worker().slot()).set_turns(self.turns.begun.get());
    }
}
