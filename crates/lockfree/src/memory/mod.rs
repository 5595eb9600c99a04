//! Memory of the nodes: where they come from, and when one may be used again.
//!
//! A thread that has read a pointer to a node may be stopped before it looks at the node. Meanwhile
//! the node can be taken out and
//!
//! - *freed*: the thread reads memory that is not there;
//! - *used again* at the same address: the thread's compare-exchange finds the pointer it expects,
//!   and succeeds although everything has changed (ABA).
//!
//! There are two ways out here, behind one trait. A structure takes either as a type parameter.
//!
//! [`Counted`]:
//!
//! - A pointer is an index and a tag in one word. Each use of a node changes the tag.
//! - Nodes are never freed until the structure is dropped: they are used again.
//! - A node can be used again at once. A thread keeps two for itself.
//! - A stopped thread keeps back the two that it keeps for itself.
//! - It allocates when the structure is larger than it ever was, and at a thread's first push.
//! - It can go wrong: a thread is stopped between two instructions for a multiple of 2^32 uses of
//!   one pointer. That is 86 s at 50 million a second.
//!
//! [`Hazard`]:
//!
//! - A pointer is an address.
//! - A node is freed, or used again, when no thread has announced that it looks at the node.
//! - A stopped thread keeps back the nodes that it has announced and those that wait in its own
//!   list.
//! - It allocates when the thread's spare nodes are used up.
//! - It cannot go wrong.
//!
//! # Use by a structure
//!
//! An operation begins with [`Store::enter`] and does everything through the [`Operation`] that it
//! gets. The node behind a pointer may be looked at from [`Operation::protect`] on. Only the thread
//! that took the node out by its compare-exchange may take its value. It finds the value by the
//! [`Operation::slot`] that it read *before* that exchange: with counted pointers the node itself
//! may be in use again by then.

use stanchion_machine::atomic::Ordering;

/// A scheme that tells when a node may be used again: [`Counted`] or [`Hazard`].
pub trait Memory: sealed::Sealed + Copy + Default + 'static {
    /// The memory of one structure with values of type `T`.
    #[doc(hidden)]
    type Store<T>: Store<T>;
}

/// Counted pointers into a pool of nodes that stay nodes: the scheme of the papers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

/// Hazard pointers: a thread announces the nodes that it looks at, and no thread frees those.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hazard;

/// The nodes of one structure.
///
/// Dropping it frees all nodes that were retired or discarded, but drops no value. The nodes that
/// are still linked must have been taken out and discarded by then.
///
/// # Safety
///
/// An implementation keeps the promises of [`Operation`].
#[doc(hidden)]
pub unsafe trait Store<T>: Sized {
    /// The content of a link: null or a node.
    type Pointer: Pointer;
    /// A pointer that threads share.
    type Link: Link<Pointer = Self::Pointer>;
    /// An operation of one thread on the structure.
    type Operation<'s>: Operation<'s, T, Store = Self>
    where
        Self: 's;

    /// A store with no node.
    const NEW: Self;
    /// The pointer that names no node.
    const NULL: Self::Pointer;

    /// Returns a store with room for `capacity` nodes, if this memory can set room aside. It grows
    /// beyond that.
    fn with_capacity(capacity: usize) -> Self;

    /// Begins an operation.
    fn enter(&self) -> Self::Operation<'_>;
}

/// The content of a link: null or a node. Two pointers from one link are equal only if nothing
/// happened in between that [`Link::compare_exchange`] must notice.
#[doc(hidden)]
pub trait Pointer: Copy + PartialEq {
    /// Returns whether it is null, with any tag.
    fn is_null(self) -> bool;

    /// Returns whether both name the same node. They may come from different links and so have
    /// different tags.
    fn names_same(self, other: Self) -> bool;
}

/// A pointer that threads share.
#[doc(hidden)]
pub trait Link {
    /// The pointer that the link holds.
    type Pointer: Pointer;

    /// A link that holds null.
    const NULL: Self;

    /// Returns the pointer, for comparing only: the node behind it may be gone.
    fn load(&self, order: Ordering) -> Self::Pointer;

    /// Makes the link point to the node of `new` if it still is `current`, and returns whether it
    /// did. The tag of a counted link goes up by one, whatever the tag in `new` is.
    fn compare_exchange(
        &self,
        current: Self::Pointer,
        new: Self::Pointer,
        success: Ordering,
        failure: Ordering,
    ) -> bool;

    /// Returns the pointer that the link holds after `compare_exchange(current, new, …)` has
    /// succeeded.
    fn after(current: Self::Pointer, new: Self::Pointer) -> Self::Pointer;

    /// Makes the link point to the node of `new`, if no other thread can write it now. The tag of a
    /// counted link goes up by one.
    fn store(&self, new: Self::Pointer, order: Ordering);
}

/// The number of pointers that an operation can protect at a time.
#[doc(hidden)]
pub const HAZARDS: usize = 3;

/// An operation of one thread. Until it is dropped, the nodes that it protects stay nodes.
///
/// A node is *owned* from [`allocate`](Self::allocate) until its pointer is first published. It is
/// owned again by the thread that took the last way to it away by its compare-exchange.
#[doc(hidden)]
pub trait Operation<'s, T> {
    /// The structure's memory.
    type Store: Store<T>;
    /// The address of a node's value.
    type Slot: Copy;

    /// Returns the pointer in `link`, loaded with Acquire. If it is not null, its node may be
    /// looked at until this `hazard` (below [`HAZARDS`]) protects another node or the operation
    /// ends.
    ///
    /// `link` must be such that a node is only retired after the link no longer names it: a
    /// structure's own top, head or tail.
    fn protect(&self, hazard: usize, link: &LinkOf<'s, Self, T>) -> PointerOf<'s, Self, T>;

    /// Announces `pointer`. Its node may be looked at if the caller has seen, after this call, that
    /// the node had not been retired. For a node's successor, that means that the node itself is
    /// still linked.
    fn announce(&self, hazard: usize, pointer: PointerOf<'s, Self, T>);

    /// Returns an owned node with `value` and a null next.
    fn allocate(&self, value: T) -> PointerOf<'s, Self, T>;

    /// Returns an owned node without a value and with a null next: a queue's dummy.
    fn allocate_empty(&self) -> PointerOf<'s, Self, T>;

    /// Returns the link to the next node.
    ///
    /// # Safety
    ///
    /// The node of `pointer` is protected or owned, and not null.
    unsafe fn next(&self, pointer: PointerOf<'s, Self, T>) -> &LinkOf<'s, Self, T>;

    /// Returns the address of the node's value. It means something only if a later compare-exchange
    /// shows that the node was still in place.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    unsafe fn slot(&self, pointer: PointerOf<'s, Self, T>) -> Self::Slot;

    /// Takes the value out of a slot.
    ///
    /// # Safety
    ///
    /// The caller's compare-exchange gave it the value of this slot. No thread takes that value
    /// twice. The operation has protected the slot's node since before the exchange.
    unsafe fn take(&self, slot: Self::Slot) -> T;

    /// Returns where the value of this slot is, for the only owner of the structure.
    ///
    /// # Safety
    ///
    /// The slot is that of a linked node, and no other thread has the structure.
    unsafe fn value(&self, slot: Self::Slot) -> *mut T;

    /// Gives a node back that other threads may still look at. Its value has been taken out of
    /// `slot`.
    ///
    /// In Michael and Scott's queue the value is that of the *next* node, which stays: `slot` then
    /// goes with the node that is retired.
    ///
    /// # Safety
    ///
    /// The caller owns the node and the slot and touches neither again. All links of the structure
    /// that could name the node have been changed.
    unsafe fn retire(&self, pointer: PointerOf<'s, Self, T>, slot: Self::Slot);

    /// Gives back a node that no other thread has ever seen, or can see now. Its value has been
    /// taken out, or it never had one.
    ///
    /// # Safety
    ///
    /// The caller owns the node and does not touch it again.
    unsafe fn discard(&self, pointer: PointerOf<'s, Self, T>);
}

#[doc(hidden)]
pub type LinkOf<'s, O, T> = <<O as Operation<'s, T>>::Store as Store<T>>::Link;
#[doc(hidden)]
pub type PointerOf<'s, O, T> = <<O as Operation<'s, T>>::Store as Store<T>>::Pointer;

mod counted;
pub(crate) mod hazard;
pub(crate) mod numbered;
pub(crate) mod segments;
mod spares;
pub(crate) mod thread_cache;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Counted {}
    impl Sealed for super::Hazard {}
}
