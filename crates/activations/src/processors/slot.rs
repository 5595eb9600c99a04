//! A slot: one of the processors that a runtime has, as it sees them, with what belongs to it and
//! not to whoever sits there.
//!
//! # Invariants
//!
//! 1. `hold` is used by whoever has the slot (Invariant 1 of `ownership.rs`).

use machine::atomic::{AtomicU32, Fresh, Ordering};
use machine::cell::UnsafeCell;
use stanchion_threadpool::{Place, Task};

/// What whoever has a slot uses.
pub(crate) struct SlotContents {
    pub(crate) place: Place,
    /// The block of the thread that was taken last.
    pub(crate) spent: Option<Task>,
}

/// A slot.
pub(crate) struct Slot {
    owner: AtomicU32,
    /// Turns of threads that have begun, since the last of a new one: as the worker that gave the
    /// slot away counted them, and one for each time that the slot was taken since
    /// (`scheduler_loop/order.rs`).
    turns: AtomicU32,
    hold: UnsafeCell<SlotContents>,
}

// SAFETY: one user at a time (Invariant 1); a place stays with its slot, not with a kernel thread.
unsafe impl Send for Slot {}
// SAFETY: likewise.
unsafe impl Sync for Slot {}

impl Slot {
    /// Slot number `index`, of which there is one, held by the worker of the same number.
    pub(crate) fn new(index: usize) -> Self {
        // SAFETY: one place of a number for the runtime's one strategy, used by one at a time
        // (Invariant 1).
        let place = unsafe { Place::new(index) };
        let hold = SlotContents { place, spent: None };
        Self {
            owner: AtomicU32::fresh(index as u32),
            turns: AtomicU32::fresh(0),
            hold: UnsafeCell::new(hold),
        }
    }

    /// The worker that has it, as far as is known.
    pub(crate) fn owner(&self) -> usize {
        // Relaxed: the worker's ownership decides.
        self.owner.load(Ordering::Relaxed) as usize
    }

    /// Whoever has it gives it to this worker.
    pub(crate) fn set_owner(&self, worker: usize) {
        // Relaxed: a hint for who looks.
        self.owner.store(worker as u32, Ordering::Relaxed);
    }

    /// Returns the turns of threads that have begun, since the last of a new one.
    pub(crate) fn turns(&self) -> u32 {
        // Relaxed: written by a worker that had the slot, before it gave it on.
        self.turns.load(Ordering::Relaxed)
    }

    /// Sets the turns of threads that have begun. The caller has the slot.
    pub(crate) fn set_turns(&self, turns: u32) {
        // Relaxed: only one worker has the slot, and giving it on is a Release.
        self.turns.store(turns, Ordering::Relaxed);
    }

    /// # Safety
    ///
    /// The caller has the slot (Invariant 1), and `body` does not use it otherwise.
    pub(crate) unsafe fn with<R>(&self, body: impl FnOnce(&mut SlotContents) -> R) -> R {
        // SAFETY: the caller's promise.
        self.hold.with_mut(|hold| body(unsafe { &mut *hold }))
    }
}
