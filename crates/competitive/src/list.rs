//! A list of nodes that lie elsewhere, on the stacks of threads that wait. The first node to come
//! is the first to leave, and a node can leave from anywhere.
//!
//! Why not `VecDeque`: a thread that gives up leaves from the middle, in a time that does not
//! depend on how many wait, and waiting must not allocate. Why not a list from a crate: those hold
//! nodes that are pinned or owned for ever. Here a thread takes its node back when it has waited
//! enough.
//!
//! ```text
//! List { first, last }
//!         |      '---------------------------.
//!         v                                  v
//!        node { link } <----> … <----> node { link }      null at both ends
//! ```
//!
//! Not part of the interface. It is public for the crates above this one, which keep their waiters
//! in such lists too.
//!
//! # Invariants
//!
//! 1. A node in a list is alive and stays where it is. The thread that put it there makes sure of
//!    that ([`List::push`]).
//! 2. A node is in one list at most.
//! 3. The links of the nodes in a list are read by the borrower of the list, and written by its
//!    mutable borrower. So the guard of the list guards them, and an iterator's nodes do not leave
//!    while it walks. The links of other nodes mean nothing, and no thread reads them.

use core::iter;
use core::ptr;

use stanchion_machine::cell::UnsafeCell;

/// The part of a node by which it is linked.
pub struct Link<N>(UnsafeCell<Neighbours<N>>);

/// The neighbours of a node.
struct Neighbours<N> {
    /// The next node, or null.
    next: *const N,
    /// The node before, or null.
    previous: *const N,
}

impl<N> Default for Link<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N> Link<N> {
    /// One of a node that is in no list.
    #[must_use]
    pub fn new() -> Self {
        Self(UnsafeCell::new(Neighbours { next: ptr::null(), previous: ptr::null() }))
    }

    /// # Safety
    ///
    /// The list in which it is must be borrowed mutably (Invariant 3).
    unsafe fn write<R>(&self, body: impl FnOnce(&mut Neighbours<N>) -> R) -> R {
        // SAFETY: the caller's promise; no two borrows overlap, since no `body` calls this.
        self.0.with_mut(|links| body(unsafe { &mut *links }))
    }

    /// # Safety
    ///
    /// The list in which it is must be borrowed (Invariant 3).
    unsafe fn next(&self) -> *const N {
        // SAFETY: the caller's promise.
        self.0.with(|links| unsafe { (*links).next })
    }
}

/// A node of a [`List`].
///
/// # Safety
///
/// `link` is the same link at each call, the node's own, and nothing but a list uses it.
pub unsafe trait Linked: Sized {
    /// Its link.
    fn link(&self) -> &Link<Self>;
}

/// The list.
pub struct List<N> {
    /// The first node, or null.
    first: *const N,
    /// The last node, or null.
    last: *const N,
}

impl<N> Default for List<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N> List<N> {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: ptr::null(), last: ptr::null() }
    }
}

impl<N: Linked> List<N> {
    /// The nodes, first come first.
    pub fn iter(&self) -> impl Iterator<Item = &N> {
        let mut next = self.first;
        iter::from_fn(move || {
            // SAFETY: a node in the list is alive (Invariant 1), and none leaves while the iterator
            // borrows the list.
            let node = unsafe { next.as_ref() }?;
            // SAFETY: the iterator borrows the list.
            next = unsafe { node.link().next() };
            Some(node)
        })
    }

    /// Puts `node` at the end.
    ///
    /// # Safety
    ///
    /// `node` must be in no list, and stay alive and where it is for as long as it is in this one.
    pub unsafe fn push(&mut self, node: &N) {
        // SAFETY: in no list until now; from now on in this one, which is borrowed mutably.
        unsafe {
            node.link()
                .write(|links| *links = Neighbours { next: ptr::null(), previous: self.last });
        }
        // SAFETY: a node in the list is alive.
        match unsafe { self.last.as_ref() } {
            // SAFETY: the list is borrowed mutably.
            Some(last) => unsafe { last.link().write(|links| links.next = node) },
            None => self.first = node,
        }
        self.last = node;
    }

    /// Puts `node` at the beginning.
    ///
    /// # Safety
    ///
    /// As for [`push`](Self::push).
    pub unsafe fn push_first(&mut self, node: &N) {
        // SAFETY: in no list until now; from now on in this one, which is borrowed mutably.
        unsafe {
            node.link()
                .write(|links| *links = Neighbours { next: self.first, previous: ptr::null() });
        }
        // SAFETY: a node in the list is alive.
        match unsafe { self.first.as_ref() } {
            // SAFETY: the list is borrowed mutably.
            Some(first) => unsafe { first.link().write(|links| links.previous = node) },
            None => self.last = node,
        }
        self.first = node;
    }

    /// Takes `node` out, wherever it stands.
    ///
    /// # Safety
    ///
    /// `node` must be in this list.
    pub unsafe fn remove(&mut self, node: &N) {
        // SAFETY: the list is borrowed mutably; so below.
        let (next, previous) = unsafe { node.link().write(|links| (links.next, links.previous)) };
        // SAFETY: a node in the list is alive.
        match unsafe { previous.as_ref() } {
            // SAFETY: as above.
            Some(previous) => unsafe { previous.link().write(|links| links.next = next) },
            None => self.first = next,
        }
        // SAFETY: a node in the list is alive.
        match unsafe { next.as_ref() } {
            // SAFETY: as above.
            Some(next) => unsafe { next.link().write(|links| links.previous = previous) },
            None => self.last = previous,
        }
    }

    /// Takes the first node out; null if there is none. From here on only the caller's protocol
    /// keeps it alive.
    pub fn pop(&mut self) -> *const N {
        let first = self.first;
        // SAFETY: a node in the list is alive.
        if let Some(node) = unsafe { first.as_ref() } {
            // SAFETY: the first node is in the list.
            unsafe { self.remove(node) };
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    struct Numbered {
        /// The links.
        link: Link<Self>,
        /// The number, for the test.
        number: usize,
    }

    // SAFETY: its own link, which only lists use.
    unsafe impl Linked for Numbered {
        fn link(&self) -> &Link<Self> {
            &self.link
        }
    }

    const NODES: usize = 6;

    proptest! {
        #[test]
        fn as_a_vector_that_nodes_leave_from_anywhere(
            steps in prop::collection::vec(0..2 * NODES, 0..60),
            ends in prop::collection::vec(prop::bool::ANY, 60),
        ) {
            let mut ends = ends.into_iter();
            let nodes: Vec<Numbered> =
                (0..NODES).map(|number| Numbered { link: Link::new(), number }).collect();
            let mut list = List::<Numbered>::new();
            let mut vector = Vec::new();
            for step in steps {
                let node = &nodes[step % NODES];
                let index = vector.iter().position(|&number| number == node.number);
                match index {
                    _ if step >= NODES => {
                        // SAFETY: null or one of the nodes above.
                        let first = unsafe { list.pop().as_ref() }.map(|node| node.number);
                        prop_assert_eq!(first, (!vector.is_empty()).then(|| vector.remove(0)));
                    }
                    Some(index) => {
                        vector.remove(index);
                        // SAFETY: by the vector, it is in the list.
                        unsafe { list.remove(node) };
                    }
                    None if ends.next() == Some(true) => {
                        vector.insert(0, node.number);
                        // SAFETY: as below.
                        unsafe { list.push_first(node) };
                    }
                    None => {
                        vector.push(node.number);
                        // SAFETY: by the vector, it is in no list. The nodes outlive it.
                        unsafe { list.push(node) };
                    }
                }
                let listed: Vec<usize> = list.iter().map(|node| node.number).collect();
                prop_assert_eq!(&listed, &vector);
            }
        }
    }
}
