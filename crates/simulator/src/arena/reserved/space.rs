//! The layout of a slot: a heap from the bottom, stacks from the top.
//!
//! ```text
//! base      top       open                 floor                             base + SLOT
//! | blocks   | fresh   | closed             | guard | stack | guard | ...     |
//! ```
//!
//! Free blocks and free stacks are on lists, one for each class, last in first out. The link is in
//! the free block's first word, in the free stack's last. Neighbours are not merged. So every
//! operation takes constant time, and the address of a block is easy to state: the last one freed
//! of its class, else at the top. A program that frees blocks of one class and then needs another
//! gets new addresses for it; there are 4 GiB.
//!
//! # Invariants
//!
//! 1. `base <= top <= open <= floor <= base + SLOT`, all but `top` multiples of [`GRANULE`], and
//!    the slot is mapped for as long as the process lives.
//! 2. Below `open`, and in a stack above its guard, pages are open. Between `open` and `floor`, and
//!    in guards, they are closed.
//! 3. A block is on no list, or on the list of its class once. It lies below `top` and no other
//!    block overlaps it. The same holds for stacks, above `floor`.
//! 4. No code uses a block or stack on a list. Its link leads to the next of its list, or is 0.
//! 5. From `top` to `open` nothing has been written since the pages were opened.
//! 6. `live` counts the slot's owner, the blocks and the stacks that are in use. When it is 0,
//!    nothing of the slot is used.
//!
//! The layout is the same on computers with other pages, because guards and steps are multiples of
//! 64 KiB for any page size.

use core::ptr;

use super::super::{ArenaError, LINE};
use super::class::{CLASSES, Class};
use super::{GRANULE, SLOT, os};

/// The number of bytes of the heap that are opened at a time, by one call of the kernel.
const STEP: usize = 1 << 20;
/// Below each stack: what overflows meets it before the next stack.
pub(super) const GUARD: usize = GRANULE;
/// The smallest stack; each class has twice the bytes of the one before.
const STACK: usize = GRANULE;
/// Up to half a slot.
const STACKS: usize = (SLOT / STACK).ilog2() as usize;

/// The layout of one slot.
#[derive(Debug)]
pub(super) struct Space {
    /// The beginning of the slot.
    base: usize,
    /// The end of the blocks (Invariant 1).
    top: usize,
    /// The end of the open pages of the heap.
    open: usize,
    /// The beginning of the lowest guard.
    floor: usize,
    /// The number of things in use (Invariant 6).
    live: usize,
    /// The number of stacks, in use or on a list.
    made: usize,
    /// Pages that could not be given back: never used again.
    lost: bool,
    /// The first free block of each class, or 0.
    blocks: [usize; CLASSES],
    /// The first free stack of each class, or 0.
    stacks: [usize; STACKS],
}

/// The position of a stack: the pages between the two are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackRange {
    /// The lower end.
    pub(super) low: usize,
    /// The upper end.
    pub(super) high: usize,
}

impl Space {
    /// Not yet anywhere.
    pub(super) const fn new() -> Self {
        Self {
            base: 0,
            top: 0,
            open: 0,
            floor: 0,
            live: 0,
            made: 0,
            lost: false,
            blocks: [0; CLASSES],
            stacks: [0; STACKS],
        }
    }

    /// Takes the slot at `base` for an owner; false if it is in use.
    ///
    /// # Safety
    ///
    /// `base` is the same on every call, and from it on [`SLOT`] bytes are reserved, page-aligned,
    /// and this space's alone.
    pub(super) unsafe fn take(&mut self, base: usize) -> bool {
        if self.live > 0 || self.lost {
            return false;
        }
        *self = Self { base, floor: base + SLOT, live: 1, ..Self::new() };
        // The first line stays empty: no word has identity 0.
        (self.open, self.top) = (base, base);
        true
    }

    /// One of the owner, the blocks and the stacks is gone; the last one gives the pages back.
    pub(super) fn leave(&mut self) {
        self.live -= 1;
        if self.live > 0 {
            return;
        }
        // SAFETY: Invariants 1 and 6: the slot is mapped, and no code uses it.
        let closed = unsafe { os::close(self.base, SLOT) };
        self.lost = closed.is_err();
        let (base, lost) = (self.base, self.lost);
        // A lost slot has no room: not even for a thread that still allocates from it.
        let floor = if lost { base } else { base + SLOT };
        *self = Self { base, top: base, open: base, floor, lost, ..Self::new() };
    }

    /// The address of a block, and whether it is known to be zero; none if the slot is full.
    pub(super) fn allocate(&mut self, class: Class) -> Option<(usize, bool)> {
        let first = self.blocks[class.index];
        let found = if first != 0 {
            // SAFETY: Invariants 2, 3 and 4: a block on a list is open, and no other code has it.
            self.blocks[class.index] = unsafe { link(first).read() };
            (first, false)
        } else if class.is_packed() {
            (self.pack(class)?, false)
        } else {
            (self.carve(class.bytes, class.align)?, os::CLOSED_IS_ZERO)
        };
        self.live += 1;
        Some(found)
    }

    /// Puts a block back on its list.
    ///
    /// # Safety
    ///
    /// The block was given out for this class, and no code uses it any more.
    pub(super) unsafe fn free(&mut self, at: usize, class: Class) {
        // SAFETY: the caller's promise and Invariant 2: the block is open and unused.
        unsafe { link(at).write(self.blocks[class.index]) };
        self.blocks[class.index] = at;
        self.leave();
    }

    /// A stack of at least so many bytes, rounded up to a power of two.
    pub(super) fn stack(&mut self, bytes: usize) -> Result<StackRange, ArenaError> {
        if bytes >= SLOT / 2 {
            return Err(ArenaError::Long(bytes));
        }
        let bytes = bytes.max(STACK).next_power_of_two();
        let list = &mut self.stacks[stack_class(bytes)];
        let high = *list;
        if high != 0 {
            // SAFETY: Invariants 2, 3 and 4: a stack on a list is open, and no other code has it.
            *list = unsafe { link(high - size_of::<usize>()).read() };
            self.live += 1;
            return Ok(StackRange { low: high - bytes, high });
        }
        let number = self.made + 1;
        // Invariant 1: room for the guard as well.
        if self.floor - self.open < bytes + GUARD {
            return Err(ArenaError::Stacks(number));
        }
        let range = StackRange { low: self.floor - bytes, high: self.floor };
        // Also if the kernel refuses: then Invariant 2 need not ask how much it has opened.
        self.floor = range.low - GUARD;
        // SAFETY: Invariant 1: the range is mapped.
        let opened = unsafe { os::open(range.low, bytes) };
        opened.map_err(|error| ArenaError::Kernel { number, error })?;
        self.made = number;
        self.live += 1;
        Ok(range)
    }

    /// Puts a stack back on its list.
    ///
    /// # Safety
    ///
    /// The position was given out by this space, and no code uses the stack any more.
    pub(super) unsafe fn free_stack(&mut self, range: StackRange) {
        let list = &mut self.stacks[stack_class(range.high - range.low)];
        // SAFETY: the caller's promise and Invariant 2: the stack is open and unused.
        unsafe { link(range.high - size_of::<usize>()).write(*list) };
        *list = range.high;
        self.leave();
    }

    /// Cuts a line into blocks: the first is the caller's, the others are listed in the order of
    /// their addresses.
    #[cold]
    fn pack(&mut self, class: Class) -> Option<usize> {
        let line = self.carve(LINE, LINE)?;
        for at in (line + class.bytes..line + LINE).step_by(class.bytes).rev() {
            // SAFETY: Invariant 2, and the line is new: no other code has it.
            unsafe { link(at).write(self.blocks[class.index]) };
            self.blocks[class.index] = at;
        }
        Some(line)
    }

    /// Returns the address of bytes that were never used, at the top.
    fn carve(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let at = self.top.max(self.base + LINE).next_multiple_of(align);
        let end = at.checked_add(bytes)?;
        if end > self.open {
            self.widen(end)?;
        }
        self.top = end;
        Some(at)
    }

    /// Opens the heap to `end` at least.
    #[cold]
    fn widen(&mut self, end: usize) -> Option<()> {
        if end > self.floor {
            return None;
        }
        let open = end.next_multiple_of(STEP).min(self.floor);
        // SAFETY: Invariant 1: the range is mapped.
        unsafe { os::open(self.open, open - self.open) }.ok()?;
        self.open = open;
        Some(())
    }
}

/// Returns the list for stacks of so many bytes.
fn stack_class(bytes: usize) -> usize {
    (bytes / STACK).ilog2() as usize
}

/// Returns the link of a free block.
fn link(at: usize) -> *mut usize {
    ptr::with_exposed_provenance_mut(at)
}
