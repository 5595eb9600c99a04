//! Overcommitted slots: slots beyond the processors, for workers that block often and briefly.
//!
//! A worker that reads a small file from a disk is back after some 60 µs. Handing its slot on, and
//! waiting for another when it comes back, costs wake-ups that take as long, at each read. And the
//! disk wants tens of reads at a time. So a worker that comes back to find its slot gone, while a
//! processor is idle, does not wait for a slot. It is given one of these, and goes on at once.
//! There are more slots than processors then. While most of their workers are blocked, the kernel
//! itself switches from one to the next, which costs nothing that it would not cost anyway.
//!
//! ```text
//! slots    0 1 │ 2 3 4 5 6 7 …     the first are as many as the processors, and always there
//! open     1 1 │ 1 1 0 1 0 0 …     the others have a bit each, in one word
//! ```
//!
//! Why not from the start: threads that compute would share processors, which is what user-level
//! threads are there to avoid. Such a slot closes if its worker finds nothing to do. The monitor
//! closes all of them if it has seen no worker blocked for 8 rounds. It closes some if in each of
//! 8 rounds the workers that could run were more than twice the processors.
//!
//! # Invariants
//!
//! 1. The thread that sets a slot's bit owns the slot. Only the owner clears the bit.
//!
//! # Orderings
//!
//! Closing is a Release, opening an Acquire: the worker that opens a slot sees what was done on it.
//! `allowed` is Relaxed: a number that is a little old is a little wrong.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, AtomicUsize, Fresh, Ordering};

/// The most such slots: as many as a disk has use for reads at a time, and as a word has bits.
pub(crate) const MOST: usize = 62;

/// The slots beyond the processors.
pub struct Overcommit {
    /// The number of the first of them.
    first: usize,
    /// The number of them.
    count: usize,
    /// A bit for each slot that is open. Changed by the slots' owners.
    open: CachePadded<AtomicU64>,
    /// The number of slots that may be open. Written by the monitor, and by threads that take a
    /// slot.
    allowed: AtomicUsize,
}

impl Overcommit {
    /// Returns so many slots, from number `first` on, all closed.
    pub fn new(first: usize, count: usize) -> Self {
        debug_assert!(count <= MOST);
        Self {
            first,
            count,
            open: CachePadded::new(AtomicU64::fresh(0)),
            allowed: AtomicUsize::fresh(count),
        }
    }

    /// Returns whether this slot is beyond the processors.
    #[inline]
    pub(crate) fn has(&self, slot: usize) -> bool {
        slot >= self.first
    }

    /// Returns whether any slot is open.
    #[inline]
    pub fn is_any_open(&self) -> bool {
        // Relaxed: a hint.
        self.open.load(Ordering::Relaxed) != 0
    }

    /// Returns the open slots, as far as is known.
    pub fn open_slots(&self) -> OpenSlots {
        // Relaxed: a hint.
        OpenSlots { left: self.open.load(Ordering::Relaxed), first: self.first }
    }

    /// Opens a slot, if one more may be open. It is the caller's.
    pub fn open(&self) -> Option<usize> {
        // Relaxed: the exchange decides.
        let mut open = self.open.load(Ordering::Relaxed);
        loop {
            let bit = open.trailing_ones() as usize;
            // Relaxed: see the header.
            if open.count_ones() as usize >= self.allowed.load(Ordering::Relaxed).min(self.count) {
                return None;
            }
            // Acquire: pairs with the Releases of `close` and `close_excess`. Relaxed: tried again.
            let opened = self.open.compare_exchange_weak(
                open,
                open | 1 << bit,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match opened {
                Ok(_) => return Some(self.first + bit),
                Err(now) => open = now,
            }
        }
    }

    /// Closes this slot, which is the caller's.
    pub fn close(&self, slot: usize) {
        // Release: pairs with the Acquire of `open`.
        self.open.fetch_and(!self.bit(slot), Ordering::Release);
    }

    /// Returns whether more slots are open than may be.
    #[inline]
    pub(crate) fn has_excess(&self) -> bool {
        // Relaxed: `close_excess` decides.
        self.count_open() > self.allowed.load(Ordering::Relaxed)
    }

    /// Returns the number of open slots, as far as is known.
    pub fn count_open(&self) -> usize {
        // Relaxed: a hint.
        self.open.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Closes this slot, which is the caller's, if more slots are open than may be. Returns whether
    /// it has.
    pub fn close_excess(&self, slot: usize) -> bool {
        // Relaxed, all: the exchange decides.
        let mut open = self.open.load(Ordering::Relaxed);
        while open.count_ones() as usize > self.allowed.load(Ordering::Relaxed) {
            // Release: pairs with the Acquire of `open`.
            let closed = self.open.compare_exchange_weak(
                open,
                open & !self.bit(slot),
                Ordering::Release,
                Ordering::Relaxed,
            );
            match closed {
                Ok(_) => return true,
                Err(now) => open = now,
            }
        }
        false
    }

    /// Sets the number of slots that may be open from now on.
    pub fn allow(&self, most: usize) {
        // Relaxed: see the header.
        self.allowed.store(most, Ordering::Relaxed);
    }

    fn bit(&self, slot: usize) -> u64 {
        1 << (slot - self.first)
    }
}

/// The numbers of open slots, from [`Overcommit::open_slots`].
pub struct OpenSlots {
    /// The bits of those that are still to come.
    left: u64,
    /// The number of the first slot.
    first: usize,
}

impl Iterator for OpenSlots {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let bit = (self.left != 0).then(|| self.left.trailing_zeros())?;
        self.left &= self.left - 1;
        Some(self.first + bit as usize)
    }
}
