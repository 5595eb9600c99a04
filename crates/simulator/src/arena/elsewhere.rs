//! No slots: where there is no `mmap`, where addresses have 32 bits, and under Miri. All memory is
//! `System`'s, and foreign.

use corosensei::stack::DefaultStack;
use std::alloc::Layout;
use std::ptr;

use super::{ArenaError, Scope, outside};

/// Nothing is in a slot.
pub(super) const SLOT: usize = 0;

/// A stack of the process.
pub(crate) type ArenaStack = DefaultStack;

/// A run without memory of its own.
#[derive(Debug)]
pub(crate) struct Slot(());

impl Slot {
    /// Never fails.
    pub(crate) fn take() -> Result<Self, ArenaError> {
        Ok(Self(()))
    }

    /// Allocations stay where they are.
    pub(crate) fn enter(&self) -> Scope {
        outside()
    }

    /// A stack of at least so many bytes, with a guard below.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub(crate) fn stack(&self, bytes: usize) -> Result<ArenaStack, ArenaError> {
        DefaultStack::new(bytes).map_err(|error| ArenaError::Kernel { number: 1, error })
    }

    /// Of nothing.
    pub(crate) fn base(&self) -> usize {
        0
    }
}

pub(super) fn holds(_address: usize) -> bool {
    false
}

pub(super) fn allocate(_slot: usize, _layout: Layout) -> *mut u8 {
    ptr::null_mut()
}

pub(super) fn allocate_zeroed(_slot: usize, _layout: Layout) -> *mut u8 {
    ptr::null_mut()
}

/// # Safety
///
/// Never called: nothing is in a slot.
pub(super) unsafe fn free(_block: *mut u8, _layout: Layout) {}

/// # Safety
///
/// Never called: nothing is in a slot.
pub(super) unsafe fn reallocate(_block: *mut u8, _layout: Layout, _size: usize) -> *mut u8 {
    ptr::null_mut()
}
