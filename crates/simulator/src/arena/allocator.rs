//! The global allocator: the slot of the running simulation, or the system's.

use super::reserved::{self, Slot};
use super::scope::current;
use core::hint::black_box;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// A global allocator that gives each simulated run memory of its own, so that its cache lines are
/// the same on every run.
///
/// Outside a simulation it is [`System`], at the cost of reading a thread-local and of comparing
/// the address that is freed. Inside one, a block comes from the run's own 4 GiB, in constant time;
/// a block of 64 bytes or more has its 128-byte lines to itself. A block may outlive its run and
/// may be freed by any thread.
///
/// Without it a simulation works, but its program's blocks lie wherever the process's allocator
/// happens to put them. Then results that depend on which words share a line may differ from run to
/// run. They may differ, with it, for data that was made before the run: make the data that the
/// virtual threads share in the body of the run, not outside.
///
/// # Errors
///
/// As any allocator it returns null if there is no memory left: a run that holds more than 4 GiB
/// ends the process ([`handle_alloc_error`](std::alloc::handle_alloc_error)).
///
/// # Examples
///
/// ```
/// #[global_allocator]
/// static ARENA: stanchion_simulator::Arena = stanchion_simulator::Arena;
///
/// assert!(stanchion_simulator::Arena::is_installed());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Arena;

impl Arena {
    /// Returns whether this program's global allocator is `Arena`. The first call that can tell
    /// tries it out, later ones know.
    ///
    /// False also if there are no slots: without `mmap`, with 32-bit addresses, or if the kernel
    /// refuses the address space.
    #[must_use]
    pub fn is_installed() -> bool {
        static INSTALLED: OnceLock<bool> = OnceLock::new();
        if let Some(&installed) = INSTALLED.get() {
            return installed;
        }
        let Ok(slot) = Slot::take() else { return false };
        let probe = {
            let _inside = slot.enter();
            black_box(Box::new(0_u8))
        };
        let installed = reserved::holds((&raw const *probe).addr());
        *INSTALLED.get_or_init(|| installed)
    }
}

// SAFETY: `System` and the slots are allocators by themselves, and a block goes back to the one it
// came from: no block of `System` lies in the reservation, which is mapped for good, and every
// block of a slot does.
unsafe impl GlobalAlloc for Arena {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match current() {
            Some(slot) => reserved::allocate(slot, layout),
            // SAFETY: the caller's promise about `layout`.
            None => unsafe { System.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match current() {
            Some(slot) => reserved::allocate_zeroed(slot, layout),
            // SAFETY: the caller's promise about `layout`.
            None => unsafe { System.alloc_zeroed(layout) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if reserved::holds(block.addr()) {
            // SAFETY: `block` is a slot's, and the caller's to free.
            unsafe { reserved::free(block, layout) }
        } else {
            // SAFETY: `block` is not a slot's, so it is `System`'s, and the caller's to free.
            unsafe { System.dealloc(block, layout) }
        }
    }

    /// A block that moves stays in the house it was born in: what came from outside the run does
    /// not become a part of its layout.
    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if reserved::holds(block.addr()) {
            // SAFETY: `block` is a slot's, the caller's, and the caller's promise about `size`.
            unsafe { reserved::reallocate(block, layout, size) }
        } else {
            // SAFETY: `block` is `System`'s, the caller's, and the caller's promise about `size`.
            unsafe { System.realloc(block, layout, size) }
        }
    }
}
