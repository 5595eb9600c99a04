//! A seat: one of the processors that a runtime has, as it sees them, with what belongs to it and
//! not to whoever sits there.
//!
//! # Invariants
//!
//! 1. `hold` is used by whoever has the seat (Invariant 1 of `standing.rs`).

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use stanchion_threadpool::{Place, Task};

/// What whoever has a seat uses.
pub(crate) struct Hold {
    pub(crate) place: Place,
    /// The block of the thread that was taken last.
    pub(crate) spent: Option<Task>,
}

/// A seat.
pub(crate) struct Seat {
    holder: AtomicU32,
    /// Turns of threads that have begun, since the last of a new one: as the carrier that gave the
    /// seat away counted them, and one for each time that the seat was taken since
    /// (`trunk/order.rs`).
    turns: AtomicU32,
    hold: UnsafeCell<Hold>,
}

// SAFETY: one user at a time (Invariant 1); a place stays with its seat, not with a kernel thread.
unsafe impl Send for Seat {}
// SAFETY: likewise.
unsafe impl Sync for Seat {}

impl Seat {
    /// Seat number `index`, of which there is one, held by the carrier of the same number.
    pub(crate) fn new(index: usize) -> Self {
        // SAFETY: one place of a number for the runtime's one strategy, used by one at a time
        // (Invariant 1).
        let place = unsafe { Place::new(index) };
        let hold = Hold { place, spent: None };
        Self {
            holder: AtomicU32::fresh(index as u32),
            turns: AtomicU32::fresh(0),
            hold: UnsafeCell::new(hold),
        }
    }

    /// The carrier that has it, as far as is known.
    pub(crate) fn holder(&self) -> usize {
        // Relaxed: the carrier's standing decides.
        self.holder.load(Ordering::Relaxed) as usize
    }

    /// Whoever has it gives it to this carrier.
    pub(crate) fn hand_to(&self, carrier: usize) {
        // Relaxed: a hint for who looks.
        self.holder.store(carrier as u32, Ordering::Relaxed);
    }

    /// Returns the turns of threads that have begun, since the last of a new one.
    pub(crate) fn turns(&self) -> u32 {
        // Relaxed: written by a carrier that had the seat, before it gave it on.
        self.turns.load(Ordering::Relaxed)
    }

    /// Sets the turns of threads that have begun. The caller has the seat.
    pub(crate) fn set_turns(&self, turns: u32) {
        // Relaxed: only one carrier has the seat, and giving it on is a Release.
        self.turns.store(turns, Ordering::Relaxed);
    }

    /// # Safety
    ///
    /// The caller has the seat (Invariant 1), and `body` does not use it otherwise.
    pub(crate) unsafe fn with<R>(&self, body: impl FnOnce(&mut Hold) -> R) -> R {
        // SAFETY: the caller's promise.
        self.hold.with_mut(|hold| body(unsafe { &mut *hold }))
    }
}
