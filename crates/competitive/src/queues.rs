//! Queues of waiting threads, one for each address that threads wait for, in one list.
//!
//! Why not one list of all threads: a release would look at every thread that waits for another
//! lock before it finds its own. Why not a queue inside each lock: a lock that is rarely waited for
//! would carry it all the time.
//!
//! ```text
//! Queues { heads }
//!            v
//!     head of lock A <----> head of lock B <----> …     the first waiter of each lock
//!            v followers           v followers
//!        second of A            second of B
//!            v
//!        third of A
//! ```
//!
//! The first waiter of a lock keeps the others' queue. It passes the queue on when it leaves. So no
//! memory is needed beyond the waiters' own, and all steps but the search for a lock's head take a
//! time that does not depend on how many threads wait.
//!
//! # Invariants
//!
//! 1. A node is in `heads`, or in the followers of the head with its key, or in no queue at all.
//! 2. The nodes in `heads` have different keys, and each has `followers`. The others have none.
//! 3. Whatever guards the `Queues` guards the entries of the nodes in it.

use core::ptr;

use stanchion_machine::cell::UnsafeCell;

use crate::list::{Link, Linked, List};

/// The part of a node that its queue uses.
pub(crate) struct Entry<N> {
    /// The address that the node waits for.
    key: *const (),
    /// The links in the lists.
    link: Link<N>,
    /// The nodes behind it, if it is a head. Written under whatever guards the queues.
    followers: UnsafeCell<Option<List<N>>>,
}

impl<N> Entry<N> {
    /// Creates the entry of a node that is in no queue.
    pub(crate) fn new<K>(key: *const K) -> Self {
        Self { key: key.cast(), link: Link::new(), followers: UnsafeCell::new(None) }
    }

    pub(crate) fn link(&self) -> &Link<N> {
        &self.link
    }

    /// # Safety
    ///
    /// The queues must be borrowed mutably, and no other borrow of these followers be alive.
    unsafe fn with<R>(&self, body: impl FnOnce(&mut Option<List<N>>) -> R) -> R {
        // SAFETY: the caller's promise.
        self.followers.with_mut(|followers| body(unsafe { &mut *followers }))
    }
}

/// A node that can stand in [`Queues`].
///
/// # Safety
///
/// `entry` is the same entry at each call, the node's own, and nothing but the queues uses it. The
/// link of [`Linked`] is the entry's.
pub(crate) unsafe trait Queued: Linked {
    fn entry(&self) -> &Entry<Self>;
}

/// The queues.
pub(crate) struct Queues<N> {
    /// The first node of each key.
    heads: List<N>,
}

impl<N: Queued> Queues<N> {
    /// Creates queues without a node.
    pub(crate) const fn new() -> Self {
        Self { heads: List::new() }
    }

    /// Returns the first node that waits for `key`. Looks at the heads of other keys.
    pub(crate) fn head<K>(&self, key: *const K) -> Option<&N> {
        self.heads.iter().find(|node| ptr::eq(node.entry().key, key.cast()))
    }

    /// Returns whether `node`, which is in a queue, is the first of it.
    pub(crate) fn is_head(&self, node: &N) -> bool {
        // SAFETY: the queues are borrowed, and nothing is written meanwhile.
        node.entry().followers.with(|followers| unsafe { (*followers).is_some() })
    }

    /// Puts `node` at the end of the queue of its key. Returns whether it is the first of it.
    ///
    /// # Safety
    ///
    /// `node` must be in no queue, and stay alive and where it is for as long as it is in this one.
    pub(crate) unsafe fn push(&mut self, node: &N) -> bool {
        let entry = node.entry();
        match self.head(entry.key).map(ptr::from_ref) {
            Some(head) => {
                // SAFETY: a node in a queue is alive.
                let head = unsafe { &*head };
                let append = |followers: &mut Option<List<N>>| {
                    if let Some(followers) = followers {
                        // SAFETY: the caller's promise.
                        unsafe { followers.push(node) };
                    }
                };
                // SAFETY: the queues are borrowed mutably; `node` is another node than its head.
                unsafe { head.entry().with(append) };
                false
            }
            None => {
                // SAFETY: the queues are borrowed mutably.
                unsafe { entry.with(|followers| *followers = Some(List::new())) };
                // SAFETY: the caller's promise.
                unsafe { self.heads.push(node) };
                true
            }
        }
    }

    /// Takes `node` out of its queue. Returns the node that became the first of it, if `node` was.
    ///
    /// # Safety
    ///
    /// `node` must be in one of these queues.
    pub(crate) unsafe fn remove(&mut self, node: &N) -> Option<&N> {
        // SAFETY: the queues are borrowed mutably.
        let followers = unsafe { node.entry().with(Option::take) };
        let Some(mut followers) = followers else {
            let head = self.head(node.entry().key).map(ptr::from_ref)?;
            // SAFETY: a node in a queue is alive.
            let head = unsafe { &*head };
            let take_out = |followers: &mut Option<List<N>>| {
                if let Some(followers) = followers {
                    // SAFETY: Invariant 1.
                    unsafe { followers.remove(node) };
                }
            };
            // SAFETY: the queues are borrowed mutably; `node` is another node than its head.
            unsafe { head.entry().with(take_out) };
            return None;
        };
        // SAFETY: it has followers, so it is a head (Invariant 2).
        unsafe { self.heads.remove(node) };
        // SAFETY: a node in a queue is alive; it stays so, because it is put into another at once.
        let next = unsafe { followers.pop().as_ref() }?;
        // SAFETY: the queues are borrowed mutably.
        unsafe { next.entry().with(|its| *its = Some(followers)) };
        // SAFETY: it was taken out of the followers.
        unsafe { self.heads.push(next) };
        Some(next)
    }

    /// Takes all nodes that wait for `key` out of their queue, first come first.
    pub(crate) fn remove_all<K>(&mut self, key: *const K) -> List<N> {
        let Some(head) = self.head(key).map(ptr::from_ref) else { return List::new() };
        // SAFETY: a node in a queue is alive.
        let head = unsafe { &*head };
        // SAFETY: the queues are borrowed mutably.
        let mut all = unsafe { head.entry().with(Option::take) }.unwrap_or_default();
        // SAFETY: it is a head.
        unsafe { self.heads.remove(head) };
        // SAFETY: it was taken out of the heads.
        unsafe { all.push_first(head) };
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    struct Numbered {
        /// The links and the key.
        entry: Entry<Self>,
        /// The number, for the test.
        number: usize,
    }

    // SAFETY: its own link.
    unsafe impl Linked for Numbered {
        fn link(&self) -> &Link<Self> {
            self.entry.link()
        }
    }

    // SAFETY: its own entry, which only queues use.
    unsafe impl Queued for Numbered {
        fn entry(&self) -> &Entry<Self> {
            &self.entry
        }
    }

    const NODES: usize = 9;
    static KEYS: [u8; 3] = [0; 3];

    /// Tests that the search for a head is short: it passes one node of each key.
    #[test]
    fn only_the_first_node_of_each_key_is_in_the_way_of_a_search() {
        let nodes: Vec<Numbered> = (0..3_000)
            .map(|number| Numbered { entry: Entry::new(&KEYS[number % 2]), number })
            .collect();
        let mut queues = Queues::<Numbered>::new();
        for node in &nodes {
            // SAFETY: in no queue until now; the nodes outlive the queues.
            unsafe { queues.push(node) };
        }
        assert_eq!(queues.heads.iter().count(), 2);
        assert!(queues.head(&KEYS[2]).is_none());
        // SAFETY: it is in a queue.
        unsafe { queues.remove(&nodes[0]) };
        assert_eq!(queues.heads.iter().count(), 2);
    }

    proptest! {
        #[test]
        fn queues_behave_as_a_map_of_vectors(
            steps in prop::collection::vec((0..NODES, 0..8), 0..80),
        ) {
            let nodes: Vec<Numbered> = (0..NODES)
                .map(|number| Numbered { entry: Entry::new(&KEYS[number % 3]), number })
                .collect();
            let mut queues = Queues::<Numbered>::new();
            let mut expected = BTreeMap::<usize, Vec<usize>>::new();
            for (number, step) in steps {
                let (node, key) = (&nodes[number], number % 3);
                let queue = expected.entry(key).or_default();
                let position = queue.iter().position(|&other| other == number);
                match position {
                    _ if step == 0 => {
                        let mut all = queues.remove_all(&KEYS[key]);
                        let mut numbers = Vec::new();
                        // SAFETY: the nodes outlive the queues.
                        while let Some(node) = unsafe { all.pop().as_ref() } {
                            numbers.push(node.number);
                        }
                        prop_assert_eq!(&numbers, &*queue);
                        queue.clear();
                    }
                    Some(position) => {
                        queue.remove(position);
                        let next = (position == 0).then(|| queue.first().copied()).flatten();
                        // SAFETY: by the vector, it is in a queue.
                        let head = unsafe { queues.remove(node) }.map(|node| node.number);
                        prop_assert_eq!(head, next);
                    }
                    None => {
                        queue.push(number);
                        // SAFETY: by the vector, it is in no queue. The nodes outlive them.
                        let first = unsafe { queues.push(node) };
                        prop_assert_eq!(first, queue.len() == 1);
                    }
                }
                for (key, queue) in &expected {
                    let head = queues.head(&KEYS[*key]).map(|node| node.number);
                    prop_assert_eq!(head, queue.first().copied());
                    for &number in queue {
                        prop_assert_eq!(queues.is_head(&nodes[number]), head == Some(number));
                    }
                }
            }
        }
    }
}
