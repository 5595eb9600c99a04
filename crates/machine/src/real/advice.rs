//! Advice on memory that the caller relies on.

use core::ffi::{c_int, c_void};

/// Advice that no kernel has.
const UNKNOWN: c_int = c_int::MAX;

/// Gives `advice` on the pages of `at`, and returns whether the kernel follows it.
///
/// An emulator of single programs (qemu) accepts every advice and follows few. Its answer says
/// nothing, so this first gives advice that no kernel has, and trusts only a kernel that refuses
/// it.
///
/// # Safety
///
/// The pages are the caller's, and `advice` may be given on them.
pub(crate) unsafe fn is_followed(at: *mut c_void, bytes: usize, advice: c_int) -> bool {
    // SAFETY: the pages are mapped, and advice that does not exist does nothing to them.
    if unsafe { libc::madvise(at, bytes, UNKNOWN) } == 0 {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(at, bytes, advice) == 0 }
}
