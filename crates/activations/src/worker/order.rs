//! The order in which a worker runs ready threads. The documentation of
//! [`Runtime`](crate::Runtime#order) states it for users, and `tests/together/order.rs` has a test
//! for each bound.
//!
//! Three kinds of threads wait for turns on a slot:
//!
//! - bound: threads that began on the worker and are ready again. Queue: the worker's own queue.
//!   Order: first come, first served.
//! - new, and threads that may migrate. Queue: the runtime's ready queue. Order: the strategy's;
//!   for other priorities, first come, first served.
//! - bound to workers without a slot. Queue: those workers queue for a slot (`idle_workers.rs`).
//!   Order: first come, first served.
//!
//! All threads of a higher priority come first. Among those of one priority:
//!
//! 1. If another worker waits for a slot and this one has had its tenure, it gives its slot away. A
//!    tenure ends after [`TENURE_NS`] or [`TENURE_TURNS`] turns, whichever is sooner.
//! 2. If a turn of a new thread is *due*, a new one runs. It is due when a bound thread has
//!    yielded, and after [`BOUND_IN_A_ROW`] turns of bound ones.
//! 3. Else a bound thread runs, then a new one.
//! 4. If there is neither, another worker that waits for a slot gets this one.
//!
//! So neither kind can keep another waiting: after the turn of a new thread a bound one comes
//! first, and a slot keeps the count of its turns when it changes hands.
//!
//! Why not a new thread after each turn of a bound one: a thread that has begun holds a stack.
//! Threads that wait often would all be begun before the first ends. Why after each yield: a
//! thread that yields asks for just that. Why a tenure ends by time: to give a slot away costs two
//! switches of kernel threads, some 5 µs. That is little beside [`TENURE_NS`], and much beside a
//! turn of 100 ns. Why also by turns: no clock needs to move for the bound.

use stanchion_machine::clock;

use super::state::Worker;
use crate::thread::handle::Thread;
use crate::thread::priority::Priority;

/// The turns of bound threads in a row after which a new thread is due.
const BOUND_IN_A_ROW: u32 = 8;

/// The time after which a worker gives its slot to one that waits, in ns.
const TENURE_NS: u64 = 50_000;

/// The turns after which a worker gives its slot to one that waits.
const TENURE_TURNS: u32 = 61;

/// The decision of a worker at one priority.
enum Choice {
    /// It runs this thread.
    Run(Thread),
    /// It has given its slot away.
    GaveSlot,
    /// It has no ready thread of the priority.
    Nothing,
}

impl Worker {
    /// Returns the thread that is next on this slot; `None` if there is none, or if the slot was
    /// given away.
    #[inline]
    pub(super) fn choose(&self) -> Option<Thread> {
        let bound = &self.turn_counts.bound;
        // The common case, decided as `choose_at` would: no other priority, and no other worker.
        if bound.get() < BOUND_IN_A_ROW && !self.has_rivals() {
            let local = self.local_queue.borrow_mut().pop(Priority::Normal);
            // A bound thread is ready.
            if local.is_some() {
                bound.set(bound.get() + 1);
                return local;
            }
            bound.set(0);
            return self.take_ready();
        }
        self.choose_closely()
    }

    /// Returns whether threads of other priorities, or other workers, may come before the worker's
    /// own threads.
    #[inline]
    fn has_rivals(&self) -> bool {
        self.runtime.ready.prioritized.is_used()
            || self.runtime.processors.idle_workers.waiting() > 0
    }

    #[cold]
    fn choose_closely(&self) -> Option<Thread> {
        // All threads are of normal priority.
        if !self.runtime.ready.prioritized.is_used() {
            return match self.choose_at(Priority::Normal) {
                Choice::Run(thread) => Some(thread),
                Choice::GaveSlot | Choice::Nothing => None,
            };
        }
        for priority in Priority::ALL.into_iter().rev() {
            match self.choose_at(priority) {
                Choice::Run(thread) => return Some(thread),
                Choice::GaveSlot => return None,
                Choice::Nothing => {}
            }
        }
        None
    }

    #[inline]
    fn choose_at(&self, priority: Priority) -> Choice {
        let bound = &self.turn_counts.bound;
        // Another worker waits, and the tenure is over.
        if self.owes_slot(priority) && self.give_slot() {
            return Choice::GaveSlot;
        }
        let is_due = bound.get() >= BOUND_IN_A_ROW;
        // A new thread is due.
        if is_due && let Some(thread) = self.take_due(priority) {
            return Choice::Run(thread);
        }
        let local = self.local_queue.borrow_mut().pop(priority);
        // A bound thread is ready. If a new one was due, none was ready: a new one that comes now
        // waits for as many turns as any other.
        if let Some(thread) = local {
            bound.set(if is_due { 1 } else { bound.get() + 1 });
            return Choice::Run(thread);
        }
        // A new thread is ready.
        if let Some(thread) = self.take_new(priority) {
            bound.set(0);
            return Choice::Run(thread);
        }
        // There is nothing to run here, and another worker waits.
        let waiting = self.runtime.processors.idle_workers.waiting_from(priority);
        if waiting > 0 && self.give_slot() {
            return Choice::GaveSlot;
        }
        Choice::Nothing
    }

    /// Takes a new thread that is due, though bound ones may be ready.
    #[cold]
    fn take_due(&self, priority: Priority) -> Option<Thread> {
        // A look first: a search in vain would count as a steal that did not pay
        // (`steal_throttle.rs`).
        if priority == Priority::Normal && !self.is_any_ready() {
            return None;
        }
        let thread = self.take_new(priority)?;
        self.turn_counts.bound.set(0);
        // Also for the turns of the slot's owners before.
        self.runtime.processors.slot(self.record().slot()).set_bound_turns(0);
        Some(thread)
    }

    /// Takes a thread of this priority that any worker may run.
    fn take_new(&self, priority: Priority) -> Option<Thread> {
        let prioritized = &self.runtime.ready.prioritized;
        match priority {
            Priority::Normal => self.take_ready(),
            Priority::High => prioritized.take(Priority::High),
            Priority::Low if prioritized.has(Priority::Low) => self.take_low(),
            Priority::Low => None,
        }
    }

    /// Returns whether the worker has had its tenure, and another one with a thread of this
    /// priority or a higher one waits for a slot.
    #[inline]
    pub(super) fn owes_slot(&self, priority: Priority) -> bool {
        let idle_workers = &self.runtime.processors.idle_workers;
        // Both counts: most often no worker waits, and one look says so.
        idle_workers.waiting() > 0
            && idle_workers.waiting_from(priority) > 0
            && self.is_tenure_over()
    }

    #[cold]
    fn is_tenure_over(&self) -> bool {
        let counts = &self.turn_counts;
        self.looks.get().wrapping_sub(counts.tenure_looks.get()) >= TENURE_TURNS
            || clock::now().nanos_since(counts.tenure_began.get()) >= TENURE_NS
    }

    /// Makes a new thread due, because the thread that ran has yielded. But if that was new itself,
    /// bound ones that are ready come first.
    pub(super) fn thread_yielded(&self) {
        let bound = &self.turn_counts.bound;
        if bound.get() > 0 || self.local_queue.borrow().is_empty() {
            bound.set(BOUND_IN_A_ROW);
        }
    }

    /// Begins the tenure of a worker that has been given a slot.
    pub(super) fn begin_tenure(&self) {
        let counts = &self.turn_counts;
        let turns = self.runtime.processors.slot(self.record().slot()).bound_turns();
        counts.bound.set(turns.min(BOUND_IN_A_ROW));
        counts.tenure_looks.set(self.looks.get());
        counts.tenure_began.set(clock::now());
    }

    /// Leaves the count of turns to the next owner of the slot.
    pub(super) fn end_tenure(&self) {
        let slot = self.runtime.processors.slot(self.record().slot());
        slot.set_bound_turns(self.turn_counts.bound.get());
    }
}
