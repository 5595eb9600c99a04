//! The queue of Michael and Scott.

use core::marker::PhantomData;

use stanchion_lockfree::Progress;
use stanchion_lockfree::queue::{ConcurrentQueue, Full};
use stanchion_machine::atomic::{AtomicU64, Ordering};

use super::super::linked::Line;
use super::{Link, NODES, NONE, Nodes, Word, lost};

/// The queue of Michael and Scott. Its values are words: a thread that comes too late for a node
/// reads its value too.
pub struct TaggedQueue<T> {
    /// The dummy, before the oldest value.
    head: Line<Word>,
    /// The last node, or the one before.
    tail: Line<Word>,
    /// The nodes.
    nodes: Nodes<AtomicU64>,
    /// The type of the values.
    values: PhantomData<fn(T) -> T>,
}

// SAFETY: a shelf has one thread (Invariant 3 of `tagged`); all else is atomic.
unsafe impl<T> Sync for TaggedQueue<T> {}

impl<T> Default for TaggedQueue<T> {
    fn default() -> Self {
        Self::with_nodes(NODES)
    }
}

impl<T> TaggedQueue<T> {
    /// Returns an empty queue of `count` nodes, one of which is its dummy.
    pub fn with_nodes(count: u32) -> Self {
        let nodes = Nodes::new(count);
        let dummy = nodes.unused().node();
        Self {
            head: Line(Word::new(dummy)),
            tail: Line(Word::new(dummy)),
            nodes,
            values: PhantomData,
        }
    }
}

impl<T: Into<u64> + From<u64>> ConcurrentQueue for TaggedQueue<T> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    /// # Errors
    ///
    /// The value, if all nodes have been used.
    fn try_push(&self, value: T) -> Result<(), Full<T>> {
        let own = self.nodes.take();
        if own.is_none() {
            return Err(Full(value));
        }
        let node = self.nodes.node(own.node());
        // Relaxed: the exchange that links the node publishes it.
        node.value.store(value.into(), Ordering::Relaxed);
        node.next.set(own.to(NONE));
        let mut backoff = None;
        loop {
            let tail = self.tail.load();
            let last = &self.nodes.node(tail.node()).next;
            let next = last.load();
            if self.tail.load() != tail {
                continue;
            }
            if !next.is_none() {
                self.tail.exchange(tail, next.node());
            } else if last.exchange(next, own.node()) {
                self.tail.exchange(tail, own.node());
                return Ok(());
            } else {
                lost(&mut backoff);
            }
        }
    }

    fn pop(&self) -> Option<T> {
        let mut backoff = None;
        loop {
            let head = self.head.load();
            let tail = self.tail.load();
            let next = self.nodes.node(head.node()).next.load();
            if self.head.load() != head {
                continue;
            }
            if head.node() == tail.node() {
                if next.is_none() {
                    return None;
                }
                self.tail.exchange(tail, next.node());
                continue;
            }
            // `tail` is never behind `head`, which was the same before and after: so it was ahead,
            // and `head` had a next node when `next` was read (Invariant 4 of `tagged`).
            // Relaxed: what it finds counts only if the exchange succeeds, and then the node was
            // linked by what `load` has seen.
            let value = self.nodes.node(next.node()).value.load(Ordering::Relaxed);
            if self.head.exchange(head, next.node()) {
                self.nodes.keep(Link::new(head.node(), next.tag()));
                return Some(value.into());
            }
            lost(&mut backoff);
        }
    }

    fn is_empty(&self) -> bool {
        let head = self.head.load();
        self.nodes.node(head.node()).next.load().is_none()
    }
}
