//! A slot, also called a virtual processor: one of the processors that a runtime has, as it sees
//! them, with the state that belongs to the slot and not to its owner.
//!
//! # Invariants
//!
//! 1. The owner of the slot uses `contents` (Invariant 1 of `ownership.rs`).

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use crate::queues::ready::{QueueIndex, Task};

/// The part of a slot that its owner uses.
pub(crate) struct SlotContents {
    /// The slot's index in the queue of ready threads.
    pub(crate) index: QueueIndex,
    /// The task of the thread that was taken last.
    pub(crate) spent: Option<Task>,
}

/// A slot.
pub(crate) struct Slot {
    /// The worker that owns the slot. Written by the thread that gives it.
    owner: AtomicU32,
    /// Turns of bound threads since the last turn of a new one (`worker/order.rs`). Written by the
    /// worker that gives the slot away, and raised by each thread that takes it.
    bound_turns: AtomicU32,
    /// Used by the worker that owns the slot (Invariant 1).
    contents: UnsafeCell<SlotContents>,
}

// SAFETY: `contents` has one user at a time (Invariant 1); an index stays with its slot, not with a
// kernel thread.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Slot {
    /// Returns the slot of this index, of which there is one. The worker of the same index owns it.
    pub(crate) fn new(index: usize) -> Self {
        // SAFETY: there is one of this number for the runtime's one strategy, and one thread at a
        // time uses it (Invariant 1).
        let queue_index = unsafe { QueueIndex::new(index) };
        let contents = SlotContents { index: queue_index, spent: None };
        Self {
            owner: AtomicU32::fresh(index as u32),
            bound_turns: AtomicU32::fresh(0),
            contents: UnsafeCell::new(contents),
        }
    }

    /// Returns the worker that owns the slot, as far as is known.
    pub(crate) fn owner(&self) -> usize {
        // Relaxed: the worker's ownership decides.
        self.owner.load(Ordering::Relaxed) as usize
    }

    /// Sets the worker that owns the slot. Called by the thread that has the slot.
    pub(crate) fn set_owner(&self, worker: usize) {
        // Relaxed: a hint for threads that look.
        self.owner.store(worker as u32, Ordering::Relaxed);
    }

    /// Returns the turns of bound threads since the last turn of a new one.
    pub(crate) fn bound_turns(&self) -> u32 {
        // Relaxed: written by a worker that owned the slot, before it gave it away.
        self.bound_turns.load(Ordering::Relaxed)
    }

    /// Sets the turns of bound threads. Called by the thread that has the slot.
    pub(crate) fn set_bound_turns(&self, turns: u32) {
        // Relaxed: one thread has the slot, and giving it away is a Release.
        self.bound_turns.store(turns, Ordering::Relaxed);
    }

    /// Calls `body` with the contents.
    ///
    /// # Safety
    ///
    /// The caller owns the slot (Invariant 1), and `body` does not call this.
    pub(crate) unsafe fn with<R>(&self, body: impl FnOnce(&mut SlotContents) -> R) -> R {
        // SAFETY: the caller's promise.
        self.contents.with_mut(|contents| body(unsafe { &mut *contents }))
    }
}
