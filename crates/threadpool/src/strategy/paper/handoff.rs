//! A handoff cell: a free block that an idle worker offers, and that a creator turns into a task.
//!
//! Each worker slot has one cell. The idle worker puts a free block into it and waits. A creator
//! takes the right to the block, fills it, and stores `HANDED`. So neither the block nor its lock
//! is on the way between creation and start.
//!
//! | `state` | meaning | left by |
//! | --- | --- | --- |
//! | `AWAY` | the worker works, or looks for tasks itself | the worker: `WAITING` |
//! | `WAITING` | the worker is idle, and offers its block | a creator, or the worker: `AWAY` |
//! | `CLAIMED` | a creator fills the block | that creator: `HANDED` |
//! | `HANDED` | the block is a task | the worker, which takes it: `AWAY` |
//!
//! A creator takes the cell from `WAITING` to `CLAIMED` or `HANDED`. `IdleQueue` never stores
//! `CLAIMED`: there a creator takes the right to the block by removing the slot from the idle
//! queue, under a lock.
//!
//! # Invariants
//!
//! 1. The block belongs to the worker while `AWAY` or `HANDED`, and to the creator that claimed it
//!    while `CLAIMED`. While `WAITING` no thread touches it before it has the right to.
//! 2. A cell that is not `AWAY` has a block.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | worker: store `WAITING` | Release | the creator's Acquire claim: the block is in the cell |
//! | creator: store `HANDED` | Release | the worker's Acquire load: the block is filled |
//! | worker: store `AWAY` | Relaxed | none: no other thread looks before the next `WAITING` |

use stanchion_machine::atomic::{AtomicU32, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::wait::{Patient, WaitPolicy, wait_until};

use crate::strategy::blocks::Task;

pub(super) const AWAY: u32 = 0;
pub(super) const WAITING: u32 = 1;
const CLAIMED: u32 = 2;
pub(super) const HANDED: u32 = 3;

/// A block that an idle worker offers to creators.
pub(super) struct Handoff {
    /// Written by the worker, and by the creator that has claimed the block.
    state: AtomicU32,
    /// The block. Written by the thread to which Invariant 1 gives it.
    block: UnsafeCell<Option<Task>>,
}

// SAFETY: `block` is touched only by the thread to which Invariant 1 gives it.
unsafe impl Sync for Handoff {}

/// The content of a cell that its worker takes back.
pub(super) enum Block {
    Free(Task),
    Task(Task),
}

impl Handoff {
    pub(super) fn new() -> Self {
        Self { state: AtomicU32::fresh(AWAY), block: UnsafeCell::new(None) }
    }

    /// Returns the state with the given ordering.
    #[inline]
    pub(super) fn state(&self, ordering: Ordering) -> u32 {
        self.state.load(ordering)
    }

    /// Replaces the block.
    ///
    /// # Safety
    ///
    /// The caller has the block of this cell (Invariant 1).
    #[inline]
    pub(super) unsafe fn exchange(&self, block: Option<Task>) -> Option<Task> {
        self.block.with_mut(|cell| {
            // SAFETY: the caller's promise.
            let cell = unsafe { &mut *cell };
            core::mem::replace(cell, block)
        })
    }

    /// Offers `block`. Called by the worker while `AWAY`.
    #[inline]
    pub(super) fn offer(&self, block: Task) {
        // SAFETY: the worker's own while `AWAY` (Invariant 1).
        let empty = unsafe { self.exchange(Some(block)) };
        debug_assert!(empty.is_none());
        // Release: pairs with the Acquire of `claim`.
        self.state.store(WAITING, Ordering::Release);
    }

    /// Claims the block for a creator, if the worker waits.
    #[inline]
    pub(super) fn claim(&self) -> bool {
        // Relaxed: a hint. A cell in which no worker waits is not written to.
        if self.state.load(Ordering::Relaxed) != WAITING {
            return false;
        }
        // Acquire: pairs with the Release of `offer`. Relaxed on failure: nothing is read then.
        let state = &self.state;
        state.compare_exchange(WAITING, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Has `fill` write the block.
    ///
    /// # Safety
    ///
    /// The caller is the creator that has the block (Invariant 1).
    #[inline]
    pub(super) unsafe fn fill(&self, fill: impl FnOnce(&Task)) {
        self.block.with(|block| {
            // SAFETY: the caller's promise.
            let block = unsafe { &*block };
            fill(block.as_ref().expect("the cell of a waiting worker has a block (Invariant 2)"));
        });
    }

    /// Makes the block a task of the worker. Called by the creator that has filled it.
    #[inline]
    pub(super) fn hand(&self) {
        // Release: pairs with the Acquire of `withdraw`, `wait_until_handed` and `IdleQueue`.
        self.state.store(HANDED, Ordering::Release);
    }

    /// Takes the task that was handed over. The worker has seen `HANDED` with Acquire.
    #[inline]
    pub(super) fn take_handed(&self) -> Option<Task> {
        // Relaxed: no other thread looks before the worker waits again.
        self.state.store(AWAY, Ordering::Relaxed);
        // SAFETY: `HANDED` was seen with Acquire: the creator has given the block up.
        unsafe { self.exchange(None) }
    }

    /// Takes the free block back. Called by a worker whose cell no creator can claim.
    pub(super) fn take_free(&self) -> Option<Task> {
        // Relaxed: as in `take_handed`.
        self.state.store(AWAY, Ordering::Relaxed);
        // SAFETY: no creator can claim it, so the block is the worker's (Invariant 1).
        unsafe { self.exchange(None) }
    }

    /// Waits until the creator that has the block has handed it over, and takes the task.
    #[cold]
    pub(super) fn wait_until_handed(&self) -> Option<Task> {
        // Acquire: pairs with the Release of `hand`.
        let handed = |state| state == HANDED;
        wait_until(&self.state, Ordering::Acquire, handed, &mut <Patient>::start());
        self.take_handed()
    }

    /// Takes the block back, free or as a task, if the worker has offered one. Afterwards the cell
    /// is `AWAY`.
    #[inline]
    pub(super) fn withdraw(&self) -> Option<Block> {
        // Acquire: pairs with the Release of `hand`.
        match self.state.load(Ordering::Acquire) {
            AWAY => None,
            HANDED => self.take_handed().map(Block::Task),
            _ => self.withdraw_waiting(),
        }
    }

    #[cold]
    fn withdraw_waiting(&self) -> Option<Block> {
        // Relaxed on success: no other thread has touched the cell. Relaxed on failure: the wait
        // below looks again.
        let state = &self.state;
        if state.compare_exchange(WAITING, AWAY, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            // SAFETY: the cell is `AWAY` (Invariant 1).
            return unsafe { self.exchange(None) }.map(Block::Free);
        }
        // A creator is filling the block, which takes only as long as `fill` does.
        self.wait_until_handed().map(Block::Task)
    }
}
