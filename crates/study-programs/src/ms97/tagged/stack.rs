//! The stack of Treiber.

use stanchion_lockfree::Progress;
use stanchion_lockfree::stack::ConcurrentStack;
use stanchion_machine::cell::UnsafeCell;

use super::super::linked::Line;
use super::{Link, NODES, NONE, Nodes, Word, lost};

/// The stack of Treiber.
pub struct TaggedStack<T> {
    /// The newest node.
    top: Line<Word>,
    /// The nodes.
    nodes: Nodes<UnsafeCell<Option<T>>>,
}

// SAFETY: a shelf has one thread (Invariant 3 of `tagged`), and so has a node's value: the
// thread that links the node, and then the one that unlinks it (Invariant 1 of `tagged`).
unsafe impl<T: Send> Sync for TaggedStack<T> {}

impl<T> Default for TaggedStack<T> {
    fn default() -> Self {
        Self::with_nodes(NODES)
    }
}

impl<T> TaggedStack<T> {
    /// Returns an empty stack of `count` nodes.
    pub fn with_nodes(count: u32) -> Self {
        Self { top: Line(Word::new(NONE)), nodes: Nodes::new(count) }
    }
}

impl<T: Send> ConcurrentStack for TaggedStack<T> {
    type Item = T;

    const PROGRESS: Progress = Progress::LockFree;

    /// # Panics
    ///
    /// If all nodes have been used.
    fn push(&self, value: T) {
        let own = self.nodes.take();
        assert!(!own.is_none(), "no more are pushed than there are nodes");
        let node = self.nodes.node(own.node());
        // SAFETY: the node is this thread's (Invariant 1 of `tagged`).
        node.value.with_mut(|place| unsafe { *place = Some(value) });
        let mut next = own;
        let mut backoff = None;
        loop {
            let top = self.top.load();
            next = next.to(top.node());
            node.next.set(next);
            if self.top.exchange(top, own.node()) {
                return;
            }
            lost(&mut backoff);
        }
    }

    fn pop(&self) -> Option<T> {
        let mut backoff = None;
        loop {
            let top = self.top.load();
            if top.is_none() {
                return None;
            }
            let node = self.nodes.node(top.node());
            let next = node.next.load();
            if self.top.exchange(top, next.node()) {
                // SAFETY: the node is this thread's (Invariant 1 of `tagged`); `load` has
                // seen the exchange that linked it.
                let value = node.value.with_mut(|place| unsafe { (*place).take() });
                self.nodes.keep(Link::new(top.node(), next.tag()));
                return value;
            }
            lost(&mut backoff);
        }
    }

    fn is_empty(&self) -> bool {
        self.top.load().is_none()
    }
}
