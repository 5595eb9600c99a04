//! Calls of the C library: at the end of the process, and in the child of a fork.

#[cfg(unix)]
use std::ffi::c_int;

#[cfg(unix)]
unsafe extern "C" {
    /// Registers a function for the end of the process.
    safe fn atexit(act: extern "C" fn()) -> c_int;

    /// Registers functions for before a fork, and after it in the parent and in the child.
    safe fn pthread_atfork(
        before: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// Has a function called when the process ends.
pub(crate) fn at_exit(act: extern "C" fn()) {
    // If it is refused, only the last lines of the file are missing.
    #[cfg(unix)]
    let _ = atexit(act);
    #[cfg(not(unix))]
    let _ = act;
}

/// Has functions called before a fork, and after it in the parent and in the child.
pub(crate) fn around_fork(
    before: extern "C" fn(),
    parent: extern "C" fn(),
    child: extern "C" fn(),
) {
    // If it is refused, a child may wait for the record of a thread that it does not have.
    #[cfg(unix)]
    let _ = pthread_atfork(Some(before), Some(parent), Some(child));
    #[cfg(not(unix))]
    let _ = (before, parent, child);
}
