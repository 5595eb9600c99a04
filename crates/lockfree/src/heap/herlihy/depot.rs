//! Free nodes: in each thread's [cache](crate::memory::thread_cache), and in one depot that all
//! threads share.
//!
//! A cache that has more than two batches of free pairs gives one to the depot, as a chain. A cache
//! that runs out takes one. So a thread that only pops feeds one that only pushes, for one shared
//! exchange a batch.
//!
//! ```text
//! depot ──► node ──► node ──► node        a chain: one batch
//!             │ next chain
//!             ▼
//!           node ──► node ──► node
//! ```
//!
//! # Invariants
//!
//! 1. The depot's tag goes up with each exchange, so one that succeeds saw the chain's true
//!    successor. It wraps after 2^32, as the root's does.
//!
//! # Orderings
//!
//! - **Give a chain** (exchange of the depot's word): Release. The partner is the Acquire look of
//!   its taker.
//! - **Take a chain** (exchange of the depot's word): Relaxed. The chain that it uncovers was
//!   published by the Release before, and the exchange continues that Release's sequence.
//!
//! Source: Herlihy 1993, section 6, for nodes of a process's own. The shared store of whole batches
//! is the depot of Bonwick and Adams, "Magazines and Vmem", USENIX 2001.

use crossbeam_utils::CachePadded;
use stanchion_machine::atomic::{AtomicU64, Ordering, fence};
use stanchion_spin::Backoff;

use super::nodes::{NONE, Node, Pair, join, split};
use crate::heap::words::Block;
use crate::memory::numbered::Numbered;
use crate::memory::thread_cache::{CacheGuard, ThreadCaches};

/// The number of free pairs that go to the depot at once.
pub(super) const BATCH: usize = 32;

/// All nodes of one heap, and the free ones among them.
pub(super) struct Depot<B: Block, V> {
    pub(super) nodes: Numbered<Node<B, V>>,
    /// The free nodes of each thread.
    caches: ThreadCaches<NodeCache<B>>,
    /// The first node of the first chain, and a tag. Written by threads that give or take a chain.
    chains: CachePadded<AtomicU64>,
    /// The number of pairs in a chain.
    batch: usize,
}

/// The nodes that a thread keeps, and its work on one path.
pub(super) struct NodeCache<B> {
    /// Free pairs.
    pub(super) free: Vec<Pair>,
    /// The path that is being copied, from the root.
    pub(super) path: Vec<Step<B>>,
}

impl<B> Default for NodeCache<B> {
    fn default() -> Self {
        Self { free: Vec::new(), path: Vec::new() }
    }
}

/// A node of the path, with the content of its copy.
#[derive(Clone, Copy)]
pub(super) struct Step<B> {
    pub(super) node: u32,
    pub(super) key: B,
    /// Its left child, which becomes the copy's right one.
    pub(super) left: u32,
    pub(super) slot: u32,
}

impl<B: Block, V> Depot<B, V> {
    pub(super) const fn new(batch: usize) -> Self {
        Self {
            nodes: Numbered::new(),
            caches: ThreadCaches::new(),
            chains: CachePadded::new(AtomicU64::new(u64::MAX)),
            batch,
        }
    }

    /// Returns a depot with room for `capacity` nodes.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { nodes: Numbered::with_capacity(capacity, Node::new), ..Self::new(BATCH) }
    }

    /// Takes the calling thread's cache for one operation.
    #[inline]
    pub(super) fn take(&self) -> CacheGuard<'_, NodeCache<B>> {
        self.caches.take()
    }

    /// Makes sure that there are `count` free pairs.
    #[inline]
    pub(super) fn supply(&self, free: &mut Vec<Pair>, count: usize) {
        while free.len() < count {
            self.supply_one(free);
        }
    }

    #[cold]
    fn supply_one(&self, free: &mut Vec<Pair>) {
        if !self.fetch(free) {
            let number = self.nodes.add(Node::new);
            free.push(Pair { node: number, slot: number });
        }
    }

    /// Gives away the pairs that are too many for one thread.
    #[inline]
    pub(super) fn tidy(&self, free: &mut Vec<Pair>) {
        if free.len() > 2 * self.batch {
            self.give(free);
        }
    }

    /// Returns the first node and the tag of the depot.
    fn head(&self) -> u64 {
        // Acquire: pairs with the Release of the thread that gave the chain.
        self.chains.load(Ordering::Acquire)
    }

    /// Puts the last `batch` pairs of `free` into the depot.
    #[cold]
    fn give(&self, free: &mut Vec<Pair>) {
        let left = free.len() - self.batch;
        // Release: Invariant 2 of the nodes. They are about to be written.
        fence(Ordering::Release);
        let first = free[left..].iter().rfold(NONE, |next, pair| {
            self.nodes.at(pair.node).chain(next, pair.slot);
            pair.node
        });
        free.truncate(left);
        let mut backoff = Backoff::new();
        loop {
            let head = self.head();
            let (next, tag) = split(head);
            self.nodes.at(first).set_next_chain(next);
            // Release: publishes the chain.
            if self.exchange(head, first, tag, Ordering::Release) {
                return;
            }
            backoff.spin();
        }
    }

    /// Takes a chain out of the depot. Returns `false` if there is none.
    fn fetch(&self, free: &mut Vec<Pair>) -> bool {
        let mut backoff = Backoff::new();
        let first = loop {
            let head = self.head();
            let (first, tag) = split(head);
            if first == NONE {
                return false;
            }
            let next = self.nodes.at(first).next_chain();
            // Relaxed: continues the sequence of the Release that published the chain that is
            // uncovered.
            if self.exchange(head, next, tag, Ordering::Relaxed) {
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

    fn exchange(&self, head: u64, first: u32, tag: u32, success: Ordering) -> bool {
        let new = join(first, tag.wrapping_add(1));
        // Relaxed: a failure means another look.
        self.chains.compare_exchange(head, new, success, Ordering::Relaxed).is_ok()
    }
}
