//! Keeps `errno` as the program left it.
//!
//! A program may read it after a lock, to see the value of an earlier call. The C library's locks
//! do not change it, but system calls made by `libc::syscall` do.

use core::ffi::c_int;

/// Returns the value of `errno`.
pub(super) fn last() -> c_int {
    // SAFETY: a thread-local number of the C library.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *errno }
}

/// Sets the value of `errno`.
pub(super) fn set(value: c_int) {
    // SAFETY: a thread-local number of the C library.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    unsafe { *errno = value };
}

/// Runs `body` and restores `errno`.
#[inline]
pub(super) fn kept<R>(body: impl FnOnce() -> R) -> R {
    let before = last();
    let result = body();
    set(before);
    result
}
