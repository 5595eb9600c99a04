//! Where a thread has its free nodes while it works: a desk.
//!
//! Why not in a thread-local: a heap would have to find its own among all heaps', a thread that ends would have to bring them back, and a comparison that
//! uses the heap would find its own operation's. A desk belongs to the heap; a thread takes one for the length of an operation, the same as last time if
//! it is free, so its lines stay with its processor. There are never more desks than there were operations at once.
//!
//! A desk that has more than two batches of free pairs gives one away, as a chain, and one that runs out takes one: a thread that only pops feeds one that
//! only pushes, for one shared exchange a batch.
//!
//! ```text
//! stock ──► node ──► node ──► node        a chain: one batch
//!             │ next chain
//!             ▼
//!           node ──► node ──► node
//! ```
//!
//! # Invariants
//!
//! 1. Only the thread whose exchange found `taken` false touches what is on the desk, until it stores false.
//! 2. The stock's tag goes up with each exchange, so one that succeeds saw the chain's true successor. It wraps after 2^32, as the root's does.
//!
//! # Orderings
//!
//! | event | ordering | partner |
//! | --- | --- | --- |
//! | take a desk: swap | Acquire | the Release store of its last user |
//! | give a chain: exchange the stock | Release | the Acquire look of its taker |
//! | take a chain: exchange the stock | Relaxed | what it uncovers was published by the Release before, whose sequence it continues |
//!
//! Source: Herlihy 1993, section 6, for nodes of a process's own; the stock of whole batches is the depot of Bonwick and Adams, "Magazines and Vmem",
//! USENIX 2001.

use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use crossbeam_utils::CachePadded;
use machine::atomic::{AtomicBool, AtomicU64, Fresh, Ordering, fence};
use machine::cell::UnsafeCell;
use stanchion_spin::Backoff;

use super::nodes::{NONE, Node, Pair, join, split};
use crate::heap::words::Block;
use crate::segments::Segments;

/// Free pairs that go to the stock at once.
pub(super) const BATCH: usize = 32;

machine::thread_local! {
    /// The desk that this thread had last, of whichever heap.
    static LAST: Cell<u32> = Cell::new(0);
}

/// All nodes, desks and the stock of one heap.
pub(super) struct Desks<B: Block, V> {
    pub(super) nodes: Segments<Node<B, V>>,
    desks: Segments<CachePadded<Desk<B>>>,
    /// The first node of the first chain, and a tag.
    stock: CachePadded<AtomicU64>,
    batch: usize,
}

struct Desk<B> {
    taken: AtomicBool,
    top: UnsafeCell<Top<B>>,
}

/// What is on a desk.
pub(super) struct Top<B> {
    /// Free pairs.
    pub(super) free: Vec<Pair>,
    /// The path that is being copied, from the root.
    pub(super) path: Vec<Step<B>>,
}

/// A node of the path, and what its copy will say.
#[derive(Clone, Copy)]
pub(super) struct Step<B> {
    pub(super) node: u32,
    pub(super) key: B,
    /// Its left child, which becomes the copy's right one.
    pub(super) left: u32,
    pub(super) slot: u32,
}

impl<B: Block, V> Desks<B, V> {
    pub(super) const fn new(batch: usize) -> Self {
        Self {
            nodes: Segments::new(),
            desks: Segments::new(),
            stock: CachePadded::new(AtomicU64::new(u64::MAX)),
            batch,
        }
    }

    /// With room for `capacity` nodes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { nodes: Segments::with_places(capacity, Node::fresh), ..Self::new(BATCH) }
    }

    /// A desk for one operation.
    pub(super) fn sit_down(&self) -> Seat<'_, B, V> {
        let last = LAST.try_with(Cell::get).unwrap_or(0);
        loop {
            let desks = self.desks.given();
            let from_last = (last..desks).chain(0..last.min(desks));
            if let Some(number) = from_last.into_iter().find(|number| self.take(*number)) {
                return self.seat(number);
            }
            // All are taken. If the new one is taken from under us, another thread has begun its operation.
            let number = self.desks.add(Desk::fresh);
            if self.take(number) {
                return self.seat(number);
            }
        }
    }

    /// How many desks there are.
    #[cfg(test)]
    pub(super) fn seats(&self) -> u32 {
        self.desks.given()
    }

    /// Takes the desk if it is free.
    fn take(&self, number: u32) -> bool {
        let desk = self.desks.try_at(number);
        desk.is_some_and(|desk| {
            // Relaxed: whether it is worth a try.
            !desk.taken.load(Ordering::Relaxed)
                // Acquire: pairs with the Release of the one that had it before.
                && !desk.taken.swap(true, Ordering::Acquire)
        })
    }

    fn seat(&self, number: u32) -> Seat<'_, B, V> {
        // In the destruction of a thread the next operation looks from 0.
        let _ = LAST.try_with(|last| last.set(number));
        let mut seat =
            Seat { desks: self, number, top: Top { free: Vec::new(), path: Vec::new() } };
        seat.swap();
        seat
    }

    /// The first node and the tag of the stock.
    fn stocked(&self) -> u64 {
        // Acquire: pairs with the Release of whoever gave the chain.
        self.stock.load(Ordering::Acquire)
    }

    /// Puts the last `batch` pairs of `free` into the stock.
    fn give(&self, free: &mut Vec<Pair>) {
        let left = free.len() - self.batch;
        // Release: Invariant 2 of the nodes; they are about to be written.
        fence(Ordering::Release);
        let first = free[left..].iter().rfold(NONE, |next, pair| {
            self.nodes.at(pair.node).chain(next, pair.slot);
            pair.node
        });
        free.truncate(left);
        let mut backoff = Backoff::new();
        loop {
            let stock = self.stocked();
            let (next, tag) = split(stock);
            self.nodes.at(first).set_next_chain(next);
            // Release: publishes the chain.
            if self.exchange(stock, first, tag, Ordering::Release) {
                return;
            }
            backoff.spin();
        }
    }

    /// Takes a chain out of the stock; `false` if there is none.
    fn fetch(&self, free: &mut Vec<Pair>) -> bool {
        let mut backoff = Backoff::new();
        let first = loop {
            let stock = self.stocked();
            let (first, tag) = split(stock);
            if first == NONE {
                return false;
            }
            let next = self.nodes.at(first).next_chain();
            // Relaxed: continues the sequence of the Release that published what is uncovered.
            if self.exchange(stock, next, tag, Ordering::Relaxed) {
                break first;
            }
            backoff.spin();
        };
        let mut node = first;
        while node != NONE {
            let (next, slot) = self.nodes.at(node).chained();
            free.push(Pair { node, slot });
            node = next;
        }
        true
    }

    fn exchange(&self, stock: u64, first: u32, tag: u32, success: Ordering) -> bool {
        let new = join(first, tag.wrapping_add(1));
        // Relaxed: a failure means another look.
        self.stock.compare_exchange(stock, new, success, Ordering::Relaxed).is_ok()
    }
}

impl<B> Desk<B> {
    fn fresh() -> CachePadded<Self> {
        let top = Top { free: Vec::new(), path: Vec::new() };
        CachePadded::new(Self { taken: AtomicBool::fresh(false), top: UnsafeCell::new(top) })
    }
}

// SAFETY: what is on it is the business of the thread that has taken it (Invariant 1), and nothing of it stays with a thread.
unsafe impl<B: Send> Sync for Desk<B> {}

/// A desk that is taken; given back by `Drop`.
pub(super) struct Seat<'d, B: Block, V> {
    desks: &'d Desks<B, V>,
    number: u32,
    /// What was on it.
    top: Top<B>,
}

impl<B: Block, V> Seat<'_, B, V> {
    /// Exchanges what is on the desk for what is in hand.
    fn swap(&mut self) {
        let desk = self.desks.desks.at(self.number);
        desk.top.with_mut(|top| {
            // SAFETY: this thread has taken the desk (Invariant 1).
            let top = unsafe { &mut *top };
            core::mem::swap(top, &mut self.top);
        });
    }

    /// Sees to it that there are `count` free pairs.
    #[inline]
    pub(super) fn supply(&mut self, count: usize) {
        while self.top.free.len() < count {
            self.supply_one();
        }
    }

    #[cold]
    fn supply_one(&mut self) {
        if !self.desks.fetch(&mut self.top.free) {
            let number = self.desks.nodes.add(Node::fresh);
            self.top.free.push(Pair { node: number, slot: number });
        }
    }
}

impl<B: Block, V> Deref for Seat<'_, B, V> {
    type Target = Top<B>;

    fn deref(&self) -> &Top<B> {
        &self.top
    }
}

impl<B: Block, V> DerefMut for Seat<'_, B, V> {
    fn deref_mut(&mut self) -> &mut Top<B> {
        &mut self.top
    }
}

impl<B: Block, V> Drop for Seat<'_, B, V> {
    fn drop(&mut self) {
        if self.top.free.len() > 2 * self.desks.batch {
            self.desks.give(&mut self.top.free);
        }
        self.swap();
        // Release: pairs with the next user's Acquire.
        self.desks.desks.at(self.number).taken.store(false, Ordering::Release);
    }
}
