//! Stacks on machines that are only thought: loom's and the simulated. Memory is the heap's, so
//! that it belongs to the run; guards are protected by the system all the same, because an overflow
//! there is as real as anywhere.
//!
//! # Invariants
//!
//! 1. Guards stand in whole pages that lie in this block alone, and are opened again before the
//!    block is freed.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc, dealloc};
use std::sync::{Mutex, PoisonError};

use crate::stack::{Guards, Head, Size, StackError};

pub(crate) fn page() -> usize {
    os::page()
}

/// Nothing is known of a limit.
pub(crate) fn half_is_used() -> bool {
    false
}

pub(crate) fn guards() -> Guards {
    Guards::Protected
}

#[derive(Debug)]
pub(crate) struct Memory {
    block: NonNull<u8>,
    layout: Layout,
    low: NonNull<u8>,
    size: Size,
    /// How many guards stand.
    standing: Mutex<usize>,
}

// SAFETY: a block of memory, which this has alone.
unsafe impl Send for Memory {}
// SAFETY: what changes has a lock.
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
        // Of a line, and rounded up here: an allocator may round what is aligned to pages up to a
        // power of two.
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

    /// Numbers come one after the other.
    pub(crate) fn open(&self, number: usize) -> Result<(), StackError> {
        // SAFETY: the head of this stack lies in the block, and nobody has the stack yet.
        let head = unsafe { self.low.add(self.size.head_of(number)) };
        // SAFETY: as above; it is aligned to a line as the pages are, and zeros are a head.
        unsafe { head.cast::<Head>().write_bytes(0, 1) };
        // SAFETY: the guard's first byte lies in the block.
        let guard = unsafe { self.low.add(number * self.size.stride()) };
        // SAFETY: Invariant 1; nobody has the stack yet.
        unsafe { os::close(guard, self.size.guard()) }?;
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = number + 1;
        Ok(())
    }

    /// It stays: a run ends soon.
    ///
    /// # Safety
    ///
    /// As for real memory.
    #[expect(clippy::unused_self, reason = "real memory is given back")]
    pub(crate) unsafe fn discard(&self, _from: usize, _bytes: usize) {}
}

impl Drop for Memory {
    fn drop(&mut self) {
        let standing = *self.standing.get_mut().unwrap_or_else(PoisonError::into_inner);
        let opened = (0..standing).all(|number| {
            // SAFETY: the guard's first byte lies in the block.
            let guard = unsafe { self.low.add(number * self.size.stride()) };
            // SAFETY: Invariant 1; nobody has a stack of it any more.
            unsafe { os::open(guard, self.size.guard()) }.is_ok()
        });
        // A block with a closed page in it would be a trap for who gets it next: better lost.
        if opened {
            // SAFETY: it came from the allocator with this layout.
            unsafe { dealloc(self.block.as_ptr(), self.layout) };
        }
    }
}

/// There is no handler here.
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
        // SAFETY: a question without pointers.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).unwrap_or(4096)
    }

    /// Takes all access away.
    ///
    /// # Safety
    ///
    /// Whole pages of the caller's, with nothing in them.
    pub(super) unsafe fn close(at: NonNull<u8>, bytes: usize) -> Result<(), StackError> {
        // SAFETY: the caller's promise.
        unsafe { protect(at, bytes, libc::PROT_NONE) }
    }

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// Whole pages of the caller's.
    pub(super) unsafe fn open(at: NonNull<u8>, bytes: usize) -> Result<(), StackError> {
        // SAFETY: the caller's promise.
        unsafe { protect(at, bytes, libc::PROT_READ | libc::PROT_WRITE) }
    }

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
