//! The order in which a carrier runs ready threads. The documentation of
//! [`Runtime`](crate::Runtime#order) states it for users, and `tests/order.rs` has a test for each
//! bound.
//!
//! A *turn* is what one thread runs between two scheduling points. Three kinds of threads wait for
//! turns on a seat:
//!
//! | kind | where they wait | in which order |
//! | --- | --- | --- |
//! | begun: threads that began on the carrier and are ready again | the carrier's own queue | first come, first served |
//! | new, and such as may migrate | the runtime's ready queue | the strategy's; of another priority, first come, first served |
//! | those that began on carriers without a seat | those carriers queue for a seat (`reserve.rs`) | first come, first served |
//!
//! All of a higher priority come first. Among those of one priority:
//!
//! 1. If another carrier wants a seat and this one has had its tenure, it gives its seat away. A
//!    tenure ends after [`TENURE_NS`] or [`TENURE_TURNS`] turns, whichever is sooner.
//! 2. If a turn of a new thread is *due*, a new one runs. It is due when a begun thread has
//!    yielded, and after [`BEGUN_IN_A_ROW`] turns of begun ones.
//! 3. Else a begun thread runs, then a new one.
//! 4. If there is neither, another carrier that wants a seat gets this one.
//!
//! So neither kind can keep another waiting: after the turn of a new thread a begun one comes
//! first, and a seat keeps the count of its turns when it changes hands.
//!
//! Why not a new thread after each turn of a begun one: a thread that has begun holds a stack.
//! Threads that wait often would all be begun before the first ends. Why after each yield: a thread
//! that yields asks for just that. Why a tenure ends by time: to give a seat away costs two
//! switches of kernel threads, some 5 µs. That is little beside [`TENURE_NS`], and much beside a
//! turn of 100 ns. Why also by turns: no clock needs to move for the bound.

use core::cell::Cell;

use machine::clock::{self, Ticks};

use crate::thread::priority::Priority;
use crate::thread::header::Thread;

use super::scheduler_loop::Local;

/// A new thread is due after so many turns of begun ones in a row.
const BEGUN_IN_A_ROW: u32 = 8;

/// A carrier that another one waits for gives its seat away after so many ns.
const TENURE_NS: u64 = 50_000;

/// A carrier that another one waits for gives its seat away after so many turns.
const TENURE_TURNS: u32 = 61;

/// The turns that a carrier has given to threads.
pub(super) struct Turns {
    /// Turns of begun threads since the last one of a new thread, [`BEGUN_IN_A_ROW`] at most.
    begun: Cell<u32>,
    /// The number of looks (`Local::looks`) when its tenure began.
    first: Cell<u32>,
    /// When its tenure began.
    since: Cell<Ticks>,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { begun: Cell::new(0), first: Cell::new(0), since: Cell::new(Ticks::from_bits(0)) }
    }
}

/// What a carrier does at one priority.
enum Choice {
    /// It runs this thread.
    Run(Thread),
    /// It has given its seat away.
    Gave,
    /// No thread of that priority is ready for it.
    Nothing,
}

impl Local {
    /// Returns the thread whose turn it is on this seat; `None` if there is none, or if the seat
    /// was given away.
    #[inline]
    pub(super) fn choose(&self) -> Option<Thread> {
        let begun = &self.turns.begun;
        if begun.get() < BEGUN_IN_A_ROW && !self.has_rivals() {
            // As `choose_among` would, for threads of the normal priority only.
            let own = self.bound.borrow_mut().pop(Priority::Normal);
            if own.is_some() {
                begun.set(begun.get() + 1);
                return own;
            }
            begun.set(0);
            return self.take_ready();
        }
        self.choose_closely()
    }

    /// Whether threads of other priorities, or on other carriers, may come before the carrier's
    /// own.
    #[inline]
    fn has_rivals(&self) -> bool {
        self.shared.unusual().is_used() || self.shared.reserve().waiting() > 0
    }

    #[cold]
    fn choose_closely(&self) -> Option<Thread> {
        if !self.shared.unusual().is_used() {
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
        if self.owes_seat(priority) && self.give_seat() {
            return Choice::Gave;
        }
        let due = begun.get() >= BEGUN_IN_A_ROW;
        if due && let Some(thread) = self.take_due(priority) {
            return Choice::Run(thread);
        }
        let own = self.bound.borrow_mut().pop(priority);
        if let Some(thread) = own {
            // No new one is ready. One that is from now on waits for as many turns as any other.
            begun.set(if due { 1 } else { begun.get() + 1 });
            return Choice::Run(thread);
        }
        if let Some(thread) = self.take_new(priority) {
            begun.set(0);
            return Choice::Run(thread);
        }
        if self.shared.reserve().waiting_from(priority) > 0 && self.give_seat() {
            return Choice::Gave;
        }
        Choice::Nothing
    }

    /// Takes a new thread whose turn has come, though begun ones may be ready.
    #[cold]
    fn take_due(&self, priority: Priority) -> Option<Thread> {
        // A look first: a search in vain would count as one that did not pay (`thrift.rs`).
        if priority == Priority::Normal && !self.is_any_ready() {
            return None;
        }
        let thread = self.take_new(priority)?;
        self.turns.begun.set(0);
        // Of turns before a carrier had the seat, too.
        self.shared.seat(self.carrier().seat()).set_turns(0);
        Some(thread)
    }

    /// Takes a thread of that priority that any carrier may run.
    fn take_new(&self, priority: Priority) -> Option<Thread> {
        let unusual = self.shared.unusual();
        match priority {
            Priority::Normal => self.take_ready(),
            Priority::High => unusual.take(Priority::High),
            Priority::Low if unusual.has(Priority::Low) => self.take_low(),
            Priority::Low => None,
        }
    }

    /// Whether this carrier has had its tenure, and another one with a thread of that priority or a
    /// higher one wants a seat.
    #[inline]
    pub(super) fn owes_seat(&self, priority: Priority) -> bool {
        let reserve = self.shared.reserve();
        // Both counts: most often no carrier waits, and one look says so.
        reserve.waiting() > 0 && reserve.waiting_from(priority) > 0 && self.has_had_its_tenure()
    }

    #[cold]
    fn has_had_its_tenure(&self) -> bool {
        let Turns { first, since, .. } = &self.turns;
        self.looks.get().wrapping_sub(first.get()) >= TENURE_TURNS
            || clock::now().nanos_since(since.get()) >= TENURE_NS
    }

    /// The thread that ran has yielded: a new one is due, unless it was new itself and begun ones
    /// are ready.
    pub(super) fn has_yielded(&self) {
        let begun = &self.turns.begun;
        if begun.get() > 0 || self.bound.borrow().is_empty() {
            begun.set(BEGUN_IN_A_ROW);
        }
    }

    /// The carrier has been given a seat.
    pub(super) fn begin_turns(&self) {
        let Turns { begun, first, since } = &self.turns;
        begun.set(self.shared.seat(self.carrier().seat()).turns().min(BEGUN_IN_A_ROW));
        first.set(self.looks.get());
        since.set(clock::now());
    }

    /// The carrier is about to give its seat to another one, which goes on with the count.
    pub(super) fn leave_turns(&self) {
        self.shared.seat(self.carrier().seat()).set_turns(self.turns.begun.get());
    }
}
