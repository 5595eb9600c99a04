//! Calls a function for each SIGUSR1 that this process gets, in a thread of its own.
//!
//! The handler writes a byte into a pipe, which is all that it may do. The thread reads it. Signals
//! that come while the function runs are one.

use std::fs::File;
use std::io::Read as _;
use std::mem;
use std::os::fd::FromRawFd as _;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

/// The end of the pipe that is written to. `each` writes it.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn note(_signal: libc::c_int) {
    // Relaxed: stored before the handler was there.
    let pipe = PIPE.load(Ordering::Relaxed);
    let before = std::io::Error::last_os_error().raw_os_error();
    // SAFETY: an open pipe, and one byte. A full pipe is enough of a note.
    unsafe { libc::write(pipe, [0_u8].as_ptr().cast(), 1) };
    #[cfg(target_os = "linux")]
    if let Some(before) = before {
        // SAFETY: a thread-local number of the C library.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: as above.
        unsafe { *errno = before };
    }
}

/// Calls `body` for each SIGUSR1, unless this process was started with that signal ignored. If the
/// thread cannot be started, the signal does what it did before.
pub(super) fn each(body: impl Fn() + Send + 'static) {
    let mut ends = [0; 2];
    // SAFETY: writes two numbers.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return;
    }
    for end in ends {
        // The program must not inherit it.
        // SAFETY: an open file.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // A handler must not wait.
    // SAFETY: an open file.
    unsafe { libc::fcntl(ends[1], libc::F_SETFL, libc::O_NONBLOCK) };
    // SAFETY: opened above, and owned by the thread.
    let mut notes = unsafe { File::from_raw_fd(ends[0]) };
    let thread = std::thread::Builder::new().name("stalls".to_owned()).spawn(move || {
        let mut bytes = [0; 64];
        while notes.read(&mut bytes).is_ok_and(|read| read > 0) {
            body();
        }
    });
    if thread.is_err() {
        return;
    }
    PIPE.store(ends[1], Ordering::Relaxed);
    // SAFETY: plain numbers and a set, for which zeros are a value.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = note as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: as above.
    let mut former: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: the handler only calls what a handler may.
    unsafe { libc::sigaction(libc::SIGUSR1, &action, &mut former) };
    if former.sa_sigaction == libc::SIG_IGN {
        // The program inherits that.
        // SAFETY: as it was.
        unsafe { libc::sigaction(libc::SIGUSR1, &former, ptr::null_mut()) };
    }
}
