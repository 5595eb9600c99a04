//! Stacks on modelled machines: loom's and the simulated one. The memory is the heap's, so that it
//! belongs to the run. The system protects the guards all the same, because an overflow is as real
//! there as on any machine.
//!
//! # Invariants
//!
//! 1. Guards stand in whole pages that lie in this block alone. They are made accessible again
//!    before the block is freed.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::{Mutex, PoisonError};

use crate::stack::{Guards, Head, Size, StackError};

pub(crate) fn page() -> usize {
    os::page()
}

/// No limit is known here.
pub(crate) fn half_is_used() -> bool {
    false
}

pub(crate) fn guards() -> Guards {
    Guards::Protected
}

/// The memory of a slab: one block of the heap.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The block as the allocator returned it.
    block: NonNull<u8>,
    /// The layout that `block` was allocated with, for freeing it.
    layout: Layout,
    /// The first page boundary in the block, where the guard of stack 0 begins.
    low: NonNull<u8>,
    /// The size of each stack and of its guard.
    size: Size,
    /// The number of protected guards: those of the stacks with smaller numbers. `open` writes it.
    standing: Mutex<usize>,
}

// SAFETY: the block of memory belongs to this value alone.
unsafe impl Send for Memory {}
// SAFETY: the only field that changes has a lock.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn new(
        size: Size,
        stacks: usize,
        _best: Guards,
        _advice: &'static str,
    ) -> Result<Self, StackError> {
        os::supported()?;
        let bytes = size.stride().saturating_mul(stacks).saturating_add(page());
        // Aligned to a cache line only, and rounded up to a page below: an allocator may round a
        // page-aligned request up to a power of two.
        let layout =
            Layout::from_size_align(bytes, 64).map_err(|_| StackError::Memory { bytes })?;
        // SAFETY: the layout is not empty.
        let block = NonNull::new(unsafe { alloc(layout) }).ok_or(StackError::Memory { bytes })?;
        let skip = block.addr().get().next_multiple_of(page()) - block.addr().get();
        // SAFETY: less than a page, which the block has to spare.
        let low = unsafe { block.add(skip) };
        Ok(Self { block, layout, low, size, standing: Mutex::new(0) })
    }

    pub(crate) fn low(&self) -> NonNull<u8> {
        self.low
    }

    #[expect(clippy::unused_self, reason = "other machines have a choice")]
    pub(crate) fn guards(&self) -> Guards {
        Guards::Protected
    }

    /// Prepares stack `number`: clears its head and protects its guard. The numbers come in
    /// sequence.
    pub(crate) fn open(&self, number: usize) -> Result<(), StackError> {
        // SAFETY: the head of this stack lies in the block, and the stack has not been given out
        // yet.
        let head = unsafe { self.low.add(self.size.head_of(number)) };
        // SAFETY: as above. It is aligned to a line as the pages are, and zeros are a valid head.
        unsafe { head.cast::<Head>().write_bytes(0, 1) };
        // SAFETY: the guard's first byte lies in the block.
        let guard = unsafe { self.low.add(number * self.size.stride()) };
        // SAFETY: Invariant 1. The stack has not been given out yet.
        unsafe { os::close(guard, self.size.guard()) }?;
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = number + 1;
        Ok(())
    }

    /// Keeps the memory: a run ends soon.
    ///
    /// # Safety
    ///
    /// As for `discard` of the real machine's memory.
    #[expect(clippy::unused_self, reason = "real memory is given back")]
    pub(crate) unsafe fn discard(&self, _from: usize, _bytes: usize) {}
}

impl Drop for Memory {
    fn drop(&mut self) {
        let standing = *self.standing.get_mut().unwrap_or_else(PoisonError::into_inner);
        let opened = (0..standing).all(|number| {
            // SAFETY: the guard's first byte lies in the block.
            let guard = unsafe { self.low.add(number * self.size.stride()) };
            // SAFETY: Invariant 1. No stack of the slab is in use any more.
            unsafe { os::open(guard, self.size.guard()) }.is_ok()
        });
        // If a page could not be made accessible, leak the block: the next owner of its memory
        // would fault on that page.
        if opened {
            // SAFETY: it came from the allocator with this layout.
            unsafe { dealloc(self.block.as_ptr(), self.layout) };
        }
    }
}

/// The registration for overflow reports. There is no handler here.
#[derive(Debug)]
pub(crate) struct Watched;

pub(crate) fn watch() -> Result<Watched, StackError> {
    Ok(Watched)
}

#[cfg(all(unix, not(miri)))]
mod os {
    use super::{NonNull, StackError};

    pub(super) fn supported() -> Result<(), StackError> {
        Ok(())
    }

    pub(super) fn page() -> usize {
        // SAFETY: the call takes no pointer.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    }

    /// Takes all access to the pages away.
    ///
    /// # Safety
    ///
    /// The bytes at `at` are whole pages of the caller's, and hold nothing.
    pub(super) unsafe fn close(at: NonNull<u8>, bytes: usize) -> Result<(), StackError> {
        // SAFETY: the caller's promise.
        unsafe { protect(at, bytes, libc::PROT_NONE) }
    }

    /// Makes the pages readable and writable again.
    ///
    /// # Safety
    ///
    /// The bytes at `at` are whole pages of the caller's.
    pub(super) unsafe fn open(at: NonNull<u8>, bytes: usize) -> Result<(), StackError> {
        // SAFETY: the caller's promise.
        unsafe { protect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) }
    }

    /// Sets the access of the pages.
    ///
    /// # Safety
    ///
    /// As above.
    unsafe fn protect(at: NonNull<u8>, bytes: usize, access: i32) -> Result<(), StackError> {
        // SAFETY: the caller's promise.
        if unsafe { libc::mprotect(at.as_ptr().cast(), bytes, access) } == 0 {
            return Ok(());
        }
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        Err(StackError::Other { call: "mprotect", errno })
    }
}

#[cfg(not(all(unix, not(miri))))]
mod os {
    use super::{NonNull, StackError};

    pub(super) fn supported() -> Result<(), StackError> {
        Err(StackError::Unsupported { os: std::env::consts::OS })
    }

    pub(super) fn page() -> usize {
        4096
    }

    pub(super) unsafe fn close(_at: NonNull<u8>, _bytes: usize) -> Result<(), StackError> {
        supported()
    }

    pub(super) unsafe fn open(_at: NonNull<u8>, _bytes: usize) -> Result<(), StackError> {
        supported()
    }
}
