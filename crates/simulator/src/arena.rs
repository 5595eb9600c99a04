//! The memory of a simulated run, so that an address means the same on every run and on every
//! computer.
//!
//! The memory systems tell cache lines apart by address. Real addresses depend on the loader, on
//! earlier allocations of the process and on the kernel's dice. So the words that share a line, and
//! the order of a map of addresses, would differ from run to run. Numbering lines in the order of
//! their first touch is not enough: it hides where lines are, not which words are on them. So the
//! run brings its own memory.
//!
//! ```text
//! one reservation: 4,096 slots (fewer where less is granted)
//! +--------+--------+--------+- - - -+
//! | slot 0 | slot 1 | slot 2 |
//! +--------+--------+--------+- - - -+
//!
//! one slot: 4 GiB, taken by one run
//! +------------------+- - - - - +-------+-------+-------+
//! | heap, growing -> |  closed  | guard | stack | guard | ...
//! +------------------+- - - - - +-------+-------+-------+
//! ```
//!
//! A word's [identity](Identities) is its offset in the slot. The address of a block or a stack
//! depends on nothing but the requests made of that slot before, in their order
//! (`reserved/space.rs`).
//!
//! # Lines
//!
//! A block of half a line or more (64 bytes) begins a line of its own, 128 bytes. No other block is
//! ever put on its lines. Smaller blocks are packed with others of their size, and so may share a
//! line with a block that another thread allocated. An allocator without a cache for each thread
//! does the same, and false sharing that such an allocator brings is shown, not hidden. Pad data
//! that must not share.
//!
//! # Memory outside of the slot
//!
//! Foreign memory: statics, blocks that were allocated before the run, data that the run's body
//! borrows from its caller's stack, and everything if the program has not made [`Arena`] its global
//! allocator. Its lines are told apart in the order of their first touch. The words that share one
//! are those that share it in the process. Statics keep their position on their lines from run to
//! run of one build. A caller's stack does not: the kernel moves it by multiples of 16 bytes from
//! one process to the next. So it is best to make shared data in the body. The body's own stack,
//! and those of all virtual threads, are in the slot in any case.
//!
//! A thing that a library makes once and keeps, a buffer or a cache, is a part of the first run
//! that asks for it, and keeps that run's slot. A second run in the same process does not make it
//! again, and may lay out its own memory otherwise. The standard library's output buffer is made
//! beforehand.
//!
//! If there is no `mmap`, or addresses have 32 bits, there are no slots and all memory is foreign
//! (`elsewhere.rs`).
//!
//! # Life of a slot
//!
//! | state | left when |
//! | --- | --- |
//! | free: no page of it is open | a run takes it |
//! | taken: `live` counts the run, its blocks and its stacks | the last of them is gone |
//!
//! A slot that is left gives its pages back. A block may be freed after the run, outside of it, and
//! by another thread: the result of a run is a plain value. A run that fails leaves its stacks
//! behind, and its slot is not used again.

mod identity;
#[cfg_attr(not(all(unix, target_pointer_width = "64", not(miri))), path = "arena/elsewhere.rs")]
mod reserved;
#[cfg(all(test, unix, target_pointer_width = "64", not(miri)))]
mod tests;

use core::cell::Cell;
use core::hint::black_box;
use core::marker::PhantomData;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::OnceLock;

pub(crate) use identity::{Identities, location, name};
pub(crate) use reserved::{ArenaStack, Slot};

/// Bytes that never hold two separate blocks of 64 bytes or more: the longest line of the machines
/// that are described.
pub(crate) const LINE: usize = 128;

/// Why a run has no memory.
#[derive(Debug, thiserror::Error)]
// Where there are no slots, only the kernel refuses.
#[cfg_attr(not(all(unix, target_pointer_width = "64", not(miri))), allow(dead_code))]
pub(crate) enum ArenaError {
    /// The kernel grants not even the smallest reservation.
    #[error(
        "no address space for simulated memory: {0} bytes were refused; is there a limit (ulimit -v)?"
    )]
    Refused(usize),
    /// Guards and layout are made for pages of 64 KiB at most.
    #[error("pages of {0} bytes: simulated memory needs pages of at most 64 KiB")]
    Pages(usize),
    /// Every slot is in use.
    #[error(
        "all {0} slots of simulated memory are in use: a slot is free again when the last value of its run is dropped, \
         and never after a run that failed"
    )]
    Taken(usize),
    /// A stack that no slot could hold.
    #[error("a stack of {0} bytes: a run has 4 GiB for all its memory")]
    Long(usize),
    /// The slot has no room for one more stack.
    #[error(
        "no room for stack {0}: a run has 4 GiB for all its memory; use smaller stacks or fewer threads"
    )]
    Stacks(usize),
    /// The kernel refuses the pages of a stack.
    #[error(
        "the kernel refuses the pages of stack {number}: {error}. A stack takes two of the process's mappings, and Linux allows \
         65,530 of them unless vm.max_map_count says otherwise"
    )]
    Kernel {
        /// The number of the run's stack, from 1.
        number: usize,
        /// The message of the system.
        error: io::Error,
    },
}

thread_local! {
    /// The slot that allocations of this thread come from, plus one; 0 is none. Without a
    /// destructor, so it can be read at any time.
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

/// The slot that allocations of this thread come from.
#[inline]
fn current() -> Option<usize> {
    CURRENT.with(Cell::get).checked_sub(1)
}

/// Until it is dropped, the calling thread allocates elsewhere than before.
#[must_use = "allocations go back to where they came from when this is dropped"]
pub(crate) struct Scope {
    /// The slot that the thread allocated from before.
    before: usize,
    /// `CURRENT` is the thread's.
    _not_send: PhantomData<*const ()>,
}

impl Scope {
    #[inline]
    fn enter(current: usize) -> Self {
        Self { before: CURRENT.replace(current), _not_send: PhantomData }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Until the result is dropped, allocations of this thread are the simulator's own, not the
/// simulated program's.
#[inline]
pub(crate) fn outside() -> Scope {
    Scope::enter(0)
}

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
