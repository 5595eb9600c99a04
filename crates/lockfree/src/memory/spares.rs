//! Magazines: a few nodes that each thread keeps for its next operation. A pop and then a push of
//! one thread then exchange nothing on a list that all threads share.
//!
//! Why not take a [per-thread cache](super::thread_cache) for each operation: that is an exchange
//! as well. Only the thread of its number ever uses a magazine, so a mark on it is enough, set and
//! cleared by plain stores. The mark is for the case that a signal handler interrupts the thread in
//! between and uses the structure too. The handler finds the mark and does without.
//!
//! Why so few nodes: those in a magazine are of no use to other threads. Two are the most that an
//! operation can need, or give back: a node and a block of
//! [`HerlihyStack`](crate::stack::HerlihyStack).
//!
//! | a thread | finds | does |
//! | --- | --- | --- |
//! | wants a node | no magazine of its own yet | makes it, and goes on to the shared list |
//! | wants a node | a node in it | takes it |
//! | gives one back | no magazine, or a full one | goes on to the shared list |
//! | gives one back | room | leaves the node there |
//!
//! If the store has a capacity, a thread that wants a node makes no magazine. A thread that never
//! wants a node keeps none.
//!
//! A thread that ends leaves its nodes to the next of its number. A thread that has no number, as
//! when it is ending, does without.
//!
//! # Invariants
//!
//! 1. Only the thread that has the number of a magazine touches it. `kept` is touched only by an
//!    operation that found `taken` false and set it, until it clears it.
//! 2. A node in a magazine is on no list. Its only owner is the thread of that magazine.
//!
//! # Orderings
//!
//! All are Relaxed: the writes of the last holder of a number happened before the next holder
//! begins ([`stanchion_machine::thread::index`]).

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicBool, Fresh, Ordering, signal_fence};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::thread;

use super::segments::Segments;

/// The most nodes that a thread keeps.
pub(super) const KEPT: usize = stanchion_machine::sized(2, 1);

/// Segments enough for [`thread::INDICES`] magazines. A model has at most five threads.
const SEGMENTS: usize = stanchion_machine::sized(14, 2);

type Magazines = Segments<CachePadded<Magazine>, SEGMENTS>;

/// The magazines of all threads, with nodes of one structure.
pub(super) struct Spares {
    /// The magazines, by their threads' numbers.
    magazines: Magazines,
    /// Threads with this number or a higher one keep no nodes.
    keepers: usize,
}

/// The spare nodes of one thread.
struct Magazine {
    /// Set while its thread uses it. Written by that thread.
    taken: AtomicBool,
    /// The nodes. Touched by the thread of this number.
    kept: UnsafeCell<Kept>,
}

/// Nodes. An element is 0, which is null, if there is none. Why not a count beside them: the index
/// of a node would then depend on the count that was stored last, and the processor could not
/// predict it.
struct Kept([u32; KEPT]);

// SAFETY: `kept` is touched by one thread at a time (Invariant 1).
unsafe impl Sync for Magazine {}

impl Spares {
    /// Returns magazines for all threads, made as they are needed.
    pub(super) const fn new() -> Self {
        Self { magazines: Segments::new(), keepers: Magazines::CAPACITY }
    }

    /// Returns magazines for the threads with numbers below `keepers`, made from the start.
    pub(super) fn for_threads(keepers: usize) -> Self {
        let magazines = Segments::new();
        let keepers = keepers.min(magazines.reserve(keepers, Magazine::new));
        Self { magazines, keepers }
    }

    /// Returns the calling thread's number, if the thread keeps nodes.
    #[inline]
    fn number(&self) -> Option<usize> {
        thread::index().filter(|&number| number < self.keepers)
    }

    /// Takes a node that the calling thread has kept. The thread owns it now.
    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        let number = self.number()?;
        let Some(magazine) = self.magazines.get(number) else { return self.make(number) };
        magazine.with(Kept::take).flatten()
    }

    /// Makes the magazine. It is empty, unless a signal handler interrupts this thread.
    #[cold]
    fn make(&self, number: usize) -> Option<u32> {
        self.magazines.get_or_make(number, Magazine::new);
        None
    }

    /// Keeps an owned node for the calling thread, if there is room. If it returns `false`, the
    /// node stays the caller's.
    #[inline]
    pub(super) fn keep(&self, node: u32) -> bool {
        let Some(magazine) = self.number().and_then(|number| self.magazines.get(number)) else {
            return false;
        };
        magazine.with(|kept| kept.keep(node)).unwrap_or(false)
    }
}

impl Magazine {
    fn new() -> CachePadded<Self> {
        let kept = UnsafeCell::new(Kept([0; KEPT]));
        CachePadded::new(Self { taken: AtomicBool::fresh(false), kept })
    }

    /// Calls `with` with the nodes, unless this thread was interrupted while it was doing that
    /// already.
    #[inline]
    fn with<R>(&self, with: impl FnOnce(&mut Kept) -> R) -> Option<R> {
        // Relaxed, all: only this thread sets and clears it. A signal handler that interrupts it is
        // over before it goes on.
        if self.taken.load(Ordering::Relaxed) {
            return None;
        }
        self.taken.store(true, Ordering::Relaxed);
        signal_fence();
        let result = self.kept.with_mut(|kept| {
            // SAFETY: this thread has taken it, and `with` calls nothing that comes back here
            // (Invariant 1).
            let kept = unsafe { &mut *kept };
            with(kept)
        });
        signal_fence();
        self.taken.store(false, Ordering::Relaxed);
        Some(result)
    }
}

impl Kept {
    #[inline]
    fn take(&mut self) -> Option<u32> {
        self.0.iter_mut().find(|slot| **slot != 0).map(core::mem::take)
    }

    #[inline]
    fn keep(&mut self, node: u32) -> bool {
        debug_assert_ne!(node, 0, "null is no node");
        let slot = self.0.iter_mut().find(|slot| **slot == 0);
        slot.map(|slot| *slot = node).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;

    #[test]
    fn a_thread_keeps_two_nodes_once_it_has_asked_for_one() {
        let spares = Spares::new();
        assert!(!spares.keep(1), "it has never needed one");
        assert_eq!(spares.take(), None);
        assert!(spares.keep(1) && spares.keep(2));
        assert!(!spares.keep(3), "there is room for two");
        assert_eq!([(); 3].map(|()| spares.take()), [Some(1), Some(2), None]);
    }

    #[test]
    fn others_do_not_find_what_a_thread_keeps() {
        let spares = Spares::new();
        assert_eq!(spares.take(), None);
        assert!(spares.keep(7));
        scope(|scope| scope.spawn(|| assert_eq!(spares.take(), None)).join()).unwrap();
        assert_eq!(spares.take(), Some(7));
    }

    #[test]
    fn the_next_thread_of_a_number_finds_what_the_last_one_left() {
        let spares = Spares::new();
        let visit = || {
            let number = thread::index().unwrap();
            let left = spares.take();
            assert!(spares.keep(number as u32 + 1));
            (number, left)
        };
        // Threads of other tests may take the number in between. So this is tried until a thread
        // gets a number that was seen before.
        let mut seen = std::collections::HashSet::new();
        loop {
            let (number, left) = scope(|scope| scope.spawn(visit).join()).unwrap();
            assert_eq!(left, seen.contains(&number).then_some(number as u32 + 1));
            if !seen.insert(number) {
                break;
            }
        }
    }

    #[test]
    fn what_interrupts_a_thread_at_its_shelf_does_without() {
        let spares = Spares::new();
        assert_eq!(spares.take(), None);
        assert!(spares.keep(4));
        let magazine = spares.magazines.get(thread::index().unwrap()).unwrap();
        let within = magazine.with(|_| (spares.take(), spares.keep(5)));
        assert_eq!(within, Some((None, false)));
        assert_eq!(spares.take(), Some(4));
    }

    #[test]
    fn only_so_many_threads_keep_nodes() {
        let spares = Spares::for_threads(0);
        assert_eq!(spares.take(), None);
        assert!(!spares.keep(1));
        assert_eq!(spares.magazines.iter().count(), 0);
        assert_eq!(Spares::for_threads(3).magazines.iter().count(), 2 + 4);
    }
}
