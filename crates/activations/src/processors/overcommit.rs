//! Seats beyond the processors, for workers that block often and briefly.
//!
//! A worker that reads a small file from a disk is back after some 60 µs. To hand its slot on, and to wait for another when it comes back, costs wake-ups that
//! take as long, at each read; and the disk wants tens of reads at a time. So a worker that comes back to find its slot gone, while a processor is idle, does not wait
//! for a slot: it is given one of these, and goes on at once. There are more slots than processors then, and while most of their
//! workers are blocked the kernel itself switches from one to the next, which costs nothing that it would not cost anyway.
//!
//! ```text
//! slots    0 1 │ 2 3 4 5 6 7 …          the first are as many as the processors, and always there (`limit.rs`)
//! open     1 1 │ 1 1 0 1 0 0 …          the others have a bit each, in one word
//! ```
//!
//! Why not from the start: threads that compute would share processors, which is what user-level threads are there to avoid. So these slots close: if
//! their worker finds nothing to do, and if the monitor has seen for a while that more workers can run than twice as many as there are processors.
//!
//! # Invariants
//!
//! 1. Who sets a slot's bit has the slot; only who has it clears the bit.
//!
//! # Orderings
//!
//! Closing is a Release, opening an Acquire: who opens a slot sees what was done on it. `most` is Relaxed: a number that is a little old is a little wrong.

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicU64, AtomicUsize, Fresh, Ordering};

/// At most: as many reads as a disk has use for at a time, and a word has bits.
pub(crate) const MOST: usize = 62;

/// Seats that are open now and then.
pub(crate) struct Overcommit {
    /// The number of the first of them.
    first: usize,
    count: usize,
    /// A bit for each that is open.
    open: CachePadded<AtomicU64>,
    /// How many may be.
    most: AtomicUsize,
}

impl Overcommit {
    /// So many slots, from that number on; all are closed.
    pub(crate) fn new(first: usize, count: usize) -> Self {
        debug_assert!(count <= MOST);
        Self {
            first,
            count,
            open: CachePadded::new(AtomicU64::fresh(0)),
            most: AtomicUsize::fresh(count),
        }
    }

    /// Whether that slot is one of these.
    #[inline]
    pub(crate) fn has(&self, slot: usize) -> bool {
        slot >= self.first
    }

    /// Whether any is open.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: a hint.
        self.open.load(Ordering::Relaxed) != 0
    }

    /// Those that are open, as far as is known.
    pub(crate) fn slots(&self) -> Seats {
        // Relaxed: a hint.
        Seats { left: self.open.load(Ordering::Relaxed), first: self.first }
    }

    /// Opens one, which is the caller's, if there may be one more.
    pub(crate) fn open(&self) -> Option<usize> {
        // Relaxed: the exchange decides.
        let mut open = self.open.load(Ordering::Relaxed);
        loop {
            let bit = open.trailing_ones() as usize;
            // Relaxed: see the header.
            if open.count_ones() as usize >= self.most.load(Ordering::Relaxed).min(self.count) {
                return None;
            }
            // Acquire: pairs with the Releases of `close` and `close_one_too_many`. Relaxed: tried again.
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
    pub(crate) fn close(&self, slot: usize) {
        // Release: pairs with the Acquire of `open`.
        self.open.fetch_and(!self.bit(slot), Ordering::Release);
    }

    /// Whether more are open than may be.
    #[inline]
    pub(crate) fn has_too_many(&self) -> bool {
        // Relaxed: `close_one_too_many` decides.
        self.count_open() > self.most.load(Ordering::Relaxed)
    }

    pub(crate) fn count_open(&self) -> usize {
        // Relaxed: a hint.
        self.open.load(Ordering::Relaxed).count_ones() as usize
    }

    /// Closes this slot, which is the caller's, if more are open than may be; whether it has.
    pub(crate) fn close_one_too_many(&self, slot: usize) -> bool {
        // Relaxed, all: the exchange decides, and that is a Release, which pairs with the Acquire of `open`.
        let mut open = self.open.load(Ordering::Relaxed);
        while open.count_ones() as usize > self.most.load(Ordering::Relaxed) {
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

    /// No more than so many are to be open from now on.
    pub(crate) fn allow(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    fn bit(&self, slot: usize) -> u64 {
        1 << (slot - self.first)
    }
}

/// Numbers of open slots, from [`Overcommit::slots`].
pub(crate) struct Seats {
    /// The bits of those that are still to come.
    left: u64,
    first: usize,
}

impl Iterator for Seats {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let bit = (self.left != 0).then(|| self.left.trailing_zeros())?;
        self.left &= self.left - 1;
        Some(self.first + bit as usize)
    }
}
