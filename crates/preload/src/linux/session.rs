//! The mode of this process. `stanchion record` sets it in the environment:
//!
//! - `STANCHION_RECORD`: the file with the shared table ([`shared`]).
//! - `STANCHION_LOCK`: the policy of the locks that replace the program's locks, if they are to be
//!   replaced.
//!
//! The mode is decided once, at the first call of any of the shim's functions. A lock that was
//! taken by the C library's function must be released by it too. Several threads may decide at
//! once, with the same result.

use core::ffi::CStr;
use core::ptr;

use machine::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use machine::fork::generation;
use stanchion_competitive::waits::shared::{self, Shared};

use super::layout;
use super::mutex::Operations;

/// The value of `MODE` before the first call.
const UNDECIDED: u8 = 0;
/// The number of [`Mode::Off`].
const OFF: u8 = 1;
/// The number of [`Mode::Record`].
const RECORD: u8 = 2;
/// The number of [`Mode::Replace`].
const REPLACE: u8 = 3;

/// The mode of the process. Threads that decide write it last.
static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);
/// The shared table, or null. The first thread that decides writes it.
static TABLE: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
/// The operations of the chosen policy, or null. Threads that decide write it.
static OPERATIONS: AtomicPtr<Operations> = AtomicPtr::new(ptr::null_mut());
/// The [`generation`] of the process when it was counted as a process that records, or 0 before
/// that.
static COUNTED: AtomicU32 = AtomicU32::new(0);
/// The [`generation`] of the process when it was counted as a process that locks, or 0 before that.
/// A child of a fork inherits its parent's value, which is not its own generation.
static LOCKED: AtomicU32 = AtomicU32::new(0);

/// The mode of the process.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    /// Every call is passed on.
    Off,
    /// Waits are recorded.
    Record(&'static Shared),
    /// Waits are recorded, and the locks are replaced.
    Replace(&'static Shared, &'static Operations),
}

/// Returns the mode of the process. The first call decides it.
#[inline]
pub(super) fn mode() -> Mode {
    // Acquire: pairs with the Release of `decide`.
    match MODE.load(Ordering::Acquire) {
        UNDECIDED => decide(),
        mode => decided(mode),
    }
}

/// Returns the mode with this number.
#[inline]
fn decided(mode: u8) -> Mode {
    // SAFETY: null, or a mapping that stays for good.
    let table = unsafe { TABLE.load(Ordering::Relaxed).as_ref() };
    // SAFETY: null, or a static.
    let operations = unsafe { OPERATIONS.load(Ordering::Relaxed).as_ref() };
    match (mode, table, operations) {
        (RECORD, Some(table), _) => Mode::Record(table),
        (REPLACE, Some(table), Some(operations)) => Mode::Replace(table, operations),
        _ => Mode::Off,
    }
}

/// Counts this process, at its first lock, as a process that locks. So a program without any lock
/// can be told from a program without contention.
#[inline]
pub(super) fn locks(table: &Shared) {
    // Relaxed, here and below: two threads that both count the process do no harm.
    if LOCKED.load(Ordering::Relaxed) != generation() {
        locks_first(table);
    }
}

/// Counts this process as one that locks. If it is the child of a fork, counts it as one that
/// records too.
#[cold]
fn locks_first(table: &Shared) {
    LOCKED.store(generation(), Ordering::Relaxed);
    // The child of a fork does not decide again, so it is counted here.
    if COUNTED.swap(generation(), Ordering::Relaxed) != generation() {
        table.process_begins();
    }
    table.process_locks();
}

/// Decides the mode from the environment.
#[cold]
fn decide() -> Mode {
    let mut mode = OFF;
    if let Some(path) = variable(c"STANCHION_RECORD") {
        match map(path) {
            Ok(table) => {
                COUNTED.store(generation(), Ordering::Relaxed);
                table.process_begins();
                // The first thread that decides stores the table that all threads use.
                let table = ptr::from_ref(table).cast_mut();
                let _ = TABLE.compare_exchange(
                    ptr::null_mut(),
                    table,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                mode = RECORD;
            }
            Err(why) => {
                say(&[b"waits of this process are not recorded: ", path.to_bytes(), b": ", why])
            }
        }
    }
    if let (RECORD, Some(policy)) = (mode, variable(c"STANCHION_LOCK")) {
        match layout::operations(policy.to_bytes()) {
            Ok(operations) => {
                let operations = ptr::from_ref(operations).cast_mut();
                OPERATIONS.store(operations, Ordering::Relaxed);
                mode = REPLACE;
            }
            Err(why) => say(&[b"locks of this process are not replaced: ", why]),
        }
    }
    // Release: pairs with the Acquire of `mode`, and shows what was stored above.
    MODE.store(mode, Ordering::Release);
    decided(mode)
}

/// Returns a variable of the environment.
fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero. Before `main` no thread changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: null, or a string that ends with a zero and stays.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// Maps the shared table in the file at `path`.
fn map(path: &CStr) -> Result<&'static Shared, &'static [u8]> {
    // SAFETY: the path ends with a zero.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(b"it cannot be opened");
    }
    // SAFETY: an open file. If it does not have the size of the table, it is refused below.
    let length = unsafe { libc::lseek(file, 0, libc::SEEK_END) };
    let fits = usize::try_from(length).is_ok_and(|length| length == shared::SIZE);
    let start = if fits {
        // SAFETY: new memory anywhere, over the whole of an open file.
        unsafe {
            libc::mmap(
                ptr::null_mut(),
                shared::SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        }
    } else {
        libc::MAP_FAILED
    };
    // SAFETY: opened above; the mapping stays.
    unsafe { libc::close(file) };
    if !fits {
        return Err(b"it is not a table of waits of this version's size");
    }
    if start == libc::MAP_FAILED {
        return Err(b"it cannot be mapped");
    }
    // SAFETY: mapped for good. All processes use it only through tables like this one.
    unsafe { Shared::at(start.cast_const().cast(), shared::SIZE) }
        .map_err(|_| &b"it is not a table of waits of this version"[..])
}

/// Prints a message on standard error, before the program begins.
pub(super) fn say(parts: &[&[u8]]) {
    let mut line = [0; 512];
    let mut length = 0;
    for part in [&[b"stanchion: ".as_slice()], parts, &[b"\n".as_slice()]].into_iter().flatten() {
        let part = &part[..part.len().min(line.len() - length)];
        line[length..length + part.len()].copy_from_slice(part);
        length += part.len();
    }
    // SAFETY: writes bytes of `line`. If that fails, there is no way to report it.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
}
