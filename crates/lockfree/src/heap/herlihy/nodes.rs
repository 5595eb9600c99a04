//! The nodes of a heap that is copied, and the places of its values.
//!
//! A node is copied whenever its path is; a value must not move, because whoever is late may still
//! look at the copy that it was in. So a value lies in a *slot*, and what nodes copy is the slot's
//! number. Nodes and slots are numbered alike and made together, but then go their own ways: what a
//! thread has in stock are pairs of a free node and a free slot, and that is what a chain of the
//! shared stock is made of.
//!
//! | word of a node | in the tree | in a chain of free pairs |
//! | --- | --- | --- |
//! | `key` | the key | nothing |
//! | `children` | left and right node | the next node of the chain, and this node's slot |
//! | `slot` | where the value is | of the first node: the first of the next chain |
//!
//! # Invariants
//!
//! 1. Whatever is read from a node's words, they are numbers of nodes and slots that exist, or
//!    [`NONE`].
//! 2. Words are written only by the thread that owns the node, after a Release fence that comes
//!    after the node was taken out of the tree.
//! 3. A slot is touched only by the thread that owns it: it came with a free pair, or with the
//!    entry that the thread has taken out.

use core::mem::MaybeUninit;

use machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use machine::cell::UnsafeCell;

use crate::heap::words::Block;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// A node, and the slot of the same number.
pub(super) struct Node<B: Block, V> {
    key: B::Atoms,
    children: AtomicU64,
    slot: AtomicU32,
    value: UnsafeCell<MaybeUninit<V>>,
}

/// What a node says.
#[derive(Clone, Copy)]
pub(super) struct Words<B> {
    pub(super) key: B,
    pub(super) left: u32,
    pub(super) right: u32,
    pub(super) slot: u32,
}

/// A node and a slot, both free.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) node: u32,
    pub(super) slot: u32,
}

#[inline]
pub(super) fn join(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[inline]
pub(super) fn split(both: u64) -> (u32, u32) {
    ((both >> 32) as u32, both as u32)
}

impl<B: Block, V> Node<B, V> {
    pub(super) fn new() -> Self {
        Self {
            key: B::fresh(),
            children: AtomicU64::fresh(0),
            slot: AtomicU32::fresh(NONE),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// What the words are now: of one node only if it is in the tree all the while, which the
    /// caller finds out afterwards.
    #[inline]
    pub(super) fn read(&self) -> Words<B> {
        let key = B::load(&self.key);
        // Relaxed: the caller's Acquire fence is next, and then its look at the root.
        let (left, right) = split(self.children.load(Ordering::Relaxed));
        // Relaxed: as above.
        let slot = self.slot.load(Ordering::Relaxed);
        Words { key, left, right, slot }
    }

    /// Writes a node that the caller owns (Invariant 2).
    #[inline]
    pub(super) fn write(&self, words: Words<B>) {
        words.key.store(&self.key);
        // Relaxed: published with the root.
        self.children.store(join(words.left, words.right), Ordering::Relaxed);
        // Relaxed: as above.
        self.slot.store(words.slot, Ordering::Relaxed);
    }

    /// Makes a free node part of a chain (Invariant 2).
    pub(super) fn chain(&self, next: u32, slot: u32) {
        // Relaxed: published with the chain.
        self.children.store(join(next, slot), Ordering::Relaxed);
    }

    /// The next node of the chain, and this node's slot.
    pub(super) fn chained(&self) -> (u32, u32) {
        // Relaxed: the chain was published, and is the caller's.
        split(self.children.load(Ordering::Relaxed))
    }

    /// Of the first node of a chain: which chain comes next (Invariant 2).
    pub(super) fn set_next_chain(&self, first: u32) {
        // Relaxed: published with the chain.
        self.slot.store(first, Ordering::Relaxed);
    }

    /// The same; or anything, if the chain has been taken by another thread.
    pub(super) fn next_chain(&self) -> u32 {
        // Relaxed: the caller's compare-exchange says whether it is true.
        self.slot.load(Ordering::Relaxed)
    }

    /// Puts a value in.
    ///
    /// # Safety
    ///
    /// The caller owns the slot, in which there is none (Invariant 3).
    #[inline]
    pub(super) unsafe fn put(&self, value: V) {
        self.value.with_mut(|slot| {
            // SAFETY: the caller owns the slot.
            let slot = unsafe { &mut *slot };
            slot.write(value);
        });
    }

    /// Returns where the value is, if there is one.
    pub(super) fn value(&self) -> *mut V {
        self.value.with_mut(|slot| slot.cast())
    }

    /// Takes the value out.
    ///
    /// # Safety
    ///
    /// The caller owns the slot, in which there is one (Invariant 3).
    #[inline]
    pub(super) unsafe fn take(&self) -> V {
        self.value.with_mut(|slot| {
            // SAFETY: the caller owns the slot.
            let slot = unsafe { &*slot };
            // SAFETY: there is a value, and the caller does not take it twice.
            unsafe { slot.assume_init_read() }
        })
    }
}
