//! The error number of system calls.

/// Runs the body of a handler, and leaves `errno` to the code that was interrupted.
/// Async-signal-safe if `body` is.
pub fn keeping_errno(body: impl FnOnce()) {
    // SAFETY: the place of this thread's `errno`, which the interrupted code may be about to read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid while the thread lives.
    let before = unsafe { *errno };
    body();
    // SAFETY: as above.
    unsafe { *errno = before };
}

/// Returns the error of the last system call.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
