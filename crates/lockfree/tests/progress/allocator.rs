//! An allocator in which no thread waits: one exchange for a piece, and nothing is used again.
//!
//! Why not the system's: glibc's `free` takes the lock of the arena that a piece is from. So a
//! thread that is stopped there stops others, whatever the structure is. That is a matter of the
//! allocator's promise, not of the structure's; see the README.

use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::alloc::{GlobalAlloc, Layout};

pub(crate) struct Bump;

/// The size of the address space. Only its used part becomes memory, and each child has its own.
const SIZE: usize = 4 << 30;

/// The beginning of the address space, or 0 before it is there.
static BEGIN: AtomicUsize = AtomicUsize::new(0);
/// The number of bytes of it that have been given out.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Returns where the space begins. Makes it at the first call: the process has one thread then.
fn begin() -> Option<usize> {
    let begin = BEGIN.load(Ordering::Relaxed);
    if begin != 0 {
        return Some(begin);
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let space = unsafe {
        libc::mmap(ptr::null_mut(), SIZE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if space == libc::MAP_FAILED {
        return None;
    }
    BEGIN.store(space as usize, Ordering::Relaxed);
    Some(space as usize)
}

// SAFETY: each piece is of a part of the space that no other piece has had, aligned as asked for.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(begin) = begin() else { return ptr::null_mut() };
        let most = layout.size() + layout.align();
        let offset = USED.fetch_add(most, Ordering::Relaxed);
        if offset + most > SIZE {
            return ptr::null_mut();
        }
        let address = (begin + offset).next_multiple_of(layout.align());
        ptr::with_exposed_provenance_mut(address)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}
