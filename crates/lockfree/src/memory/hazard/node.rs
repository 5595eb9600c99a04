//! The nodes of a structure with hazard pointers, and the links between them: addresses.
//!
//! Why a node is made at its final address and not moved there: that of
//! [`FaaArrayQueue`](crate::queue::FaaArrayQueue) has 64 values in it, which need not fit the
//! stack.

use core::mem::MaybeUninit;
use core::ptr;

use stanchion_machine::atomic::{AtomicPtr, Fresh, Ordering};
use stanchion_machine::cell::UnsafeCell;

use crate::memory::{Link, Pointer};

/// A node of a structure with hazard pointers.
pub struct Node<T> {
    /// The link to the next node. Written by the owner, then by any thread.
    pub(super) next: HazardLink<T>,
    /// The value, if there is one. Its owner writes and takes it.
    pub(super) value: UnsafeCell<MaybeUninit<T>>,
}

/// A link: the address of a node. Written by every thread that changes the structure.
pub struct HazardLink<T>(AtomicPtr<Node<T>>);

impl<T> Pointer for *mut Node<T> {
    #[inline]
    fn is_null(self) -> bool {
        self.is_null()
    }

    #[inline]
    fn names_same(self, other: Self) -> bool {
        ptr::eq(self, other)
    }
}

impl<T> Link for HazardLink<T> {
    type Pointer = *mut Node<T>;

    const NULL: Self = Self(AtomicPtr::new(ptr::null_mut()));

    #[inline]
    fn load(&self, order: Ordering) -> *mut Node<T> {
        self.0.load(order)
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: *mut Node<T>,
        new: *mut Node<T>,
        success: Ordering,
        failure: Ordering,
    ) -> bool {
        self.0.compare_exchange(current, new, success, failure).is_ok()
    }

    #[inline]
    fn after(_current: *mut Node<T>, new: *mut Node<T>) -> *mut Node<T> {
        new
    }

    #[inline]
    fn store(&self, new: *mut Node<T>, order: Ordering) {
        self.0.store(new, order);
    }
}

/// Makes a node without a value at its final address: a large one would not fit the stack.
pub(super) fn make<T>() -> *mut Node<T> {
    let node: *mut Node<T> = Box::into_raw(Box::<Node<T>>::new_uninit()).cast();
    // SAFETY: there is room for a node, this field included.
    let next = unsafe { &raw mut (*node).next };
    // SAFETY: as above, and no other thread knows of it.
    unsafe { next.write(HazardLink(AtomicPtr::fresh(ptr::null_mut()))) };
    // SAFETY: as for `next`.
    let value = unsafe { &raw mut (*node).value };
    // SAFETY: as above.
    unsafe { UnsafeCell::write_uninit(value) };
    node
}

/// Frees a node, not its value.
///
/// # Safety
///
/// The node comes from [`make`], and no thread uses it any more.
pub(super) unsafe fn free<T>(node: *mut Node<T>) {
    // SAFETY: by the caller's promise it is the box's own pointer.
    drop(unsafe { Box::from_raw(node) });
}
