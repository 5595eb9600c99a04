//! Free stacks: a list under a lock, and with it one stack a place.
//!
//! Why not lists like those of the control blocks: a stack is a hundred times as large, and a place with T of them would have its cache full of
//! stacks that nobody uses. One is enough for a place that finishes a task and starts the next.
//!
//! # Invariants
//!
//! 1. A place's slot is touched only through its [`WorkerSlot`], of which there is one.
//! 2. `length` is the length of the list whenever nobody holds its lock.
//!
//! # Orderings
//!
//! `length` is Relaxed: it says whether taking the lock is worth while, and the lock orders the rest.
//!
//! Source: Anderson, Lazowska and Levy 1989, section 3.3.

use crossbeam_utils::CachePadded;
use lock_api::RawMutex;
use machine::atomic::{AtomicUsize, Fresh, Ordering};
use machine::cell::UnsafeCell;

use crate::strategy::blocks::control_block::{Chain, Stack};
use crate::strategy::interface::WorkerSlot;
use crate::sync::locked::Locked;

/// Free stacks in one list under a lock.
pub(crate) struct FreeStacks<L> {
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

/// Free stacks: one for each place, the others in a list under a lock.
pub(crate) struct LocalStacks<L> {
    slots: Box<[CachePadded<SlotStack>]>,
    others: CachePadded<FreeStacks<L>>,
}

struct SlotStack(UnsafeCell<Option<Stack>>);

// SAFETY: whoever touches it has the place, and places are with one thread at a time (Invariant 1, and what `WorkerSlot::new` was promised).
unsafe impl Sync for SlotStack {}

impl<L: RawMutex> LocalStacks<L> {
    /// None yet, for so many places.
    pub(crate) fn new(slots: usize) -> Self {
        let slot = || CachePadded::new(SlotStack(UnsafeCell::new(None)));
        Self {
            slots: core::iter::repeat_with(slot).take(slots).collect(),
            others: CachePadded::new(FreeStacks::new()),
        }
    }

    /// Keeps a stack at the place, unless it has one there.
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

    /// Takes the stack of the place, or another.
    pub(crate) fn take(&self, slot: Option<&WorkerSlot>) -> Option<Stack> {
        let own = slot.and_then(|slot| self.with_slot(slot, Option::take));
        own.or_else(|| self.others.take())
    }

    /// Lets the place have a stack, if there is one.
    pub(crate) fn prepare(&self, slot: &WorkerSlot) {
        if self.with_slot(slot, |slot| slot.is_none())
            && let Some(stack) = self.others.take()
        {
            self.with_slot(slot, |slot| *slot = Some(stack));
        }
    }

    fn with_slot<R>(&self, slot: &WorkerSlot, section: impl FnOnce(&mut Option<Stack>) -> R) -> R {
        self.slots[slot.index()].0.with_mut(|slot| {
            // SAFETY: this is the place's thread (Invariant 1), and no section comes here again.
            let slot = unsafe { &mut *slot };
            section(slot)
        })
    }
}
