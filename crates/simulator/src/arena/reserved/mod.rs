//! Slots: 4 GiB of addresses for each run, out of one reservation.
//!
//! # Invariants
//!
//! 1. The reservation is made once, is never given back, and begins at a multiple of [`SLOT`].
//!    `LENGTH` is stored after `BASE`: a thread that sees the one sees the other.
//! 2. Slot `n` is the bytes from `BASE + n * SLOT` on, `n` below `LENGTH / SLOT`. Only `SLOTS[n]`
//!    uses them.
//! 3. A slot's [`Space`] is touched only by the thread that holds its `busy` flag. While it holds
//!    the flag, it neither allocates through the global allocator, nor panics, nor switches to
//!    another virtual thread.
//! 4. A number in `CURRENT` is of a slot that was taken before. If it has been given back since, a
//!    block of it makes it taken again.

mod class;
mod os;
mod space;

use core::cell::UnsafeCell;
use core::hint;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use corosensei::stack::{Stack, StackPointer};
use std::alloc::Layout;
use std::sync::OnceLock;

use super::{ArenaError, Scope, outside};
use class::Class;
use space::{GUARD, Space, StackRange};

/// Bytes of a slot.
pub(super) const SLOT: usize = 4 << 30;
/// The unit of guards, stacks and the pages that are opened, for any page size of the computer.
const GRANULE: usize = 64 << 10;
/// The number of slots of the greatest reservation: 16 TiB.
const MOST: usize = 4_096;
/// The sizes that are tried, in slots, until the kernel grants one: 16 TiB to 16 GiB.
const TRIED: [usize; 6] = [MOST, 1_024, 256, 64, 16, 4];

static BASE: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
static SLOTS: [Guarded; MOST] = [const { Guarded::new() }; MOST];

/// Returns whether an address is in the reservation.
#[inline]
pub(super) fn holds(address: usize) -> bool {
    // Acquire: pairs with the Release in `reserve`; Invariant 1. A thread that has an address from
    // the reservation has seen it made.
    let length = LENGTH.load(Ordering::Acquire);
    // Relaxed: stored before the length.
    address.wrapping_sub(BASE.load(Ordering::Relaxed)) < length
}

/// A block of a slot, null if the slot is full.
#[inline]
pub(super) fn allocate(slot: usize, layout: Layout) -> *mut u8 {
    block(slot, layout).map_or(ptr::null_mut(), |(at, _)| at)
}

/// As [`allocate`], with every byte 0.
pub(super) fn allocate_zeroed(slot: usize, layout: Layout) -> *mut u8 {
    let Some((at, zero)) = block(slot, layout) else { return ptr::null_mut() };
    if !zero {
        // SAFETY: a new block of at least so many bytes, which no other code has.
        unsafe { at.write_bytes(0, layout.size()) };
    }
    at
}

#[inline]
fn block(slot: usize, layout: Layout) -> Option<(*mut u8, bool)> {
    let class = Class::of(layout.size(), layout.align())?;
    let (at, zero) = SLOTS[slot].with(|space| space.allocate(class))?;
    Some((ptr::with_exposed_provenance_mut(at), zero))
}

/// Frees a block, by any thread, also after its run.
///
/// # Safety
///
/// The block is of a slot, was allocated with `layout`, and no code uses it any more.
pub(super) unsafe fn free(block: *mut u8, layout: Layout) {
    let Some(class) = Class::of(layout.size(), layout.align()) else { return };
    // SAFETY: the caller's promise: a block of that class.
    SLOTS[number(block)].with(|space| unsafe { space.free(block.expose_provenance(), class) });
}

/// Makes a block longer or shorter; a block that moves stays in its slot. Null, and the block
/// unchanged, if the slot is full.
///
/// # Safety
///
/// As [`free`]; `size` rounded up to the alignment is at most `isize::MAX`.
pub(super) unsafe fn reallocate(block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    if Class::of(layout.size(), layout.align()) == Class::of(size, layout.align()) {
        return block;
    }
    // SAFETY: the caller's promise about the size; the alignment was one before.
    let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    let moved = allocate(number(block), wanted);
    if !moved.is_null() {
        // SAFETY: the old block has `layout.size()` bytes, the new one `size`, and blocks do not
        // overlap.
        unsafe { ptr::copy_nonoverlapping(block, moved, size.min(layout.size())) };
        // SAFETY: the caller's promise: the old block is the caller's.
        unsafe { free(block, layout) };
    }
    moved
}

/// Returns the number of a block's slot.
#[inline]
fn number(block: *mut u8) -> usize {
    // Relaxed: as in `holds`, which has said that the block is in the reservation.
    (block.addr() - BASE.load(Ordering::Relaxed)) / SLOT
}

/// One run's memory: 4 GiB of addresses. Its pages are given back when it and everything in it is
/// gone.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The number of the slot.
    number: usize,
}

impl Slot {
    /// Takes the first free slot. Linear in the slots that are in use; the pages are the kernel's
    /// work when they are first touched.
    pub(crate) fn take() -> Result<Self, ArenaError> {
        static RESERVED: OnceLock<Result<(), Refusal>> = OnceLock::new();
        // What the standard library keeps for ever must not be made in a slot: the buffer of the
        // output, the thread's handle.
        let _outside = outside();
        let _ = (std::io::stdout(), std::thread::current());
        match RESERVED.get_or_init(reserve) {
            Ok(()) => {}
            Err(Refusal::Space(bytes)) => return Err(ArenaError::Refused(*bytes)),
            Err(Refusal::Pages(bytes)) => return Err(ArenaError::Pages(*bytes)),
        }
        // Relaxed: `get_or_init` comes after the stores of `reserve`.
        let base = BASE.load(Ordering::Relaxed);
        let count = LENGTH.load(Ordering::Relaxed) / SLOT;
        (0..count)
            // SAFETY: Invariants 1 and 2.
            .find(|&number| SLOTS[number].with(|space| unsafe { space.take(base + number * SLOT) }))
            .map(|number| Self { number })
            .ok_or(ArenaError::Taken(count))
    }

    /// Until the result is dropped, allocations of this thread come from this slot.
    #[inline]
    pub(crate) fn enter(&self) -> Scope {
        Scope::enter(self.number + 1)
    }

    /// A stack of at least so many bytes, with a guard below. Stacks that were dropped are used
    /// again, the last one first.
    ///
    /// # Errors
    ///
    /// If the slot is full or the kernel has no mapping left.
    pub(crate) fn stack(&self, bytes: usize) -> Result<ArenaStack, ArenaError> {
        let range = SLOTS[self.number].with(|space| space.stack(bytes))?;
        Ok(ArenaStack { number: self.number, range })
    }

    /// Returns the number of the slot.
    #[cfg(test)]
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The slot's first address.
    pub(crate) fn base(&self) -> usize {
        // Relaxed: the slot was taken after the store.
        BASE.load(Ordering::Relaxed) + self.number * SLOT
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        SLOTS[self.number].with(Space::leave);
    }
}

/// A coroutine's stack in a slot; it goes back to the slot when it is dropped.
#[derive(Debug)]
pub(crate) struct ArenaStack {
    /// The number of the slot.
    number: usize,
    /// The position of the stack in the slot.
    range: StackRange,
}

impl Drop for ArenaStack {
    fn drop(&mut self) {
        // SAFETY: the position is this stack's alone, and the thread that drops a stack no longer
        // runs on it.
        SLOTS[self.number].with(|space| unsafe { space.free_stack(self.range) });
    }
}

// SAFETY: from `low` to `high` are at least 64 KiB of open pages that no other code uses, and below
// is a closed guard (Invariant 2 of `space.rs`). Both ends are multiples of 64 KiB.
unsafe impl Stack for ArenaStack {
    #[inline]
    fn base(&self) -> StackPointer {
        StackPointer::new(self.range.high).expect("no stack ends at address 0")
    }

    #[inline]
    fn limit(&self) -> StackPointer {
        StackPointer::new(self.range.low - GUARD).expect("no stack begins at address 0")
    }
}

/// Why there is no reservation.
enum Refusal {
    Space(usize),
    Pages(usize),
}

/// Makes the reservation, as great as is granted.
fn reserve() -> Result<(), Refusal> {
    let page = os::page();
    if page > GRANULE {
        return Err(Refusal::Pages(page));
    }
    let mut bytes = 0;
    for slots in TRIED {
        // One more, to begin at a multiple of a slot.
        bytes = (slots + 1) * SLOT;
        if let Some(at) = os::reserve(bytes) {
            let base = at.expose_provenance().next_multiple_of(SLOT);
            // Relaxed: seen with the length.
            BASE.store(base, Ordering::Relaxed);
            // Release: pairs with the Acquire in `holds`; Invariant 1.
            LENGTH.store(slots * SLOT, Ordering::Release);
            return Ok(());
        }
    }
    Err(Refusal::Space(bytes))
}

/// A slot's layout behind a flag. Not a mutex of the standard library: that may allocate, and here
/// the allocator itself waits.
struct Guarded {
    /// Set while a thread uses the space. Written by that thread.
    busy: AtomicBool,
    /// The layout of the slot. Touched by the thread that has set `busy`.
    space: UnsafeCell<Space>,
}

// SAFETY: Invariant 3: the flag gives the space to one thread at a time.
unsafe impl Sync for Guarded {}

impl Guarded {
    const fn new() -> Self {
        Self { busy: AtomicBool::new(false), space: UnsafeCell::new(Space::new()) }
    }

    /// Calls `body`, which is short. So a thread that waits spins, and lets others run if the
    /// holder seems not to run.
    #[inline]
    fn with<R>(&self, body: impl FnOnce(&mut Space) -> R) -> R {
        let mut spins = 0_u32;
        // Acquire: pairs with the Release below, of the thread that used the space before.
        while self.busy.swap(true, Ordering::Acquire) {
            spins += 1;
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                hint::spin_loop();
            }
        }
        // SAFETY: Invariant 3: the flag is held until the last use of the reference.
        let result = body(unsafe { &mut *self.space.get() });
        // Release: pairs with the Acquire above, of the thread that uses the space next.
        self.busy.store(false, Ordering::Release);
        result
    }
}
