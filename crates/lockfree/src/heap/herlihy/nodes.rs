//! The nodes of a heap that is copied, and the storage of its values.
//!
//! A node is copied whenever its path is. A value must not move, because a thread that is late may
//! still look at the old copy of its node. So a value lies in a *slot*, and a copy of a node holds
//! the slot's number. Nodes and slots are numbered alike and made together, but then go their own
//! ways. A thread's cache holds pairs of a free node and a free slot. A chain of the shared depot
//! is made of such pairs as well.
//!
//! | word of a node | in the tree | in a chain of free pairs |
//! | --- | --- | --- |
//! | `key` | the key | nothing |
//! | `children` | left and right node | the next node of the chain, and this node's slot |
//! | `slot` | the value's slot | of the first node: the first of the next chain |
//!
//! # Invariants
//!
//! 1. Whatever is read from a node's words, they are numbers of nodes and slots that exist, or
//!    [`NONE`].
//! 2. Words are written only by the thread that owns the node, after a Release fence that comes
//!    after the node was taken out of the tree.
//! 3. A slot is touched only by the thread that owns it. The thread got it with a free pair, or
//!    with the entry that it has taken out.

use core::mem::MaybeUninit;

use stanchion_machine::atomic::{AtomicU32, AtomicU64, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use crate::heap::words::Block;

/// The number that names no node.
pub(super) const NONE: u32 = u32::MAX;

/// A node, and the slot of the same number.
pub(super) struct Node<B: Block, V> {
    /// The key's words. Written by the owner of the node.
    key: B::Atoms,
    /// The left and right node, or a link of a chain. Written by the owner of the node.
    children: AtomicU64,
    /// The value's slot, or the next chain. Written by the owner of the node.
    slot: AtomicU32,
    /// The value of the slot. Touched by the owner of the slot.
    value: UnsafeCell<MaybeUninit<V>>,
}

/// The content of a node's words.
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

    /// Reads the words. They belong to one use of the node only if it is in the tree all the while.
    /// The caller finds that out afterwards.
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

    /// Returns the next node of the chain, and this node's slot.
    pub(super) fn chained(&self) -> (u32, u32) {
        // Relaxed: the chain was published, and is the caller's.
        split(self.children.load(Ordering::Relaxed))
    }

    /// Sets the next chain, in the first node of a chain (Invariant 2).
    pub(super) fn set_next_chain(&self, first: u32) {
        // Relaxed: published with the chain.
        self.slot.store(first, Ordering::Relaxed);
    }

    /// Returns the next chain. If another thread has taken the chain, it may be anything.
    pub(super) fn next_chain(&self) -> u32 {
        // Relaxed: the caller's compare-exchange tells whether it is true.
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

    /// Returns the address of the value, if there is one.
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
