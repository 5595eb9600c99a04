//! Where nodes come from, and when they may come again.
//!
//! A thread that has read a pointer to a node may be stopped before it looks at the node. Meanwhile
//! the node can be taken out and
//!
//! - *freed*: the thread reads memory that is not there;
//! - *used again* at the same place: the thread's compare-exchange finds the pointer it expects,
//!   and succeeds although everything has changed (ABA).
//!
//! There are two ways out here, behind one trait; a structure takes either as a type parameter.
//!
//! | | [`Counted`] | [`Hazard`] |
//! | --- | --- | --- |
//! | a pointer is | index + tag in one word; each use of a node changes the tag | an address |
//! | freed | never, until the structure is dropped: nodes are used again | when no thread has announced that it looks at the node |
//! | used again | at once; a thread keeps two for itself | when no thread has announced that it looks at the node |
//! | a stopped thread keeps back | the two | what it has announced and what waits in its own list |
//! | allocates | when the structure is larger than it ever was; at a thread's first push | when the thread's spare nodes are used up |
//! | can go wrong | a thread is stopped between two instructions for a multiple of 2^32 uses of one pointer: 86 s at 50 million a second | no |
//!
//! # How a structure uses it
//!
//! An operation begins with [`Store::enter`] and does everything through the [`Operation`] that it
//! gets. What is behind a pointer may be looked at from [`Operation::protect`] on. A node's value
//! may only be taken by the one thread whose compare-exchange took the node out, and is found by
//! the [`Operation::slot`] that was read *before* that exchange: with counted pointers the node
//! itself may be in use again by then.

use machine::atomic::Ordering;

/// A way to know when a node may be used again: [`Counted`] or [`Hazard`].
pub trait Memory: sealed::Sealed + Copy + Default + 'static {
    /// The memory of one structure with values of type `T`.
    #[doc(hidden)]
    type Store<T>: Store<T>;
}

/// Counted pointers into a pool of nodes that stay nodes: the scheme of the papers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

/// Hazard pointers: a thread announces which nodes it looks at, and nobody frees those.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hazard;

/// The nodes of one structure.
///
/// Dropping it frees all nodes that were retired or discarded, but drops no value: what is still
/// linked must have been taken out and discarded by then.
///
/// # Safety
///
/// An implementation keeps what [`Operation`] says.
#[doc(hidden)]
pub unsafe trait Store<T>: Sized {
    /// What a link holds: null or a node.
    type Pointer: Pointer;
    /// A pointer that threads share.
    type Link: Link<Pointer = Self::Pointer>;
    /// An operation of one thread on the structure.
    type Operation<'s>: Operation<'s, T, Store = Self>
    where
        Self: 's;

    /// With no node.
    const NEW: Self;
    /// No node.
    const NULL: Self::Pointer;

    /// With room for `capacity` nodes, if this memory can set room aside; it grows all the same.
    fn with_capacity(capacity: usize) -> Self;

    /// Begins an operation.
    fn enter(&self) -> Self::Operation<'_>;
}

/// What a link holds: null or a node. Two pointers from one link are equal only if nothing happened
/// in between that [`Link::compare_exchange`] must notice.
#[doc(hidden)]
pub trait Pointer: Copy + PartialEq {
    /// Whether it is null, with whatever tag.
    fn is_null(self) -> bool;

    /// Whether both name the same node, though they may come from different links and so have
    /// different tags.
    fn names_same(self, other: Self) -> bool;
}

/// A pointer that threads share.
#[doc(hidden)]
pub trait Link {
    /// What it holds.
    type Pointer: Pointer;

    /// Null.
    const NULL: Self;

    /// The pointer, for comparing only: what is behind it may be gone.
    fn load(&self, order: Ordering) -> Self::Pointer;

    /// Makes it point to the node of `new`, if it still is `current`. A counted link's tag goes up
    /// by one, whatever the tag in `new` is.
    fn compare_exchange(
        &self,
        current: Self::Pointer,
        new: Self::Pointer,
        success: Ordering,
        failure: Ordering,
    ) -> bool;

    /// What it holds after `compare_exchange(current, new, …)` has succeeded.
    fn after(current: Self::Pointer, new: Self::Pointer) -> Self::Pointer;

    /// Makes it point to the node of `new`, if no other thread can write it now. A counted link's
    /// tag goes up by one.
    fn store(&self, new: Self::Pointer, order: Ordering);
}

/// How many pointers an operation can protect at a time.
#[doc(hidden)]
pub const HAZARDS: usize = 3;

/// An operation of one thread: from here on the nodes it protects stay nodes, until it is dropped.
///
/// A node is *owned* from [`allocate`](Self::allocate) until its pointer is first published, and
/// again by the thread whose compare-exchange took the last way to it away.
#[doc(hidden)]
pub trait Operation<'s, T> {
    /// The structure's memory.
    type Store: Store<T>;
    /// Where a node's value is.
    type Slot: Copy;

    /// The pointer in `link`, loaded with Acquire; if it is not null, its node may be looked at
    /// until this `hazard` (below [`HAZARDS`]) protects another or the operation ends.
    ///
    /// `link` must be such that a node is only retired after the link no longer names it: a
    /// structure's own top, head or tail.
    fn protect(&self, hazard: usize, link: &LinkOf<'s, Self, T>) -> PointerOf<'s, Self, T>;

    /// Announces `pointer`. Its node may be looked at if, after this call, the caller has seen that
    /// the node had not been retired: for a node's successor, that the node itself is still linked.
    fn announce(&self, hazard: usize, pointer: PointerOf<'s, Self, T>);

    /// An owned node with `value`, whose next is null.
    fn allocate(&self, value: T) -> PointerOf<'s, Self, T>;

    /// An owned node without a value, whose next is null: a queue's dummy.
    fn allocate_empty(&self) -> PointerOf<'s, Self, T>;

    /// The link to the next node.
    ///
    /// # Safety
    ///
    /// The node of `pointer` is protected or owned, and not null.
    unsafe fn next(&self, pointer: PointerOf<'s, Self, T>) -> &LinkOf<'s, Self, T>;

    /// Where the value of the node is. What is returned means something only if a later
    /// compare-exchange shows that the node was still in place.
    ///
    /// # Safety
    ///
    /// As for [`next`](Self::next).
    unsafe fn slot(&self, pointer: PointerOf<'s, Self, T>) -> Self::Slot;

    /// Takes the value out.
    ///
    /// # Safety
    ///
    /// The caller's compare-exchange gave it the value of this slot, nobody takes it twice, and the
    /// operation has protected the slot's node since before.
    unsafe fn take(&self, slot: Self::Slot) -> T;

    /// Returns where the value of this slot is, for the only owner of the structure.
    ///
    /// # Safety
    ///
    /// The slot is that of a linked node, and no other thread has the structure.
    unsafe fn value(&self, slot: Self::Slot) -> *mut T;

    /// Gives a node back that others may still look at; its value has been taken out of `slot`.
    ///
    /// With Michael and Scott's queue the value is that of the *next* node, which stays: `slot`
    /// then goes with the node that is retired.
    ///
    /// # Safety
    ///
    /// The caller owns the node and the slot and touches neither again. All links of the structure
    /// that could name the node have been changed.
    unsafe fn retire(&self, pointer: PointerOf<'s, Self, T>, slot: Self::Slot);

    /// Gives back a node that no other thread has ever seen, or can see now; its value has been
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
