//! Address space and pages, as POSIX has them.

use core::ptr;
use std::io;

/// Set if pages that were given back read as zeros when they are opened again. POSIX leaves it
/// open; Linux promises it.
pub(super) const CLOSED_IS_ZERO: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Bytes of a page.
pub(super) fn page() -> usize {
    // SAFETY: the call takes a number only.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Address space without pages, for as long as the process lives; none if it is refused. Its pages
/// read as zeros.
pub(super) fn reserve(bytes: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    (at != libc::MAP_FAILED).then_some(at.cast())
}

/// Makes pages readable and writable.
///
/// # Safety
///
/// The range lies in what [`reserve`] returned and is whole pages.
pub(super) unsafe fn open(at: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: the range is mapped, and opening it takes nothing from other code.
    let failed = unsafe { libc::mprotect(pointer(at), bytes, libc::PROT_READ | libc::PROT_WRITE) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives pages back: from now on none of the range can be touched.
///
/// Not by mapping anew: a mapping that fails may leave a hole, in which another could be put.
///
/// # Safety
///
/// As [`open`], and no code uses the range any more.
pub(super) unsafe fn close(at: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: the caller's promises: the range is mapped, and its content is not needed any more.
    let failed = unsafe { libc::madvise(pointer(at), bytes, libc::MADV_DONTNEED) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the caller's promises: the range is mapped, and no code touches it.
    let failed = unsafe { libc::mprotect(pointer(at), bytes, libc::PROT_NONE) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn pointer(at: usize) -> *mut libc::c_void {
    ptr::with_exposed_provenance_mut(at)
}
