//! The paper's queue and stack without locks, as their authors have them: linked lists, in which a
//! link is a node's number and a tag, in one word that is compared and exchanged.
//!
//! Why not the crate's [`MichaelScottQueue`](stanchion_lockfree::queue::MichaelScottQueue) and
//! [`TreiberStack`](stanchion_lockfree::stack::TreiberStack): those hold values of any type, give
//! memory back, and bound what a stopped thread keeps. That takes three times as many instructions.
//! They are further rows of the figures.
//!
//! A thread keeps nodes that it removed, and uses the last of them for its next insertion, as in
//! [`linked`](super::linked).
//!
//! What they share of their links is charged at its callers, so that a simulated machine knows the
//! instructions of each of the two.
//!
//! # Invariants
//!
//! 1. A node is of the list, of a thread's shelf, of the other nodes, or of the thread that inserts
//!    or removes it.
//! 2. Each exchange of a link adds one to its tag. So a thread that was stopped between its look
//!    and its exchange fails, even if the same node is there again, unless 2^32 exchanges came
//!    between. A node's `next` keeps its tag while the node is elsewhere.
//! 3. A shelf is touched only by the thread with its index.
//! 4. The number in a link is `NONE`, or that of a node. `head` and `tail` of the queue always
//!    name a node, and so does the `next` of a node before `tail`. Any other number is compared
//!    with `NONE` before it is used.
//!
//! Source: Michael and Scott, PODC 1996, figure 1; Treiber 1986.

mod queue;
mod stack;

pub use queue::TaggedQueue;
pub use stack::TaggedStack;

use lock_api::Mutex;
use stanchion_machine::atomic::{AtomicU32, AtomicU64, Ordering};
use stanchion_machine::cell::UnsafeCell;
use stanchion_machine::thread;
use stanchion_spin::{Backoff, TestAndSet};

use super::linked::{KEEPERS, Line};

/// A node's number, or [`NONE`], in the lower half, and a tag in the upper one: the number of
/// exchanges of the word so far.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link(u64);

/// No node.
const NONE: u32 = u32::MAX;

impl Link {
    const NONE: Self = Self(NONE as u64);

    const fn new(node: u32, tag: u32) -> Self {
        Self((tag as u64) << 32 | node as u64)
    }

    const fn node(self) -> u32 {
        self.0 as u32
    }

    const fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn is_none(self) -> bool {
        self.node() == NONE
    }

    /// Returns what is there after an exchange that puts `node` there.
    const fn to(self, node: u32) -> Self {
        Self::new(node, self.tag().wrapping_add(1))
    }
}

/// A word that holds a link.
struct Word(AtomicU64);

impl Word {
    fn new(node: u32) -> Self {
        Self(AtomicU64::new(Link::new(node, 0).0))
    }

    #[track_caller]
    fn load(&self) -> Link {
        // Acquire: pairs with the Release of the exchange that put the node there.
        Link(self.0.load(Ordering::Acquire))
    }

    /// Puts `node` there if `old` still is.
    #[track_caller]
    fn exchange(&self, old: Link, node: u32) -> bool {
        // Release: pairs with the Acquire of `load`. Relaxed: the word is read anew.
        let order = (Ordering::Release, Ordering::Relaxed);
        self.0.compare_exchange(old.0, old.to(node).0, order.0, order.1).is_ok()
    }

    /// Puts `link` there, in a node that only this thread has.
    #[track_caller]
    fn set(&self, link: Link) {
        // Relaxed: the exchange that links the node publishes it.
        self.0.store(link.0, Ordering::Relaxed);
    }
}

/// A node.
struct Node<V> {
    /// The value.
    value: V,
    /// The next node.
    next: Word,
}

/// The nodes that a thread keeps, each with the tag of its `next`: one cache line.
struct Shelf {
    /// The number of nodes.
    count: usize,
    /// The nodes, the last of which is used first.
    nodes: [Link; Self::ROOM],
}

impl Shelf {
    const ROOM: usize = 15;

    /// The nodes that go from a shelf to the other nodes, or come from there, at a time.
    const BATCH: usize = 7;

    const fn new() -> Self {
        Self { count: 0, nodes: [Link::NONE; Self::ROOM] }
    }

    #[inline(always)]
    fn take(&mut self) -> Option<Link> {
        self.count = self.count.checked_sub(1)?;
        self.nodes.get(self.count).copied()
    }

    /// Returns whether there was room.
    #[inline(always)]
    fn put(&mut self, own: Link) -> bool {
        let Some(place) = self.nodes.get_mut(self.count) else { return false };
        *place = own;
        self.count += 1;
        true
    }
}

/// All nodes, those that threads keep, and the number of those that have been used.
struct Nodes<V> {
    /// The nodes, by their numbers.
    all: Box<[Line<Node<V>>]>,
    /// For each thread, the nodes that it keeps.
    shelves: Box<[Line<UnsafeCell<Shelf>>]>,
    /// The nodes for which no shelf had room, and those of threads without a shelf.
    others: Line<Mutex<TestAndSet, Vec<Link>>>,
    /// The number of nodes that have been used.
    used: Line<AtomicU32>,
}

impl<V: Default> Nodes<V> {
    fn new(count: u32) -> Self {
        let node = |_| Line(Node { value: V::default(), next: Word::new(NONE) });
        let shelf = |_| Line(UnsafeCell::new(Shelf::new()));
        Self {
            all: (0..count).map(node).collect(),
            shelves: (0..KEEPERS).map(shelf).collect(),
            others: Line(Mutex::new(Vec::new())),
            used: Line(AtomicU32::new(0)),
        }
    }
}

impl<V> Nodes<V> {
    #[inline(always)]
    fn node(&self, node: u32) -> &Node<V> {
        debug_assert!((node as usize) < self.all.len(), "Invariant 4");
        // SAFETY: the number is of a node (Invariant 4).
        unsafe { self.all.get_unchecked(node as usize) }
    }

    #[inline(always)]
    fn own(&self) -> Option<&UnsafeCell<Shelf>> {
        self.shelves.get(thread::index()?).map(|shelf| &**shelf)
    }

    /// Returns the node that this thread kept last, or another one that is not in use, with the tag
    /// of its `next`; [`Link::NONE`] if there is none.
    #[inline(always)]
    fn take(&self) -> Link {
        let kept = self.own().and_then(|shelf| {
            shelf.with_mut(|shelf| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                unsafe { &mut *shelf }.take()
            })
        });
        kept.unwrap_or_else(|| self.take_other())
    }

    /// Returns one of the other nodes, and takes some more to the shelf. If there is none, returns
    /// a node that was never used, or [`Link::NONE`].
    #[cold]
    fn take_other(&self) -> Link {
        let mut others = self.others.lock();
        let Some(own) = others.pop() else {
            drop(others);
            return self.unused();
        };
        if let Some(shelf) = self.own() {
            shelf.with_mut(|shelf| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                let shelf = unsafe { &mut *shelf };
                let more = others.len().saturating_sub(Shelf::BATCH);
                // It is empty: there is room.
                others.drain(more..).for_each(|own| _ = shelf.put(own));
            });
        }
        own
    }

    /// Returns a node that was never used, or [`Link::NONE`].
    fn unused(&self) -> Link {
        // Relaxed: it only gives each caller another number.
        let node = self.used.fetch_add(1, Ordering::Relaxed);
        if (node as usize) < self.all.len() { Link::new(node, 0) } else { Link::NONE }
    }

    /// Keeps a node, with the tag of its `next`, for this thread.
    #[inline(always)]
    fn keep(&self, own: Link) {
        let kept = self.own().is_some_and(|shelf| {
            shelf.with_mut(|shelf| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                unsafe { &mut *shelf }.put(own)
            })
        });
        if !kept {
            self.keep_other(own);
        }
    }

    /// Puts a node to the others, with some of the shelf, which is full.
    #[cold]
    fn keep_other(&self, own: Link) {
        let mut others = self.others.lock();
        others.push(own);
        if let Some(shelf) = self.own() {
            shelf.with_mut(|shelf| {
                // SAFETY: the shelf is this thread's (Invariant 3).
                let shelf = unsafe { &mut *shelf };
                others.extend((0..Shelf::BATCH).filter_map(|_| shelf.take()));
            });
        }
    }
}

/// Stays away for a while after another thread was faster. Most operations make no backoff.
#[cold]
fn lost(backoff: &mut Option<Backoff>) {
    backoff.get_or_insert_with(Backoff::new).spin();
}

/// The nodes of a structure of the figures: more than all processes hold at a time.
const NODES: u32 = 8_192;

#[cfg(test)]
mod tests {
    use super::*;
    use stanchion_lockfree::queue::Full;
    use stanchion_lockfree::{ConcurrentQueue, ConcurrentStack};
    use stanchion_machine::sync::Arc;
    use stanchion_machine::{model, thread};

    /// Has four threads push and pop numbers of their own. Returns all that was popped.
    fn contend<S: Send + Sync + 'static>(
        shared: S,
        push: fn(&S, u64),
        pop: fn(&S) -> Option<u64>,
    ) -> Vec<u64> {
        let shared = Arc::new(shared);
        let thread = |number: u64| {
            let shared = shared.clone();
            thread::spawn(move || {
                let turn = |turn| {
                    push(&shared, number * 1_000 + turn);
                    pop(&shared).expect("each has pushed before it pops")
                };
                (0..100).map(turn).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..4).map(thread).collect();
        let mut all: Vec<_> =
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(pop(&shared), None);
        all.sort_unstable();
        all
    }

    fn each_once() -> Vec<u64> {
        (0..4).flat_map(|thread| (0..100).map(move |turn| thread * 1_000 + turn)).collect()
    }

    #[test]
    fn a_tagged_queue_gives_back_each_value_once_the_oldest_first() {
        model(|| {
            let queue: TaggedQueue<u64> = TaggedQueue::default();
            assert!(queue.is_empty() && queue.pop().is_none());
            (0..4).for_each(|value| assert!(queue.try_push(value).is_ok()));
            assert_eq!([(); 4].map(|()| queue.pop().unwrap()), [0, 1, 2, 3]);
            let push = |queue: &TaggedQueue<u64>, value| assert!(queue.try_push(value).is_ok());
            assert_eq!(contend(queue, push, TaggedQueue::pop), each_once());
        });
    }

    #[test]
    fn a_tagged_stack_gives_back_each_value_once_the_newest_first() {
        model(|| {
            let stack: TaggedStack<u64> = TaggedStack::default();
            assert!(stack.is_empty() && stack.pop().is_none());
            (0..4).for_each(|value| stack.push(value));
            assert_eq!([(); 4].map(|()| stack.pop().unwrap()), [3, 2, 1, 0]);
            assert_eq!(contend(stack, TaggedStack::push, TaggedStack::pop), each_once());
        });
    }

    #[test]
    fn threads_without_a_shelf_use_their_nodes_again() {
        model(|| {
            let queue: TaggedQueue<u64> = TaggedQueue::with_nodes(2);
            let others = (0..KEEPERS).map(|_| thread::spawn(thread::index)).collect::<Vec<_>>();
            others.into_iter().for_each(|other| _ = other.join().unwrap());
            let queue = Arc::new(queue);
            let late = queue.clone();
            let last = thread::spawn(move || {
                for value in 0..4 {
                    assert!(late.try_push(value).is_ok());
                    assert_eq!(late.pop(), Some(value));
                }
            });
            last.join().unwrap();
        });
    }

    #[test]
    fn a_full_queue_gives_the_value_back() {
        model(|| {
            let queue: TaggedQueue<u64> = TaggedQueue::with_nodes(8);
            (1..8).for_each(|value| assert!(queue.try_push(value).is_ok()));
            assert_eq!(queue.try_push(7), Err(Full(7)));
            // All that this thread removes, it uses again.
            assert_eq!([(); 3].map(|()| queue.pop().unwrap()), [1, 2, 3]);
            (0..3).for_each(|value| assert!(queue.try_push(value).is_ok()));
            assert_eq!(queue.try_push(7), Err(Full(7)));
        });
    }
}
