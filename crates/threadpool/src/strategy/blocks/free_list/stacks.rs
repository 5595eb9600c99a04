//! Free stacks: one for each worker, and the others in a list under a lock.
//!
//! Why not lists like those of the control blocks: a stack is a hundred times as large. A worker
//! with T of them would have its cache full of unused stacks. One is enough for a worker that
//! finishes a task and starts the next.
//!
//! # Invariants
//!
//! 1. The stack of a slot is touched only through its [`WorkerSlot`], of which there is one.
//! 2. `length` is the length of the list whenever the lock is free.
//!
//! # Orderings
//!
//! `length` is Relaxed: it says whether the lock is worth taking. The lock orders the rest.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.3.

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use stanchion_machine::atomic::{AtomicUsize, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use crate::strategy::WorkerSlot;
use crate::strategy::blocks::{Chain, Stack};
use crate::sync::Locked;

/// Free stacks in one list under a lock.
pub(crate) struct FreeStacks<L> {
    /// The length of the list (Invariant 2). Written under the lock.
    length: AtomicUsize,
    list: Locked<L, Chain<Stack>>,
}

impl<L: RawMutex> FreeStacks<L> {
    pub(crate) fn new() -> Self {
        Self { length: AtomicUsize::fresh(0), list: Locked::new(Chain::new()) }
    }

    pub(crate) fn put(&self, stack: Stack) {
        self.list.with(|list| {
            list.push_front(stack);
            // Relaxed: a hint, written under the lock.
            self.length.store(list.len(), Ordering::Relaxed);
        });
    }

    pub(crate) fn take(&self) -> Option<Stack> {
        // Relaxed: a hint.
        if self.length.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.list.with(|list| {
            let stack = list.pop_front();
            // Relaxed: a hint, written under the lock.
            self.length.store(list.len(), Ordering::Relaxed);
            stack
        })
    }
}

/// Free stacks: one for each worker, the others in a list under a lock.
pub(crate) struct LocalStacks<L> {
    /// The stack of each slot (Invariant 1).
    slots: Box<[CachePadded<SlotStack>]>,
    /// All other free stacks.
    others: CachePadded<FreeStacks<L>>,
}

struct SlotStack(UnsafeCell<Option<Stack>>);

// SAFETY: a thread that touches it has the slot, and a slot is with one thread at a time (Invariant
// 1, and the promise of `WorkerSlot::new`).
unsafe impl Sync for SlotStack {}

impl<L: RawMutex> LocalStacks<L> {
    /// Creates empty lists for so many slots.
    pub(crate) fn new(slots: usize) -> Self {
        let slot = || CachePadded::new(SlotStack(UnsafeCell::new(None)));
        Self {
            slots: core::iter::repeat_with(slot).take(slots).collect(),
            others: CachePadded::new(FreeStacks::new()),
        }
    }

    /// Keeps a stack with the slot, unless the slot has one.
    pub(crate) fn put(&self, slot: Option<&WorkerSlot>, stack: Stack) {
        let left = match slot {
            Some(slot) => self.with_slot(slot, |slot| match slot {
                Some(_) => Some(stack),
                None => {
                    *slot = Some(stack);
                    None
                }
            }),
            None => Some(stack),
        };
        if let Some(stack) = left {
            self.others.put(stack);
        }
    }

    /// Takes the stack of the slot, or another.
    pub(crate) fn take(&self, slot: Option<&WorkerSlot>) -> Option<Stack> {
        let own = slot.and_then(|slot| self.with_slot(slot, Option::take));
        own.or_else(|| self.others.take())
    }

    /// Gives the slot a stack, if there is one.
    pub(crate) fn prepare(&self, slot: &WorkerSlot) {
        if self.with_slot(slot, |slot| slot.is_none())
            && let Some(stack) = self.others.take()
        {
            self.with_slot(slot, |slot| *slot = Some(stack));
        }
    }

    fn with_slot<R>(&self, slot: &WorkerSlot, section: impl FnOnce(&mut Option<Stack>) -> R) -> R {
        self.slots[slot.index()].0.with_mut(|slot| {
            // SAFETY: this is the slot's thread (Invariant 1), and no section comes here again.
            let slot = unsafe { &mut *slot };
            section(slot)
        })
    }
}
