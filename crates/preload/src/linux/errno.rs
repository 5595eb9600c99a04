//! Keeps `errno` as the program left it.
//!
//! A program may read it after a lock, to see the value of an earlier call. The C library's locks
//! do not change it, but system calls made by `libc::syscall` do.

/// Runs `body` and restores `errno`.
#[inline]
pub(super) fn kept<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a thread-local number of the C library.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: as above; still the same thread.
    unsafe { *errno = before };
    result
}
