//! The log of single waits, which all processes of the program share.
//!
//! `stanchion record` names its file in `STANCHION_EVENTS`. Without it waits are only counted. The
//! recorder makes sure that the file has memory wherever this process writes, so that a full disk
//! does not end the program by a signal.

use core::ffi::CStr;
use core::ptr;

use stanchion_competitive::waits::log::{self, Log, Wait};
use stanchion_machine::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The first byte of the log, or null. The first thread that opens it writes it.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The length of the log in bytes, or 0 before it is known. It is written after `START`.
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Returns the log, if single waits are recorded.
#[inline]
fn log() -> Option<Log<'static>> {
    // Acquire: pairs with the Release of `open`, after which `START` is known.
    let length = LENGTH.load(Ordering::Acquire);
    if length == 0 {
        return None;
    }
    // SAFETY: a mapping of that length, which stays for good. All processes use it only through
    // logs like this one.
    unsafe { Log::at(START.load(Ordering::Relaxed), length) }.ok()
}

/// Returns whether single waits are recorded.
#[inline]
pub(super) fn is_open() -> bool {
    // Relaxed: only a question.
    LENGTH.load(Ordering::Relaxed) != 0
}

/// Writes a wait that has ended into the log.
#[inline]
pub(super) fn add(wait: &Wait) {
    if let Some(log) = log() {
        log.add(wait);
    }
}

/// Writes the name that the calling thread has now into the log.
pub(super) fn note(process: u32, thread: u32) {
    let Some(log) = log() else { return };
    let mut name = [0; log::NAME];
    // SAFETY: writes 16 bytes to `name`.
    let result =
        unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_NAME, name.as_mut_ptr(), 0, 0, 0) };
    if result == 0 {
        log.note(process, thread, &name);
    }
}

/// Writes the name that a thread was given into the log.
pub(super) fn name(process: u32, thread: u32, text: &[u8]) {
    let Some(log) = log() else { return };
    let mut name = [0; log::NAME];
    // The last byte stays zero, as in the kernel.
    name[..log::NAME - 1].iter_mut().zip(text).for_each(|(to, &from)| *to = from);
    log.note(process, thread, &name);
}

/// Maps the log in the file at `path`.
pub(super) fn open(path: &CStr) -> Result<(), &'static [u8]> {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(b"it cannot be opened");
    }
    // SAFETY: an open file. If it does not have the size of a log, it is refused below.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let length = usize::try_from(length).unwrap_or(0);
    // SAFETY: new memory anywhere, over the whole of an open file.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file,
            0,
        )
    };
    // SAFETY: opened above; the mapping stays.
    unsafe { libc::close(file) };
    if start == libc::MAP_FAILED {
        return Err(b"it cannot be mapped");
    }
    // SAFETY: as in `log`.
    let found = unsafe { Log::at(start.cast_const().cast(), length) };
    if found.is_err() {
        return Err(b"it is not a log of waits of this version");
    }
    let first =
        START.compare_exchange(ptr::null_mut(), start.cast(), Ordering::Relaxed, Ordering::Relaxed);
    // Of several threads that open it, all but the first leave their mapping unused.
    if first.is_ok() {
        // Release: pairs with the Acquire of `log`.
        LENGTH.store(length, Ordering::Release);
    }
    Ok(())
}
