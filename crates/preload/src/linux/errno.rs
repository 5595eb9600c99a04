//! `errno`: a program may look at it after a lock for what an earlier call left there. The C library's locks do not touch it, system calls made by
//! `libc::syscall` do.

/// Does `body` and puts `errno` back.
#[inline]
pub(super) fn kept<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: a thread-local number of the C library's.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    let result = body();
    // SAFETY: as above; still the same thread.
    unsafe { *errno = before };
    result
}
